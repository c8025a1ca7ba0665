// The object that an answer is here: what the caller asked, said again, around what came of it.

import type { Finish } from '../neutral/answer.ts'
import { writtenReasons } from '../neutral/finish-reasons.ts'
import { servedTier } from '../neutral/service-tier.ts'
import type { AnswerAsk } from '../protocol.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import { OUR_ITEM } from '../request/references.ts'

/** Our own name for an answer, made of the name of its request. */
export const responseId = (requestId: string): string => `resp_${idBody(requestId)}`

/** Without its prefix, and of letters and digits alone. */
const idBody = (requestId: string): string => requestId.slice(requestId.indexOf('_') + 1).replace(/[^A-Za-z0-9]/g, '')

/** Names for the items of one answer, each another and the same whenever the same answer is written. */
export const itemId = (prefix: string, requestId: string, index: number): string =>
  `${prefix}_${idBody(requestId)}${index.toString().padStart(4, '0')}`

/** The response that an item of ours is in, by its name: in what was said to the model, or in what it said. */
export function placeOfItem(id: unknown): { readonly response: string; readonly of: 'input' | 'output' } | undefined {
  const [, isInput, request] = (typeof id === 'string' && OUR_ITEM.exec(id)) || []
  return request === undefined ? undefined : { response: `resp_${request}`, of: isInput ? 'input' : 'output' }
}

export interface Ending {
  readonly status: 'in_progress' | 'completed' | 'incomplete'
  readonly reason?: 'max_output_tokens' | 'content_filter'
}

/** A refusal that was spoken is an answer. */
export function endingOf(finish: Finish, refused: boolean): Ending {
  if (finish === 'filtered' && refused) return { status: 'completed' }
  const [status, reason] = writtenReasons['openai-responses'][finish].says.split('/')
  return { status, ...(reason !== undefined && { reason }) } as Ending
}

const orNull = (value: unknown): unknown => value ?? null
const oneOf = (value: unknown, known: readonly string[]): string | null =>
  known.includes(value as string) ? (value as string) : null

/**
 * All that does not change while the answer comes, as JSON text without its outer braces. Every field that the official
 * SDKs and the Open Responses schema require is there, with the default that OpenAI documents where the caller said
 * nothing.
 */
export function writeEcho(ask: AnswerAsk): string {
  const { json } = ask
  const { conversation } = json
  const words = isObject(json.text) ? json.text : {}
  const reasoning = isObject(json.reasoning) ? json.reasoning : {}
  const echo = {
    id: responseId(ask.requestId),
    object: 'response',
    created_at: ask.createdS,
    model: ask.model,
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
    text: { format: echoFormat(words.format), verbosity: oneOf(words.verbosity, verbosities) ?? 'medium' },
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

/** What opens doors elsewhere is not said again. */
function echoTool(tool: unknown): unknown {
  if (!isObject(tool)) return tool
  const { authorization: _authorization, headers: _headers, ...rest } = tool
  if (tool.type !== 'function') return rest
  const { description = null, parameters = null, strict = null } = tool
  return { ...rest, description, parameters, strict }
}

export interface Body {
  readonly echo: string
  readonly ending: Ending
  /** Each item as JSON text. */
  readonly output: readonly string[]
  readonly usage: Json | undefined
  readonly serviceTier: string
  /** When the answer was whole, in seconds of Unix time. */
  readonly nowS: number
}

/** The tiers that an answer may name; `fast` and `ultrafast` are answered as `priority`, as OpenAI does. */
const tiers: readonly string[] = ['auto', 'default', 'flex', 'scale', 'priority']

/** Before the answer, what the caller asked for stands here. */
export const askedTier = ({ service_tier: asked }: Json): string => oneOf(asked, tiers) ?? 'auto'

/** An upstream without tiers has only the ordinary one. `auto` stands for a tier that has no word here. */
export const tierOf = (serviceClass: string | undefined, { losses }: AnswerAsk): string =>
  serviceClass === undefined ? 'default' : (servedTier(serviceClass, tiers, losses) ?? 'auto')

/** An answer that is written without a clock was there at once. */
export const nowOf = (ask: AnswerAsk): number => ask.nowS?.() ?? ask.createdS

/** The whole object. Items are put in as they were written before, so that nothing long is written twice. */
export function writeBody({ echo, ending, output, usage, serviceTier, nowS }: Body): string {
  const rest = {
    status: ending.status,
    completed_at: ending.status === 'completed' ? nowS : null,
    error: null,
    incomplete_details: ending.reason === undefined ? null : { reason: ending.reason },
    service_tier: serviceTier,
    usage: orNull(usage),
  }
  return `{${echo},${JSON.stringify(rest).slice(1, -1)},"output":[${output.join(',')}]}`
}
