// Thoughts and their state in chat messages: what a message carries itself (the text of thoughts, Ark's encrypted
// thoughts, a signature on a call) and what was kept for it, by the id of a call.

import type { Call } from '../neutral/call.ts'
import type { CallPart, Part, ReasoningPart } from '../neutral/conversation.ts'
import type { Sealed } from '../neutral/reasoning-state.ts'
import { packedMark, packSealed, unpackSealed } from '../neutral/reasoning-state.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'

/** Between several packed states in one field; no letter of base64. */
const BETWEEN = '.'

export interface ReasoningState {
  readonly text: string
  /** Of the message itself. */
  readonly carried: readonly Sealed[]
  /** Kept for each of its calls. */
  readonly recalled: readonly (readonly Sealed[])[]
}

export function readState(message: Json, recalled: readonly (readonly Sealed[])[]): ReasoningState {
  const text = message.reasoning_content ?? message.reasoning
  return { text: typeof text === 'string' ? text : '', carried: readEncrypted(message.encrypted_content), recalled }
}

/** Ours, which name their origin, or the provider's own. */
function readEncrypted(value: unknown): Sealed[] {
  if (typeof value !== 'string' || value === '') return []
  if (!isPacked(value)) return [{ form: 'encrypted', value }]
  return value.split(BETWEEN).flatMap(packed => unpackSealed(packed) ?? [])
}

/** The pieces are put one behind the other by whoever reads them from a stream. */
export const writeEncrypted = (sealed: Sealed, isFirst: boolean): string =>
  isFirst ? packSealed(sealed) : BETWEEN + packSealed(sealed)

/** The signature on a call, where Google's own chat endpoint has it. */
export function readThought(extra: unknown): Sealed | undefined {
  const google = isObject(extra) ? extra.google : undefined
  const value = isObject(google) ? google.thought_signature : undefined
  if (typeof value !== 'string' || value === '') return undefined
  return value.startsWith(packedMark) ? unpackSealed(value) : { form: 'thought', value }
}

/**
 * The messages without the state that we packed into them for another upstream, which to this one is noise; undefined
 * where there is none, so that a caller's bytes stay as they are.
 */
export function withoutState({ body, json }: Pick<Call, 'body' | 'json'>): unknown[] | undefined {
  if (!body.includes(packedMark) || !Array.isArray(json.messages)) return undefined
  let isChanged = false
  const cleared = (holder: Json, field: string): Json => {
    isChanged = true
    const { [field]: _packed, ...rest } = holder
    return rest
  }
  const messages = json.messages.map((given: unknown) => {
    let message = given as Json
    if (isPacked(message.encrypted_content)) message = cleared(message, 'encrypted_content')
    if (!Array.isArray(message.tool_calls)) return message
    const calls = message.tool_calls.map((call: unknown) => {
      const extra = isObject(call) ? call.extra_content : undefined
      const google = isObject(extra) ? extra.google : undefined
      const isOurs = isObject(google) && isPacked(google.thought_signature)
      return isOurs ? cleared(call as Json, 'extra_content') : (call as unknown)
    })
    return { ...message, tool_calls: calls }
  })
  return isChanged ? messages : undefined
}

/** Some clients keep only the last piece of a stream, which then begins with what stands between two pieces. */
const isPacked = (value: unknown): boolean =>
  typeof value === 'string' && (value.startsWith(packedMark) || value.startsWith(BETWEEN + packedMark))

export const thoughtField = (value: string): object => ({ google: { thought_signature: value } })

interface ReadCall {
  readonly part: CallPart
}

const isSame = (a: Sealed, b: Sealed): boolean => a.form === b.form && a.value === b.value && a.origin === b.origin

/**
 * An assistant's parts in the order in which they were thought. State stands before the text, because whoever signed
 * thoughts wants them first; with one state and one text of thoughts, that text is what was sealed.
 */
export function withState(said: readonly Part[], calls: readonly ReadCall[], state: ReasoningState): Part[] {
  const { text, carried, recalled } = state
  const steps = calls.map(({ part }, index) => restoreStep(part, recalled[index] ?? []))
  // What was kept with a call stands before that call, also where the message carries it.
  const placed = recalled.flat()
  const front = [...carried.filter(one => !placed.some(each => isSame(one, each))), ...(steps[0]?.thoughts ?? [])]
  const later = steps.slice(1).flatMap(step => step.thoughts)
  // Where the thoughts came with their seals, the message only tells them again.
  const isKnown = [...front, ...later].some(each => each.text !== undefined)
  const shown: ReasoningPart[] = text === '' || isKnown ? [] : [{ kind: 'reasoning', text }]
  const sealed = front.map(thoughtOf)
  const isOne = shown.length > 0 && front.length === 1 && front[0]!.form !== 'redacted' && later.length === 0
  const thoughts = isOne ? [{ ...sealed[0]!, text }] : [...shown, ...sealed]
  const rest = steps.flatMap(({ call, thoughts: before }, index): Part[] => {
    if (index === 0) return [call]
    return [...before.map(thoughtOf), call]
  })
  return [...thoughts, ...said, ...rest]
}

const thoughtOf = ({ text = '', ...sealed }: Sealed): ReasoningPart => ({ kind: 'reasoning', text, sealed })

interface RestoredStep {
  readonly call: CallPart
  readonly thoughts: readonly Sealed[]
}

/** A call with its own signature, and the state of the thoughts before it. */
function restoreStep(part: CallPart, kept: readonly Sealed[]): RestoredStep {
  const own = part.sealed ?? (kept.at(-1)?.form === 'thought' ? kept.at(-1) : undefined)
  const thoughts = own === undefined ? kept : kept.filter(each => !isSame(own, each))
  return { call: own === undefined ? part : { ...part, sealed: own }, thoughts }
}
