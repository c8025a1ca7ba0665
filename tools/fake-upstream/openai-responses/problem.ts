// Finds what the OpenAI Responses API would refuse, in its order and nearly in its words, so that tests find a bad
// translation.

import type { Json } from '../body-fields.ts'
import { bodyOf, has, listOf, recordOf, recordsOf, stringOf } from '../body-fields.ts'
import type { Problem } from '../dialect.ts'
import { isIssuedState } from '../reasoning-state.ts'
import type { ReceivedRequest } from '../request.ts'
import { isRecord } from '../request.ts'
import { isMessage, itemsOf, readResponsesBody, stateOwner } from './request.ts'

export const responsesFields: readonly string[] = [
  'model',
  'input',
  'instructions',
  'previous_response_id',
  'conversation',
  'background',
  'store',
  'stream',
  'stream_options',
  'include',
  'max_output_tokens',
  'max_tool_calls',
  'metadata',
  'moderation',
  'prompt',
  'parallel_tool_calls',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'reasoning',
  'client_metadata', // no SDK has this field, but Codex sends it with every call
  'safety_identifier',
  'service_tier',
  'temperature',
  'top_p',
  'top_logprobs',
  'text',
  'tools',
  'tool_choice',
  'truncation',
  'context_management',
  'image',
  'access_programs',
  'user',
  'personality',
]
const outputTokensMin = 16

const refuse = (message: string, param: string, code = 'invalid_value'): Problem => ({ message, param, code })
const missing = (param: string): Problem =>
  refuse(`Missing required parameter: '${param}'.`, param, 'missing_required_parameter')

export function findResponsesProblem(request: ReceivedRequest): Problem | undefined {
  const body = bodyOf(request)
  if (body === undefined) return { message: 'We could not parse the JSON body of your request.' }
  if (!isRecord(body)) return { message: 'The request body must be a JSON object.' }
  return findBodyProblem(body, responsesFields, request.ordinal)
}

/** Checks a body in which the items of the previous response come before its own. */
export function findBodyProblem(body: Json, known: readonly string[], ordinal: number): Problem | undefined {
  const unknown = Object.keys(body).find(name => !known.includes(name))
  if (unknown !== undefined) return refuse(`Unknown parameter: '${unknown}'.`, unknown, 'unknown_parameter')
  if (typeof body.model !== 'string') return missing('model')
  if (!has(body.input) && !has(body.prompt)) return missing('input')
  if (typeof body.input !== 'string' && !Array.isArray(body.input)) {
    return refuse("Invalid type for 'input': expected a string or a list.", 'input', 'invalid_type')
  }
  const outputMax = body.max_output_tokens
  if (has(outputMax) && !(Number.isInteger(outputMax) && Number(outputMax) >= outputTokensMin)) {
    const rule = `Expected a value >= ${outputTokensMin}`
    return refuse(`Invalid 'max_output_tokens': ${rule}.`, 'max_output_tokens', 'integer_below_min_value')
  }
  return findToolsProblem(body) ?? findItemsProblem(itemsOf(body.input), ordinal) ?? findMediaProblem(body, ordinal)
}

function findMediaProblem(body: Json, ordinal: number): Problem | undefined {
  const broken = readResponsesBody(body, ordinal).media.some(media => media.broken)
  return broken ? refuse('Invalid base64 data in the input.', 'input', 'invalid_base64_image') : undefined
}

function findToolsProblem(body: Json): Problem | undefined {
  for (const [at, tool] of recordsOf(body.tools).entries()) {
    if (typeof tool.type !== 'string') return missing(`tools[${at}].type`)
    if (tool.type === 'function' && typeof tool.name !== 'string') return missing(`tools[${at}].name`)
    if (isRecord(tool.function)) {
      const param = `tools[${at}].function`
      return refuse(`Unknown parameter: '${param}'.`, param, 'unknown_parameter')
    }
  }
  return findFormatProblem(recordOf(recordOf(body.text).format), itemsOf(body.input))
}

function findFormatProblem(format: Json, items: readonly Json[]): Problem | undefined {
  // The instructions do not count.
  if (format.type === 'json_object' && !/json/i.test(JSON.stringify(items.map(({ content }) => content)))) {
    const rule = "must contain the word 'json' in some form to use 'text.format' of type 'json_object'."
    return refuse(`Response input messages ${rule}`, 'input')
  }
  if (format.type !== 'json_schema') return undefined
  if (typeof format.name !== 'string') return missing('text.format.name')
  return isRecord(format.schema) ? undefined : missing('text.format.schema')
}

function findItemsProblem(items: readonly Json[], ordinal: number): Problem | undefined {
  const open = new Set<string>()
  const known = new Set<string>()
  for (const [at, item] of items.entries()) {
    const param = `input[${at}]`
    const call = stringOf(item.call_id)
    if (item.type === 'function_call' || item.type === 'custom_tool_call') {
      if (typeof item.name !== 'string') return missing(`${param}.name`)
      open.add(call)
      known.add(call)
    } else if (item.type === 'function_call_output' || item.type === 'custom_tool_call_output') {
      if (!known.has(call)) return stray(call)
      open.delete(call)
    }
    const problem = isMessage(item) ? findMessageProblem(item, param) : findReasoningProblem(item, ordinal)
    if (problem) return problem
  }
  const [left] = open
  return left === undefined ? undefined : refuse(`No tool output found for function call ${left}.`, 'input')
}

const stray = (call: string): Problem =>
  refuse(`No tool call found for function call output with call_id ${call}.`, 'input')

function findReasoningProblem(item: Json, ordinal: number): Problem | undefined {
  const isSealed = item.type === 'reasoning' || item.type === 'compaction'
  // An item without its state is known by its id only, and only to the account that issued it.
  const isUnknown = item.type === 'reasoning' && has(item.id) && !stringOf(item.id).startsWith('rs_fake')
  if (isUnknown && !has(item.encrypted_content)) return refuse(`Item '${stringOf(item.id)}' not found.`, 'input')
  if (!isSealed || !has(item.encrypted_content)) return undefined
  if (isIssuedState(item.encrypted_content, { by: stateOwner, ordinal })) return undefined
  const message = `The encrypted content for item ${stringOf(item.id)} could not be verified.`
  return { message, code: 'invalid_encrypted_content' }
}

const partsOfRole: Readonly<Record<string, readonly string[]>> = {
  user: ['input_text', 'input_image', 'input_file', 'input_audio', 'input_video'],
  system: ['input_text', 'input_image', 'input_file'],
  developer: ['input_text', 'input_image', 'input_file'],
  assistant: ['output_text', 'refusal'],
}

function findMessageProblem(item: Json, param: string): Problem | undefined {
  const parts = partsOfRole[stringOf(item.role)]
  const names = (values: readonly string[]) => values.map(value => `'${value}'`).join(', ')
  if (!parts) {
    const roles = names(Object.keys(partsOfRole))
    return refuse(`Invalid value: '${stringOf(item.role)}'. Supported values are: ${roles}.`, `${param}.role`)
  }
  for (const [at, part] of listOf(item.content).entries()) {
    const type = stringOf(recordOf(part).type)
    if (parts.includes(type)) continue
    const where = `${param}.content[${at}]`
    return refuse(`Invalid value: '${type}'. Supported values are: ${names(parts)}.`, where)
  }
  return has(item.content) ? undefined : missing(`${param}.content`)
}
