// Handles packed reasoning state of other providers, which answers of the gateway carry to callers of this dialect. The
// state is recognised when a caller sends it back, and removed from requests to upstreams of this dialect, which would
// refuse it.

import type { CallTarget } from '../neutral/call.ts'
import type { ReasoningState } from '../neutral/reasoning-state.ts'
import { PACKED_PREFIX, packReasoningState, unpackReasoningState } from '../neutral/reasoning-state.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'

/** A placeholder where this dialect requires a signature and there is none; removed from requests to upstreams. */
export const UNSIGNED_STATE = packReasoningState({ form: 'encrypted', value: '' })

export const isPacked = (value: unknown): boolean => typeof value === 'string' && value.startsWith(PACKED_PREFIX)

/** The state of a call is packed into a block of its own, because in a stream it arrives after the block of the call. */
export function packCallState(sealed: ReasoningState, callId: string): string {
  return packReasoningState({ ...sealed, id: JSON.stringify([callId, sealed.id ?? null]) })
}

type StateTarget = Pick<CallTarget, 'origin' | 'losses'>

interface UnpackedState {
  readonly sealed: ReasoningState
  /** The id of the call that the state belongs to. */
  readonly callId?: string
}

/** Undefined for a text that is not packed, and for the placeholder. */
export function readPackedState(text: unknown): UnpackedState | undefined {
  const packed = unpackReasoningState(text)
  if (packed === undefined || text === UNSIGNED_STATE) return undefined
  const { id, ...rest } = packed
  const [callId, ownId] = readIds(id)
  if (callId === undefined) return { sealed: packed }
  return { sealed: { ...rest, ...(ownId !== undefined && { id: ownId }) }, callId }
}

function readIds(id: string | undefined): readonly [callId?: string, ownId?: string] {
  if (id === undefined || !id.startsWith('["')) return []
  try {
    const [callId, ownId] = JSON.parse(id) as readonly unknown[]
    if (typeof callId !== 'string') return []
    return typeof ownId === 'string' ? [callId, ownId] : [callId]
  } catch {
    return []
  }
}

/**
 * Unpacks state that the target's own origin made, and removes all other packed state. Undefined if the messages hold no
 * packed state. What is unchanged is the same object as before.
 */
export function removePackedState(messages: readonly unknown[], target: StateTarget): readonly unknown[] | undefined {
  let changed = false
  const cleaned: unknown[] = []
  for (const message of messages) {
    const content = isObject(message) ? message.content : undefined
    if (!Array.isArray(content)) {
      cleaned.push(message)
      continue
    }
    const remaining = content.map(block => cleanBlock(block, target)).filter(block => block !== undefined)
    const isSame = remaining.length === content.length && remaining.every((block, index) => block === content[index])
    changed ||= !isSame
    if (isSame) cleaned.push(message)
    else if (remaining.length > 0) cleaned.push({ ...(message as Json), content: remaining })
  }
  return changed ? cleaned : undefined
}

function cleanBlock(block: unknown, target: StateTarget): unknown {
  if (!isObject(block)) return block
  if (block.type === 'thinking' && isPacked(block.signature)) {
    const signature = unpackOwnState(block.signature, 'signature', target)
    if (signature !== undefined) return { ...block, signature }
    if (block.signature === UNSIGNED_STATE && block.thinking !== '') target.losses?.add('reasoning')
    return undefined
  }
  if (block.type === 'redacted_thinking' && isPacked(block.data)) {
    const data = unpackOwnState(block.data, 'redacted', target)
    return data === undefined ? undefined : { ...block, data }
  }
  if (block.type !== 'text' || !Array.isArray(block.citations)) return block
  const citations = block.citations.filter((one: unknown) => !(isObject(one) && isPacked(one.encrypted_index)))
  if (citations.length === block.citations.length) return block
  target.losses?.add('citations')
  return { ...block, citations }
}

/** Undefined for the state of another origin, which is a loss, and for the placeholder, which is not. */
function unpackOwnState(
  text: unknown,
  form: ReasoningState['form'],
  { origin, losses }: StateTarget,
): string | undefined {
  const sealed = unpackReasoningState(text)
  const isFromTarget = sealed?.form === form && sealed.origin !== undefined && sealed.origin === origin
  if (isFromTarget) return sealed.value
  if (text !== UNSIGNED_STATE) losses?.add('reasoning_state')
  return undefined
}

/**
 * Whether the last message of the assistant has tool calls without the thinking that led to them, or is the beginning of
 * the answer. The provider then refuses to think.
 */
export function lacksThinking(messages: readonly unknown[]): boolean {
  const last = messages.findLast(message => isObject(message) && message.role === 'assistant') as Json | undefined
  if (last === undefined) return false
  const content: readonly unknown[] = Array.isArray(last.content) ? last.content : []
  const types = content.map(block => (isObject(block) ? block.type : undefined))
  const needsThinking = types.includes('tool_use') || last === messages.at(-1)
  return needsThinking && types[0] !== 'thinking' && types[0] !== 'redacted_thinking'
}
