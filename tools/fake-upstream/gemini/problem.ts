// What the Gemini API refuses, nearly in its words, so that a bad translation is found.

import type { Problem } from '../dialect.ts'
import { isIssuedBytes } from '../issued.ts'
import type { Json } from '../reading.ts'
import { bodyOf, isCount, recordOf, recordsOf, stringOf } from '../reading.ts'
import type { ReceivedRequest } from '../request.ts'
import { isRecord } from '../request.ts'
import { findUnknownName } from './fields.ts'
import { field, isOfUser, isSpokenByUser, partsOf, readGeminiRequest, signatureOf, stateOwner } from './request.ts'

/** What Google documents for calls that another model made. */
const dummies = ['skip_thought_signature_validator', 'context_engineering_is_the_way_to_go']
/** Few, because the demo runs on the gateway's own thread. */
const candidatesMax = 8

const say = (message: string): Problem => ({ message })

export function findGeminiProblem(request: ReceivedRequest): Problem | undefined {
  const body = bodyOf(request)
  if (body === undefined) return say('Invalid JSON payload received. Unexpected token.')
  if (!isRecord(body)) return say('Invalid JSON payload received. The root must be an object.')
  const unknown = findUnknownName(body)
  if (unknown) return say(unknown)
  const contents = recordsOf(body.contents)
  if (contents.length === 0) return say('* GenerateContentRequest.contents: contents is not specified')
  const config = recordOf(field(body, 'generationConfig'))
  if (!isCount(field(config, 'candidateCount'), candidatesMax)) {
    return say(`candidate_count must be from 1 to ${candidatesMax}`)
  }
  const thinking = recordOf(field(config, 'thinkingConfig'))
  if (field(thinking, 'thinkingBudget') !== undefined && field(thinking, 'thinkingLevel') !== undefined) {
    return say('You can only set only one of thinking budget and thinking level.')
  }
  return findContentsProblem(contents, request.ordinal) ?? findMediaProblem(request)
}

function findMediaProblem(request: ReceivedRequest): Problem | undefined {
  const broken = readGeminiRequest(request).media.some(media => media.broken)
  return broken ? say("Invalid value at 'contents' (TYPE_BYTES), Base64 decoding failed") : undefined
}

/** Contents of one role that follow each other are one turn to the API. */
function merged(contents: readonly Json[]): readonly Json[] {
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
  const contents = merged(given)
  if (!isOfUser(contents[0]!)) {
    return say('Please ensure that multiturn requests start with a user role.')
  }
  const turnStart = contents.findLastIndex(isSpokenByUser)
  let open: readonly Json[] = []
  for (const [at, content] of contents.entries()) {
    const role = content.role ?? 'user'
    if (!['user', 'model', 'function'].includes(stringOf(role))) {
      return say('Please use a valid role: user, model.')
    }
    if (partsOf(content).length === 0) return say(`* GenerateContentRequest.contents[${at}].parts: must not be empty.`)
    const results = recordsOf(partsOf(content).map(part => field(part, 'functionResponse')))
    const problem = findResponsesProblem(results, open)
    if (problem) return problem
    const calls = partsOf(content).filter(part => field(part, 'functionCall') !== undefined)
    open = calls.map(part => recordOf(field(part, 'functionCall')))
    const first = calls[0]
    if (first && at > turnStart && !isSigned(first, ordinal)) return unsigned(first, at)
    const shape = findPartProblem(partsOf(content))
    if (shape) return shape
  }
  return undefined
}

/** The responses stand in the content right behind the calls, one for each. */
function findResponsesProblem(given: readonly Json[], open: readonly Json[]): Problem | undefined {
  if (given.length !== open.length) {
    return say(
      'Please ensure that the number of function response parts is equal to the number of function call parts of the ' +
        'function call turn.',
    )
  }
  const names = new Set(open.map(call => stringOf(call.name)))
  const ids = new Set(open.map(call => stringOf(call.id)))
  for (const response of given) {
    const known = names.has(stringOf(response.name)) && (response.id === undefined || ids.has(stringOf(response.id)))
    if (!known) return say('Please ensure that function response turn comes immediately after a function call turn.')
    if (!isRecord(response.response)) {
      return say("Invalid value at 'function_response.response' (type.googleapis.com/google.protobuf.Struct)")
    }
  }
  return undefined
}

const isSigned = (part: Json, ordinal: number): boolean => {
  const signature = signatureOf(part)
  return dummies.includes(stringOf(signature)) || isIssuedBytes(signature, { by: stateOwner, ordinal })
}

function unsigned(part: Json, at: number): Problem {
  const { name } = recordOf(field(part, 'functionCall'))
  return say(
    signatureOf(part) === undefined
      ? `Function call is missing a thought_signature in functionCall parts. Function call \`${stringOf(name)}\`, ` +
          `position ${at}.`
      : 'Thought signature is not valid.',
  )
}

const oneOf = ['text', 'inlineData', 'fileData', 'functionCall', 'functionResponse', 'executableCode']

function findPartProblem(parts: readonly Json[]): Problem | undefined {
  for (const part of parts) {
    const said = oneOf.filter(name => field(part, name) !== undefined)
    if (said.length > 1) return say("Invalid value at 'contents': oneof field 'data' is already set.")
    const call = field(part, 'functionCall')
    const args = recordOf(call).args
    if (call !== undefined && args !== undefined && !isRecord(args)) {
      return say("Invalid value at 'function_call.args' (type.googleapis.com/google.protobuf.Struct)")
    }
    // A part may be a signature alone; nothing at all is none.
    const others = ['toolCall', 'toolResponse', 'codeExecutionResult', 'thoughtSignature']
    if (said.length === 0 && others.every(name => field(part, name) === undefined)) {
      return say("* GenerateContentRequest.contents: parts must have one initialized field 'data'")
    }
  }
  return undefined
}
