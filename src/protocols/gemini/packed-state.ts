// Removes packed reasoning state from a native request. The gateway packs reasoning state of other providers into
// thought signatures when it answers in this dialect; Google would refuse such a signature.

import type { CallTarget } from '../neutral/call.ts'
import { PACKED_PREFIX, packReasoningState, unpackReasoningState } from '../neutral/reasoning-state.ts'
import { isObject } from '../request/json-body.ts'
import { toCamelCaseFields } from './field-names.ts'
import { asList } from './input.ts'

/** The value that Google documents for a function call whose signature is lost. */
export const LOST_SIGNATURE = 'skip_thought_signature_validator'

/** The signature of a function call that no provider signed; requests to Google replace it by `LOST_SIGNATURE`. */
export const UNSIGNED_CALL = packReasoningState({ form: 'thought', value: '' })

/** Placeholders that clients send instead of a signature. */
export const placeholderSignatures: readonly unknown[] = [
  LOST_SIGNATURE,
  'context_engineering_is_the_way_to_go',
  '',
  UNSIGNED_CALL,
]

type StateTarget = Pick<CallTarget, 'origin' | 'losses'>

/**
 * State that was made by the target's own origin is unpacked and sent; all other packed state is removed. Undefined if the
 * contents hold no packed state. What is unchanged is the same object as before.
 */
export function removePackedState(contents: unknown, target: StateTarget): readonly unknown[] | undefined {
  let isChanged = false
  const cleaned = asList(contents).flatMap((content): readonly unknown[] => {
    if (!isObject(content)) return [content]
    const parts = asList(content.parts)
    const remaining = parts.flatMap(part => cleanPart(part, target))
    const isSame = remaining.length === parts.length && remaining.every((part, index) => part === parts[index])
    if (isSame) return [content]
    isChanged = true
    return remaining.length > 0 ? [{ ...content, parts: remaining }] : []
  })
  return isChanged ? cleaned : undefined
}

function cleanPart(given: unknown, { origin, losses }: StateTarget): readonly unknown[] {
  if (!isObject(given)) return [given]
  const part = toCamelCaseFields(given)
  const { thoughtSignature: signature, ...rest } = part
  if (typeof signature !== 'string' || !signature.startsWith(PACKED_PREFIX)) return [given]
  const sealed = unpackReasoningState(signature)
  const isFromTarget = sealed?.form === 'thought' && origin !== undefined && sealed.origin === origin
  if (isFromTarget) return [{ ...rest, thoughtSignature: sealed.value }]
  if (signature !== UNSIGNED_CALL) losses?.add('reasoning_state')
  if (part.functionCall !== undefined) return [{ ...rest, thoughtSignature: LOST_SIGNATURE }]
  const isEmpty = part.text === '' || Object.keys(rest).every(name => name === 'thought')
  return isEmpty ? [] : [rest]
}
