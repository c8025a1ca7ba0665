// Tables of the fields of a response that reach a caller of another dialect. Reports the other fields as losses.

import type { Losses } from '../neutral/losses.ts'
import type { FieldTable } from '../request/fields.ts'
import { fields, noteLost } from '../request/fields.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'

/** Most fields of a response repeat the request, and are moot. */
const responseFields: FieldTable = {
  ...fields('read', 'id object created_at model status output incomplete_details usage service_tier error output_text'),
  ...fields('read', 'tool_usage'), // has the number of searches
  ...fields('moot', 'background completed_at instructions max_output_tokens max_tool_calls metadata store prompt user'),
  ...fields('moot', 'parallel_tool_calls previous_response_id prompt_cache_key prompt_cache_retention reasoning'),
  ...fields('moot', 'safety_identifier temperature text tool_choice tools top_logprobs top_p truncation conversation'),
  ...fields('moot', 'frequency_penalty presence_penalty billing moderation verbosity expire_at caching thinking'),
  ...fields('moot', 'prompt_cache_options context_management max_tokens'),
}

const items: Readonly<Record<string, FieldTable>> = {
  message: fields('read', 'id type role status content'),
  reasoning: fields('read', 'id type status summary content encrypted_content'),
  function_call: fields('read', 'id type status call_id name arguments'),
  custom_tool_call: fields('read', 'id type status call_id name input'),
}

const parts: Readonly<Record<string, FieldTable>> = {
  output_text: fields('read', 'type text annotations logprobs'),
  text: fields('read', 'type text annotations logprobs'),
  refusal: fields('read', 'type refusal'),
  summary_text: fields('read', 'type text'),
  reasoning_text: fields('read', 'type text'),
}

export const noteResponse = (response: Json, losses: Losses): void =>
  noteLost(response, responseFields, { path: '', losses })

/** Items and parts of other types become native parts, which are lost as a whole elsewhere. */
export function noteItem(item: Json, losses: Losses): void {
  const { type, content } = item
  if (typeof type !== 'string' || !Object.hasOwn(items, type)) return
  noteLost(item, items[type]!, { path: type, losses })
  for (const part of Array.isArray(content) ? (content as readonly unknown[]) : []) {
    if (isObject(part)) notePart(part, type, losses)
  }
  for (const part of Array.isArray(item.summary) ? (item.summary as readonly unknown[]) : []) {
    if (isObject(part)) notePart(part, type, losses)
  }
}

/**
 * Unknown parts of a message become native parts. Unknown parts of thoughts are lost, because thoughts are only text.
 */
function notePart(part: Json, item: string, losses: Losses): void {
  const { type } = part
  if (typeof type !== 'string' || !Object.hasOwn(parts, type)) {
    if (item === 'reasoning') losses.add(`answer.reasoning.${String(type)}`)
    return
  }
  noteLost(part, parts[type]!, { path: `${item}.${type}`, losses })
}

const eventFields: FieldTable = {
  ...fields('read', 'type item_id output_index content_index summary_index delta text logprobs item part response'),
  ...fields('read', 'annotation annotation_index arguments name input refusal'),
  ...fields('moot', 'sequence_number obfuscation'),
}

/** Only checks events of items that other dialects have. Other items become native parts when they are done. */
export function noteEvent(event: Json, losses: Losses): void {
  const { type } = event
  if (typeof type !== 'string' || !TRANSLATED_EVENTS.test(type)) return
  noteLost(event, eventFields, { path: 'event', losses })
  if (isObject(event.part)) notePart(event.part, 'event', losses)
}

const TRANSLATED_EVENTS =
  /^response\.(created|in_progress|output_|content_part|reasoning_|refusal|function_|custom_|comp|incomp)/
