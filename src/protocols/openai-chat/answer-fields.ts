// Tables of the fields of a chat answer that reach a caller of another dialect. Fields that only describe how the
// upstream works are moot. Fields with content of the answer are carried, or reported as lost.

import type { FieldTable } from '../request/fields.ts'
import { tableOf } from '../request/fields.ts'
import { isObject } from '../request/json-body.ts'

export const answerFields: FieldTable = {
  ...tableOf('read', 'id object created model choices usage service_tier error'),
  ...tableOf('read', 'citations search_results web_search search_info'),
  // Vendor fields that report failures, read in response.ts.
  ...tableOf('read', 'x_groq base_resp'),
  ...tableOf('moot', 'system_fingerprint provider time_info obfuscation request_id type'),
  ...tableOf('moot', 'prompt_filter_results content_filter_results'),
  // What vendors say about the call: its status and id, their models and their speed.
  ...tableOf('moot', 'code message sid metadata note timings stats model_info runtime perf_metrics p'),
}

export const searchInfoFields: FieldTable = tableOf('read', 'search_results')

export const choiceFields: FieldTable = {
  ...tableOf('read', 'index message delta text finish_reason logprobs error stop_reason matched_stop usage'),
  ...tableOf('moot', 'seed token_id token_ids'),
  ...tableOf('moot', 'native_finish_reason content_filter_results content_filter_result content_filter_offsets'),
}

export const messageFields: FieldTable = {
  ...tableOf('read', 'role content refusal reasoning_content reasoning reasoning_details annotations audio images'),
  ...tableOf('read', 'function_call tool_calls encrypted_content citations search_results web_search'),
  ...tableOf('moot', 'name channel token_id'),
}

export const contentFields: FieldTable = tableOf('read', 'type text thinking refusal image_url')

export const callFields: FieldTable = tableOf('read', 'index id type function custom extra_content name arguments')

/** Whether everything that an object says is in fields that are not known here. Its `type` and ids say nothing alone. */
export function isUnknown(json: Readonly<Record<string, unknown>>, known: FieldTable): boolean {
  const filled = Object.keys(json).filter(name => !NAMING.has(name) && (json[name] ?? '') !== '')
  return filled.length > 0 && filled.every(name => !Object.hasOwn(known, name))
}

const NAMING: ReadonlySet<string> = new Set(['type', 'id', 'index'])

export const innerCallFields: FieldTable = tableOf('read', 'name arguments input description')

const FILTERS = ['prompt_filter_results', 'content_filter_results', 'content_filter_result'] as const

/** Whether a content filter has found something. Only then its result is a loss, because most answers have one. */
export function hasFilterResult(json: Readonly<Record<string, unknown>>): boolean {
  return FILTERS.some(name => json[name] !== undefined && isFlagged(json[name], 4))
}

function isFlagged(value: unknown, depth: number): boolean {
  if (depth === 0 || typeof value !== 'object' || value === null) return false
  if (isObject(value) && (value.filtered === true || value.detected === true)) return true
  return Object.values(value).some(inner => isFlagged(inner, depth - 1))
}
