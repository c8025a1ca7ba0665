// Takes out of a native request what we packed into it: reasoning state of another provider, carried through this
// dialect. Google would refuse it.

import type { CallTarget } from '../neutral/call.ts'
import { packedMark, packSealed, unpackSealed } from '../neutral/reasoning-state.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import { asList } from './input.ts'
import { camelFields } from './spelling.ts'

/** What Google documents for a call whose signature is lost. */
export const LOST_SIGNATURE = 'skip_thought_signature_validator'

/** What a call is given that no provider signed; for Google it becomes the word above. */
export const UNSIGNED = packSealed({ form: 'thought', value: '' })

/** Other words that stand for a signature and are none. */
export const noSignatures: readonly unknown[] = [LOST_SIGNATURE, 'context_engineering_is_the_way_to_go', '', UNSIGNED]

type NativeTarget = Pick<CallTarget, 'origin' | 'losses'>

/** `json` is in camelCase at its top. What was packed for this very origin is given back to it. */
export function withoutPacked(json: Json, target: NativeTarget): Json {
  const contents = asList(json.contents).flatMap((content): readonly unknown[] => {
    if (!isObject(content)) return [content]
    const parts = asList(content.parts)
    const kept = parts.flatMap(part => cleanPart(part, target))
    return kept.length > 0 || parts.length === 0 ? [{ ...content, parts: kept }] : []
  })
  return { ...json, contents }
}

function cleanPart(given: unknown, { origin, losses }: NativeTarget): readonly unknown[] {
  if (!isObject(given)) return [given]
  const part = camelFields(given)
  const { thoughtSignature: signature, ...rest } = part
  if (typeof signature !== 'string' || !signature.startsWith(packedMark)) return [given]
  const sealed = unpackSealed(signature)
  const isOwn = sealed?.form === 'thought' && origin !== undefined && sealed.origin === origin
  if (isOwn) return [{ ...rest, thoughtSignature: sealed.value }]
  if (signature !== UNSIGNED) losses?.add('reasoning_state')
  if (part.functionCall !== undefined) return [{ ...rest, thoughtSignature: LOST_SIGNATURE }]
  const isEmpty = part.text === '' || Object.keys(rest).every(name => name === 'thought')
  return isEmpty ? [] : [rest]
}
