// Reads and writes thoughts and reasoning state of chat messages. A message can carry the text of thoughts, Ark's
// encrypted thoughts, and a signature on a tool call. More state may be stored in the gateway under the id of a call.

import type { Call } from '../neutral/call.ts'
import type { CallPart, ConversationPart, ReasoningPart } from '../neutral/conversation.ts'
import type { ReasoningState } from '../neutral/reasoning-state.ts'
import { PACKED_PREFIX, packReasoningState, unpackReasoningState } from '../neutral/reasoning-state.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'

/** Searched in every request: bytes are found faster than a text. */
const PACKED_BYTES = Buffer.from(PACKED_PREFIX)

/** Separates several packed states in one field. Not a character of base64. */
const SEPARATOR = '.'

export interface MessageReasoning {
  readonly text: string
  /** State in the message itself. */
  readonly carried: readonly ReasoningState[]
  /** Stored state of each tool call of the message. */
  readonly stored: readonly (readonly ReasoningState[])[]
}

export function readMessageReasoning(
  message: Json,
  recalled: readonly (readonly ReasoningState[])[],
): MessageReasoning {
  const text = message.reasoning_content ?? message.reasoning
  return {
    text: typeof text === 'string' ? text : '',
    carried: readEncrypted(message.encrypted_content),
    stored: recalled,
  }
}

/** Reads states that the gateway has packed, which name their origin, or a state in the provider's own form. */
function readEncrypted(value: unknown): ReasoningState[] {
  if (typeof value !== 'string' || value === '') return []
  if (!isPacked(value)) return [{ form: 'encrypted', value }]
  return value.split(SEPARATOR).flatMap(packed => unpackReasoningState(packed) ?? [])
}

/** Clients concatenate the pieces that a stream sends, so each piece after the first starts with a separator. */
export const writeReasoningState = (sealed: ReasoningState, isFirst: boolean): string =>
  isFirst ? packReasoningState(sealed) : SEPARATOR + packReasoningState(sealed)

/** Reads the signature on a tool call, from the field of Google's own chat endpoint. */
export function readCallSignature(extra: unknown): ReasoningState | undefined {
  const google = isObject(extra) ? extra.google : undefined
  const value = isObject(google) ? google.thought_signature : undefined
  if (typeof value !== 'string' || value === '') return undefined
  return value.startsWith(PACKED_PREFIX) ? unpackReasoningState(value) : { form: 'thought', value }
}

/**
 * Returns the messages without packed state, which belongs to upstreams of other dialects. Undefined if there is none,
 * so that the caller's bytes can stay unchanged.
 */
export function removePackedState({ body, json }: Pick<Call, 'body' | 'json'>): unknown[] | undefined {
  if (!body.includes(PACKED_BYTES) || !Array.isArray(json.messages)) return undefined
  let isChanged = false
  const withoutField = (holder: Json, field: string): Json => {
    isChanged = true
    const { [field]: _packed, ...rest } = holder
    return rest
  }
  const messages = json.messages.map((given: unknown) => {
    let message = given as Json
    if (isPacked(message.encrypted_content)) message = withoutField(message, 'encrypted_content')
    if (!Array.isArray(message.tool_calls)) return message
    const toolCalls = message.tool_calls as readonly unknown[]
    const calls = toolCalls.map(call => {
      const extra = isObject(call) ? call.extra_content : undefined
      const google = isObject(extra) ? extra.google : undefined
      const isPackedByGateway = isObject(google) && isPacked(google.thought_signature)
      return isPackedByGateway ? withoutField(call as Json, 'extra_content') : call
    })
    return calls.every((call, index) => call === toolCalls[index]) ? message : { ...message, tool_calls: calls }
  })
  return isChanged ? messages : undefined
}

/** Some clients keep only the last piece of a stream, which starts with a separator. */
const isPacked = (value: unknown): boolean =>
  typeof value === 'string' && (value.startsWith(PACKED_PREFIX) || value.startsWith(SEPARATOR + PACKED_PREFIX))

export const writeCallSignature = (value: string): object => ({ google: { thought_signature: value } })

const isSame = (a: ReasoningState, b: ReasoningState): boolean =>
  a.form === b.form && a.value === b.value && a.origin === b.origin

/**
 * Returns the parts of an assistant message in the order in which the model created them. Reasoning state comes before
 * the content, because providers that sign thoughts want them first. If there is one state and one text of thoughts, the
 * text belongs to the state.
 */
export function restoreReasoning(
  content: readonly ConversationPart[],
  calls: readonly { readonly part: CallPart }[],
  state: MessageReasoning,
): ConversationPart[] {
  const { text, carried, stored: recalled } = state
  const steps = calls.map(({ part }, index) => restoreStep(part, recalled[index] ?? []))
  // State that is stored with a call comes before that call, even if the message carries the same state.
  const stored = recalled.flat()
  const front = [...carried.filter(one => !stored.some(each => isSame(one, each))), ...(steps[0]?.thoughts ?? [])]
  const later = steps.slice(1).flatMap(step => step.thoughts)
  // If the stored state includes the text of the thoughts, the text in the message is a repetition.
  const hasText = [...front, ...later].some(each => each.text !== undefined)
  const visible: ReasoningPart[] = text === '' || hasText ? [] : [{ kind: 'reasoning', text }]
  const isSinglePair = visible.length > 0 && front.length === 1 && later.length === 0 && belongsTo(front[0]!, text)
  const thoughts = isSinglePair
    ? [{ ...toReasoningPart(front[0]!), text }]
    : [...visible, ...front.filter(isUsable).map(toReasoningPart)]
  const rest = steps.flatMap(({ call, thoughts: before }, index): ConversationPart[] => {
    if (index === 0) return [call]
    return [...before.filter(isUsable).map(toReasoningPart), call]
  })
  return [...thoughts, ...content, ...rest]
}

/** Whether a state belongs to these thoughts of the message. */
const belongsTo = ({ form, lostChars }: ReasoningState, text: string): boolean =>
  form !== 'redacted' && (lostChars ?? text.length) === text.length

/** The provider refuses a signature without the thoughts that it signs. A signature of empty thoughts is complete. */
const isUsable = ({ form, lostChars }: ReasoningState): boolean => form !== 'signature' || lostChars === undefined

const toReasoningPart = ({ text = '', lostChars: _lost, ...sealed }: ReasoningState): ReasoningPart => ({
  kind: 'reasoning',
  text,
  sealed,
})

interface RestoredStep {
  readonly call: CallPart
  readonly thoughts: readonly ReasoningState[]
}

/** Separates the call's own signature from the state of the thoughts before it. */
function restoreStep(part: CallPart, states: readonly ReasoningState[]): RestoredStep {
  const own = part.sealed ?? (states.at(-1)?.form === 'thought' ? states.at(-1) : undefined)
  const thoughts = own === undefined ? states : states.filter(each => !isSame(own, each))
  return { call: own === undefined ? part : { ...part, sealed: own }, thoughts }
}
