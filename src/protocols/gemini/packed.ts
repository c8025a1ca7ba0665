// Takes out of a native request what we packed into it: reasoning state of another provider, carried through this
// dialect. Google would refuse it.

import type { Json } from '../checks.ts'
import { isObject } from '../json-object.ts'
import { packedMark } from '../sealed.ts'
import { asList } from './input.ts'
import { camelFields } from './spelling.ts'

/** What Google documents for a call whose signature is lost. */
export const LOST_SIGNATURE = 'skip_thought_signature_validator'

/** Other words that stand for a signature and are none. */
export const noSignatures: readonly unknown[] = [LOST_SIGNATURE, 'context_engineering_is_the_way_to_go', '']

export function withoutPacked(json: Json): Json {
  return { ...json, contents: asList(json.contents).map(cleanContent) }
}

function cleanContent(content: unknown): unknown {
  if (!isObject(content)) return content
  return { ...content, parts: asList(content.parts).flatMap(cleanPart) }
}

function cleanPart(given: unknown): readonly unknown[] {
  if (!isObject(given)) return [given]
  const part = camelFields(given)
  const { thoughtSignature: signature, ...rest } = part
  if (typeof signature !== 'string' || !signature.startsWith(packedMark)) return [given]
  if (part.functionCall !== undefined) return [{ ...rest, thoughtSignature: LOST_SIGNATURE }]
  const isEmpty = part.text === '' || Object.keys(rest).every(name => name === 'thought')
  return isEmpty ? [] : [rest]
}
