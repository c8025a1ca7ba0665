// Whether a request that turns thinking off in one field asks for it in another: vendors differ in which one they obey.
import { isObject } from './json-object.ts'
import type { Json } from './json-type.ts'

const OFF: ReadonlySet<unknown> = new Set([undefined, null, false, 0, '', 'none', 'off', 'disabled', 'false'])

/** Fields whose own fields are as good as those of the request. */
const WITHIN: ReadonlySet<string> = new Set(['chat_template_kwargs', 'extra_body', 'output_config', 'parameters'])

/** Fields that only say whether thoughts are shown. */
const SHOWING: ReadonlySet<string> = new Set(['include_reasoning', 'reasoning_format', 'reasoning_split'])

/** No field but this one says anything of thinking other than that it is off. */
export function nothingElseThinks(json: Json, judged: string): boolean {
  for (const name in json) {
    if (name === judged || SHOWING.has(name)) continue
    const value = json[name]
    if (WITHIN.has(name) && isObject(value) && !nothingElseThinks(value, '')) return false
    if (/think|reason|effort/i.test(name) && !isOff(value)) return false
  }
  return true
}

function isOff(value: unknown): boolean {
  if (!isObject(value)) return OFF.has(value)
  const { enabled, type, effort, summary: _shown, exclude: _hidden, ...more } = value
  return OFF.has(enabled) && OFF.has(type) && OFF.has(effort) && Object.values(more).every(one => OFF.has(one))
}
