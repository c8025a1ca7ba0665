// Finds what the Gemini API would refuse, nearly in its words, so that tests find a bad translation.

import type { Json } from '../body-fields.ts'
import { bodyOf, isCount, recordOf, recordsOf, stringOf } from '../body-fields.ts'
import type { Problem } from '../dialect.ts'
import { isIssuedStateBytes } from '../reasoning-state.ts'
import type { ReceivedRequest } from '../request.ts'
import { isRecord } from '../request.ts'
import { findUnknownName } from './fields.ts'
import { field, isOfUser, isSpokenByUser, partsOf, readGeminiRequest, signatureOf, stateOwner } from './request.ts'

/** The placeholders that Google documents for calls of another model. */
const PLACEHOLDER_SIGNATURES = ['skip_thought_signature_validator', 'context_engineering_is_the_way_to_go']
/** A small number, because the demo runs in the gateway's thread. */
const CANDIDATES_MAX = 8

const createProblem = (message: string): Problem => ({ message })

export function findGeminiProblem(request: ReceivedRequest): Problem | undefined {
  const body = bodyOf(request)
  if (body === undefined) return createProblem('Invalid JSON payload received. Unexpected token.')
  if (!isRecord(body)) return createProblem('Invalid JSON payload received. The root must be an object.')
  const unknown = findUnknownName(body)
  if (unknown) return createProblem(unknown)
  const contents = recordsOf(body.contents)
  if (contents.length === 0) return createProblem('* GenerateContentRequest.contents: contents is not specified')
  const config = recordOf(field(body, 'generationConfig'))
  if (!isCount(field(config, 'candidateCount'), CANDIDATES_MAX)) {
    return createProblem(`candidate_count must be from 1 to ${CANDIDATES_MAX}`)
  }
  const thinking = recordOf(field(config, 'thinkingConfig'))
  if (field(thinking, 'thinkingBudget') !== undefined && field(thinking, 'thinkingLevel') !== undefined) {
    return createProblem('You can only set only one of thinking budget and thinking level.')
  }
  const tools = findToolsProblem(body)
  if (tools) return tools
  return findContentsProblem(contents, request.ordinal) ?? findMediaProblem(request)
}

const CLIENT_TOOLS = ['functionDeclarations', 'function_declarations', 'computerUse', 'computer_use']

function findToolsProblem(body: Json): Problem | undefined {
  const tools = recordsOf(body.tools)
  const hasFunctions = tools.some(tool => field(tool, 'functionDeclarations') !== undefined)
  const hasServerTools = tools.some(tool => Object.keys(tool).some(name => !CLIENT_TOOLS.includes(name)))
  const isRequested = field(recordOf(field(body, 'toolConfig')), 'includeServerSideToolInvocations') === true
  return hasFunctions && hasServerTools && !isRequested
    ? createProblem(
        'Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function calling.',
      )
    : undefined
}

function findMediaProblem(request: ReceivedRequest): Problem | undefined {
  const broken = readGeminiRequest(request).media.some(media => media.broken)
  return broken ? createProblem("Invalid value at 'contents' (TYPE_BYTES), Base64 decoding failed") : undefined
}

/** The API treats neighbouring contents of one role as one turn. */
function mergeTurns(contents: readonly Json[]): readonly Json[] {
  const turns: Json[] = []
  for (const content of contents) {
    const last = turns.at(-1)
    const isSame = last?.role === 'model' && content.role === 'model'
    if (isSame) turns[turns.length - 1] = { ...last, parts: [...partsOf(last), ...partsOf(content)] }
    else turns.push(content)
  }
  return turns
}

function findContentsProblem(given: readonly Json[], ordinal: number): Problem | undefined {
  const contents = mergeTurns(given)
  if (!isOfUser(contents[0]!)) {
    return createProblem('Please ensure that multiturn requests start with a user role.')
  }
  const turnStart = contents.findLastIndex(isSpokenByUser)
  let open: readonly Json[] = []
  for (const [at, content] of contents.entries()) {
    const role = content.role ?? 'user'
    if (!['user', 'model', 'function', 'tool'].includes(stringOf(role))) {
      return createProblem('Please use a valid role: user, model.')
    }
    if (partsOf(content).length === 0)
      return createProblem(`* GenerateContentRequest.contents[${at}].parts: must not be empty.`)
    const results = recordsOf(partsOf(content).map(part => field(part, 'functionResponse')))
    const problem = findResponsesProblem(results, open)
    if (problem) return problem
    const calls = partsOf(content).filter(part => field(part, 'functionCall') !== undefined)
    open = calls.map(part => recordOf(field(part, 'functionCall')))
    const first = calls[0]
    if (first && at > turnStart && !isSigned(first, ordinal)) return missingSignature(first, at)
    const shape = findPartProblem(partsOf(content))
    if (shape) return shape
  }
  return undefined
}

/** The content after the calls must hold one response for each call. */
function findResponsesProblem(given: readonly Json[], open: readonly Json[]): Problem | undefined {
  if (given.length !== open.length) {
    return createProblem(
      'Please ensure that the number of function response parts is equal to the number of function call parts of the ' +
        'function call turn.',
    )
  }
  const names = new Set(open.map(call => stringOf(call.name)))
  const ids = new Set(open.map(call => stringOf(call.id)))
  for (const response of given) {
    const known = names.has(stringOf(response.name)) && (response.id === undefined || ids.has(stringOf(response.id)))
    if (!known)
      return createProblem('Please ensure that function response turn comes immediately after a function call turn.')
    if (!isRecord(response.response)) {
      return createProblem("Invalid value at 'function_response.response' (type.googleapis.com/google.protobuf.Struct)")
    }
  }
  return undefined
}

const isSigned = (part: Json, ordinal: number): boolean => {
  const signature = signatureOf(part)
  return (
    PLACEHOLDER_SIGNATURES.includes(stringOf(signature)) || isIssuedStateBytes(signature, { by: stateOwner, ordinal })
  )
}

function missingSignature(part: Json, at: number): Problem {
  const { name } = recordOf(field(part, 'functionCall'))
  return createProblem(
    signatureOf(part) === undefined
      ? `Function call is missing a thought_signature in functionCall parts. Function call \`${stringOf(name)}\`, ` +
          `position ${at}.`
      : 'Thought signature is not valid.',
  )
}

const CONTENT_FIELDS = ['text', 'inlineData', 'fileData', 'functionCall', 'functionResponse', 'executableCode']

function findPartProblem(parts: readonly Json[]): Problem | undefined {
  for (const part of parts) {
    const kinds = CONTENT_FIELDS.filter(name => field(part, name) !== undefined)
    if (kinds.length > 1) return createProblem("Invalid value at 'contents': oneof field 'data' is already set.")
    const call = field(part, 'functionCall')
    const args = recordOf(call).args
    if (call !== undefined && args !== undefined && !isRecord(args)) {
      return createProblem("Invalid value at 'function_call.args' (type.googleapis.com/google.protobuf.Struct)")
    }
    // A part may hold only a signature, but it must not be empty.
    const others = ['toolCall', 'toolResponse', 'codeExecutionResult', 'thoughtSignature']
    if (kinds.length === 0 && others.every(name => field(part, name) === undefined)) {
      return createProblem("* GenerateContentRequest.contents: parts must have one initialized field 'data'")
    }
  }
  return undefined
}
