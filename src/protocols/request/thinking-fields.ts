// Checks that a request which switches thinking off in one field does not ask for it in another. Vendors differ in
// which field they obey.

import { isObject } from './json-body.ts'
import type { Json } from './json-type.ts'

const OFF: ReadonlySet<unknown> = new Set([undefined, null, false, 0, '', 'none', 'off', 'disabled', 'false'])

/** Objects whose fields count like fields of the request. */
const OBJECT_FIELDS: ReadonlySet<string> = new Set([
  'chat_template_kwargs',
  'extra_body',
  'output_config',
  'parameters',
])

/** Fields that only control whether thoughts are shown. */
const DISPLAY_FIELDS: ReadonlySet<string> = new Set(['include_reasoning', 'reasoning_format', 'reasoning_split'])

/** Whether no field except `checkedField` asks for thinking. */
export function hasNoOtherThinkingField(json: Json, checkedField: string): boolean {
  for (const name in json) {
    if (name === checkedField || DISPLAY_FIELDS.has(name)) continue
    const value = json[name]
    if (OBJECT_FIELDS.has(name) && isObject(value) && !hasNoOtherThinkingField(value, '')) return false
    if (/think|reason|effort/i.test(name) && !isOff(value)) return false
  }
  return true
}

function isOff(value: unknown): boolean {
  if (!isObject(value)) return OFF.has(value)
  const { enabled, type, effort, summary: _shown, exclude: _hidden, ...more } = value
  return OFF.has(enabled) && OFF.has(type) && OFF.has(effort) && Object.values(more).every(one => OFF.has(one))
}
