// Reasoning state of other providers, as our own messages carry it to callers of this dialect: recognised when it comes
// back, and taken out of what goes to an upstream of this dialect, which would refuse it.

import type { CallTarget } from '../neutral/call.ts'
import type { Sealed } from '../neutral/reasoning-state.ts'
import { packedMark, packSealed, unpackSealed } from '../neutral/reasoning-state.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'

/** For what this dialect wants signed and nobody signed: it is ours to take out again. */
export const unsigned = packSealed({ form: 'encrypted', value: '' })

export const isPacked = (value: unknown): boolean => typeof value === 'string' && value.startsWith(packedMark)

/** The state of a call travels in a block of its own, because a stream tells it when the block of the call is done. */
export function packCallState(sealed: Sealed, callId: string): string {
  return packSealed({ ...sealed, id: JSON.stringify([callId, sealed.id ?? null]) })
}

type NativeTarget = Pick<CallTarget, 'origin' | 'losses'>

interface ReadState {
  readonly sealed: Sealed
  /** Of the call that it belongs to. */
  readonly callId?: string
}

/** Undefined for what is not packed, or says nothing. */
export function readState(text: unknown): ReadState | undefined {
  const packed = unpackSealed(text)
  if (packed === undefined || text === unsigned) return undefined
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
 * The messages with what this upstream made as it made it, and without the state of any other; undefined if nothing in
 * them was packed.
 */
export function withoutPacked(messages: readonly unknown[], target: NativeTarget): readonly unknown[] | undefined {
  let changed = false
  const cleaned: unknown[] = []
  for (const message of messages) {
    const content = isObject(message) ? message.content : undefined
    if (!Array.isArray(content)) {
      cleaned.push(message)
      continue
    }
    const kept = content.map(block => cleanBlock(block, target)).filter(block => block !== undefined)
    changed ||= kept.length !== content.length || kept.some((block, index) => block !== content[index])
    if (kept.length > 0 || content.length === 0) cleaned.push({ ...(message as Json), content: kept })
  }
  return changed ? cleaned : undefined
}

function cleanBlock(block: unknown, target: NativeTarget): unknown {
  if (!isObject(block)) return block
  if (block.type === 'thinking' && isPacked(block.signature)) {
    const signature = ownState(block.signature, 'signature', target)
    if (signature !== undefined) return { ...block, signature }
    if (block.signature === unsigned && block.thinking !== '') target.losses?.add('reasoning')
    return undefined
  }
  if (block.type === 'redacted_thinking' && isPacked(block.data)) {
    const data = ownState(block.data, 'redacted', target)
    return data === undefined ? undefined : { ...block, data }
  }
  if (block.type !== 'text' || !Array.isArray(block.citations)) return block
  const citations = block.citations.filter((one: unknown) => !(isObject(one) && isPacked(one.encrypted_index)))
  if (citations.length === block.citations.length) return block
  target.losses?.add('citations')
  return { ...block, citations }
}

/** Undefined for the state of another, which is lost here. What we wrote where there was no state is no loss. */
function ownState(text: unknown, form: Sealed['form'], { origin, losses }: NativeTarget): string | undefined {
  const sealed = unpackSealed(text)
  const isOwn = sealed?.form === form && sealed.origin !== undefined && sealed.origin === origin
  if (isOwn) return sealed.value
  if (text !== unsigned) losses?.add('reasoning_state')
  return undefined
}

/** The last calls wait to be thought on, and the thoughts that led to them are not there. */
export function callsLackThoughts(messages: readonly unknown[]): boolean {
  const last = messages.findLast(message => isObject(message) && message.role === 'assistant') as Json | undefined
  const content: readonly unknown[] = Array.isArray(last?.content) ? last.content : []
  const types = content.map(block => (isObject(block) ? block.type : undefined))
  return types.includes('tool_use') && types[0] !== 'thinking' && types[0] !== 'redacted_thinking'
}
