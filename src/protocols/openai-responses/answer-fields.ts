// Tables of the fields of a response that reach a caller of another dialect. Reports the other fields as losses.

import { jsonText } from '../../base/text/json-text.ts'
import type { Losses } from '../neutral/losses.ts'
import type { FieldTable } from '../request/fields.ts'
import { addLostFields, tableOf } from '../request/fields.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'

/** Most fields of a response repeat the request, and are moot. */
const responseFields: FieldTable = {
  ...tableOf(
    'read',
    'id object created_at model status output incomplete_details usage service_tier error output_text',
  ),
  ...tableOf('read', 'tool_usage'), // has the number of searches
  ...tableOf(
    'moot',
    'background completed_at instructions max_output_tokens max_tool_calls metadata store prompt user',
  ),
  ...tableOf('moot', 'parallel_tool_calls previous_response_id prompt_cache_key prompt_cache_retention reasoning'),
  ...tableOf('moot', 'safety_identifier temperature text tool_choice tools top_logprobs top_p truncation conversation'),
  ...tableOf('moot', 'frequency_penalty presence_penalty billing moderation verbosity expire_at caching thinking'),
  ...tableOf('moot', 'prompt_cache_options context_management max_tokens'),
}

const items: Readonly<Record<string, FieldTable>> = {
  message: tableOf('read', 'id type role status content'),
  reasoning: tableOf('read', 'id type status summary content encrypted_content'),
  function_call: tableOf('read', 'id type status call_id name namespace arguments'),
  custom_tool_call: tableOf('read', 'id type status call_id name namespace input'),
}

const parts: Readonly<Record<string, FieldTable>> = {
  output_text: tableOf('read', 'type text annotations logprobs'),
  text: tableOf('read', 'type text annotations logprobs'),
  refusal: tableOf('read', 'type refusal'),
  summary_text: tableOf('read', 'type text'),
  reasoning_text: tableOf('read', 'type text'),
}

export const addLostResponseFields = (response: Json, losses: Losses): void =>
  addLostFields(response, responseFields, { path: '', losses })

/** Items and parts of other types become native parts, which are lost as a whole elsewhere. */
export function addLostItemFields(item: Json, losses: Losses): void {
  const { type, content } = item
  if (typeof type !== 'string' || !Object.hasOwn(items, type)) return
  addLostFields(item, items[type]!, { path: type, losses })
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
    if (item === 'reasoning') losses.add(`answer.reasoning.${jsonText(type)}`)
    return
  }
  addLostFields(part, parts[type]!, { path: `${item}.${type}`, losses })
}

const eventFields: FieldTable = {
  ...tableOf('read', 'type item_id output_index content_index summary_index delta text logprobs item part response'),
  ...tableOf('read', 'annotation annotation_index arguments name input refusal'),
  ...tableOf('moot', 'sequence_number obfuscation'),
}

/** Only checks events of items that other dialects have. Other items become native parts when they are done. */
export function addLostEventFields(event: Json, losses: Losses): void {
  const { type } = event
  if (typeof type !== 'string' || !TRANSLATED_EVENTS.test(type)) return
  addLostFields(event, eventFields, { path: 'event', losses })
  if (isObject(event.part)) notePart(event.part, 'event', losses)
}

const TRANSLATED_EVENTS =
  /^response\.(created|in_progress|output_|content_part|reasoning_|refusal|function_|custom_|comp|incomp)/
