// Writes the response object: the fields of the request again, with the output, the status and the usage.

import type { Finish } from '../neutral/answer.ts'
import { writtenReasons } from '../neutral/finish-reasons.ts'
import { translateServedTier } from '../neutral/service-tier.ts'
import type { AnswerTarget } from '../protocol.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { GATEWAY_ITEM_ID } from '../request/references.ts'

/** The gateway's id of a response, made from the id of the request. */
export const buildResponseId = (requestId: string): string => `resp_${idBody(requestId)}`

/** Removes the prefix of an id, and all characters except letters and digits. */
const idBody = (requestId: string): string => requestId.slice(requestId.indexOf('_') + 1).replace(/[^A-Za-z0-9]/g, '')

/** The id of an item: unique in its response, and the same whenever the response is written again. */
export const buildItemId = (prefix: string, requestId: string, index: number): string =>
  `${prefix}_${idBody(requestId)}${index.toString().padStart(4, '0')}`

/** Finds the response of an item by an id that the gateway created, and whether the item is in its input or output. */
export function locateItem(id: unknown): { readonly response: string; readonly of: 'input' | 'output' } | undefined {
  const [, isInput, request] = (typeof id === 'string' && GATEWAY_ITEM_ID.exec(id)) || []
  return request === undefined ? undefined : { response: `resp_${request}`, of: isInput ? 'input' : 'output' }
}

export interface ResponseEnd {
  readonly status: 'in_progress' | 'completed' | 'incomplete'
  readonly reason?: 'max_output_tokens' | 'content_filter'
}

/** A refusal in the output is a complete answer. */
export function readResponseEnd(finish: Finish, refused: boolean): ResponseEnd {
  if (finish === 'filtered' && refused) return { status: 'completed' }
  const [status, reason] = writtenReasons['openai-responses'][finish].reason.split('/')
  return { status, ...(reason !== undefined && { reason }) } as ResponseEnd
}

const orNull = (value: unknown): unknown => value ?? null
const oneOf = (value: unknown, known: readonly string[]): string | null =>
  known.includes(value as string) ? (value as string) : null

/**
 * Writes all fields that do not change during the stream, as JSON text without the outer braces. Has each field that the
 * official SDKs and the Open Responses schema require. Fields that the request leaves out have OpenAI's defaults.
 */
export function writeRequestFields(target: AnswerTarget): string {
  const { json } = target
  const { conversation } = json
  const textOptions = isObject(json.text) ? json.text : {}
  const reasoning = isObject(json.reasoning) ? json.reasoning : {}
  const echo = {
    id: buildResponseId(target.requestId),
    object: 'response',
    created_at: target.createdS,
    model: target.model,
    access_programs: null,
    background: json.background === true,
    frequency_penalty: json.frequency_penalty ?? 0,
    instructions: orNull(json.instructions),
    max_output_tokens: orNull(json.max_output_tokens),
    max_tool_calls: orNull(json.max_tool_calls),
    metadata: isObject(json.metadata) ? json.metadata : {},
    parallel_tool_calls: json.parallel_tool_calls !== false,
    presence_penalty: json.presence_penalty ?? 0,
    previous_response_id: orNull(json.previous_response_id),
    prompt_cache_key: orNull(json.prompt_cache_key),
    reasoning: { effort: orNull(reasoning.effort), summary: oneOf(reasoning.summary, summaries) },
    safety_identifier: orNull(json.safety_identifier),
    store: json.store !== false,
    temperature: json.temperature ?? 1,
    text: { format: echoFormat(textOptions.format), verbosity: oneOf(textOptions.verbosity, verbosities) ?? 'medium' },
    tool_choice: json.tool_choice ?? 'auto',
    tools: Array.isArray(json.tools) ? json.tools.map(echoTool) : [],
    top_logprobs: json.top_logprobs ?? 0,
    top_p: json.top_p ?? 1,
    truncation: json.truncation === 'auto' ? 'auto' : 'disabled',
    user: orNull(json.user),
    ...((conversation ?? undefined) !== undefined && {
      conversation: isObject(conversation) ? conversation : { id: conversation },
    }),
  }
  return JSON.stringify(echo).slice(1, -1)
}

const summaries: readonly string[] = ['auto', 'concise', 'detailed']
const verbosities: readonly string[] = ['low', 'medium', 'high']

function echoFormat(format: unknown): unknown {
  if (!isObject(format)) return { type: 'text' }
  if (format.type !== 'json_schema') return format
  return { ...format, description: format.description ?? null, strict: format.strict ?? false }
}

/** Leaves out credentials for other servers. */
function echoTool(tool: unknown): unknown {
  if (!isObject(tool)) return tool
  const { authorization: _authorization, headers: _headers, ...rest } = tool
  if (tool.type !== 'function') return rest
  const { description = null, parameters = null, strict = null } = tool
  return { ...rest, description, parameters, strict }
}

export interface ResponseObject {
  readonly requestFields: string
  readonly end: ResponseEnd
  /** Each item as JSON text. */
  readonly output: readonly string[]
  readonly usage: Json | undefined
  readonly serviceTier: string
  /** The time when the answer was complete, in Unix seconds. */
  readonly nowS: number
}

/** The service tiers in answers. OpenAI answers `priority` to requests for `fast` and `ultrafast`. */
const servedTiers: readonly string[] = ['auto', 'default', 'flex', 'scale', 'priority']

/** The tier at the start of a stream: the tier of the request. */
export const readRequestedTier = ({ service_tier: requested }: Json): string => oneOf(requested, servedTiers) ?? 'auto'

/** The tier of a finished answer: `default` if the upstream reports none, and `auto` if this dialect has no equal. */
export const writeServiceTier = (serviceClass: string | undefined, { losses }: AnswerTarget): string =>
  serviceClass === undefined ? 'default' : (translateServedTier(serviceClass, servedTiers, losses) ?? 'auto')

/** Without a clock, the time of completion is the time of creation. */
export const readNow = (target: AnswerTarget): number => target.nowS?.() ?? target.createdS

/** Writes the whole object. The items are JSON text already, so that long texts are converted only once. */
export function writeResponseObject({ requestFields, end, output, usage, serviceTier, nowS }: ResponseObject): string {
  const rest = {
    status: end.status,
    completed_at: end.status === 'completed' ? nowS : null,
    error: null,
    incomplete_details: end.reason === undefined ? null : { reason: end.reason },
    service_tier: serviceTier,
    usage: orNull(usage),
  }
  return `{${requestFields},${JSON.stringify(rest).slice(1, -1)},"output":[${output.join(',')}]}`
}
