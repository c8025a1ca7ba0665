// Which conversation a call is a turn of, and for how long its prompt is to be cached.

import { beginningText, spanMs } from '../request/conversation-start.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import { asList } from './input.ts'

/** A cache that was made by hand belongs to the credential that made it. */
const cacheOf = (json: Json): unknown => json.cachedContent ?? json.cached_content

export function begins(json: Json): string {
  const first = asList(json.contents).find(one => isObject(one) && (one.role === undefined || one.role === 'user'))
  return beginningText({
    key: cacheOf(json),
    tools: asList(json.tools).flatMap(declared),
    system: json.systemInstruction ?? json.system_instruction,
    first: isObject(first) ? first.parts : undefined,
  })
}

/** Functions by their names, and what Google does itself by its own. */
function declared(tool: unknown): readonly unknown[] {
  if (!isObject(tool)) return []
  const functions = tool.functionDeclarations ?? tool.function_declarations
  return functions === undefined ? Object.keys(tool).map(name => ({ name })) : asList(functions)
}

/** Google keeps what was cached by hand for an hour, unless told. */
export const cacheMs = (json: Json): number | undefined => (cacheOf(json) ? spanMs('1h') : undefined)
