// The object that an answer is here: what the caller asked, said again, around what came of it.

import type { Finish } from '../answer.ts'
import type { Json } from '../checks.ts'
import { writtenReasons } from '../finish-reasons.ts'
import { isObject } from '../json-object.ts'
import type { AnswerAsk } from '../protocol.ts'

/** Our own name for an answer, made of the name of its request. */
export const responseId = (requestId: string): string => `resp_${idBody(requestId)}`

/** Without its prefix, and of letters and digits alone. */
const idBody = (requestId: string): string => requestId.slice(requestId.indexOf('_') + 1).replace(/[^A-Za-z0-9]/g, '')

/** Names for the items of one answer, each another and the same whenever the same answer is written. */
export const itemId = (prefix: string, requestId: string, index: number): string =>
  `${prefix}_${idBody(requestId)}${index.toString().padStart(4, '0')}`

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

/** All that does not change while the answer comes, as JSON text without its outer braces. */
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
    background: json.background === true,
    instructions: orNull(json.instructions),
    max_output_tokens: orNull(json.max_output_tokens),
    max_tool_calls: orNull(json.max_tool_calls),
    metadata: isObject(json.metadata) ? json.metadata : {},
    parallel_tool_calls: json.parallel_tool_calls !== false,
    previous_response_id: orNull(json.previous_response_id),
    prompt_cache_key: orNull(json.prompt_cache_key),
    reasoning: { effort: orNull(reasoning.effort), summary: orNull(reasoning.summary) },
    safety_identifier: orNull(json.safety_identifier),
    store: json.store !== false,
    temperature: orNull(json.temperature),
    text: { format: words.format ?? { type: 'text' }, verbosity: words.verbosity ?? 'medium' },
    tool_choice: json.tool_choice ?? 'auto',
    tools: Array.isArray(json.tools) ? json.tools.map(echoTool) : [],
    top_logprobs: json.top_logprobs ?? 0,
    top_p: orNull(json.top_p),
    truncation: json.truncation ?? 'disabled',
    user: orNull(json.user),
    ...((conversation ?? undefined) !== undefined && {
      conversation: isObject(conversation) ? conversation : { id: conversation },
    }),
  }
  return JSON.stringify(echo).slice(1, -1)
}

/** What opens doors elsewhere is not said again. */
function echoTool(tool: unknown): unknown {
  if (!isObject(tool)) return tool
  const { authorization: _authorization, headers: _headers, ...rest } = tool
  return tool.type === 'function' ? { ...rest, parameters: tool.parameters ?? null, strict: tool.strict ?? null } : rest
}

export interface Body {
  readonly echo: string
  readonly ending: Ending
  /** Each item as JSON text. */
  readonly output: readonly string[]
  readonly usage: Json | undefined
  readonly serviceClass: string | undefined
}

/** The whole object. Items are put in as they were written before, so that nothing long is written twice. */
export function writeBody({ echo, ending, output, usage, serviceClass }: Body): string {
  const rest = {
    status: ending.status,
    completed_at: null,
    error: null,
    incomplete_details: ending.reason === undefined ? null : { reason: ending.reason },
    service_tier: orNull(serviceClass),
    usage: orNull(usage),
  }
  return `{${echo},${JSON.stringify(rest).slice(1, -1)},"output":[${output.join(',')}]}`
}
