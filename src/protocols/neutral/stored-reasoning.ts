// Which tool call the state of thoughts is stored with. Callers that see no thoughts, or do not send them back, send the
// calls again, and the provider wants its state back with them.

import { bounds } from '../../base/bounds.ts'
import type { ReasoningState } from './reasoning-state.ts'

/** How much text of thoughts fits into the stored state of one call, which is packed in base64. */
export const STORED_TEXT_BYTES_MAX = Math.floor(bounds.reasoningStateBytesMax / 2)

/** A tool call or thoughts of an answer, with their state. Thoughts have no `callId`. */
export interface ReasoningStep {
  readonly callId?: string | undefined
  readonly state: ReasoningState | undefined
}

export interface CallReasoning {
  readonly callId: string
  readonly states: readonly ReasoningState[]
}

/** The states of thoughts go to the call after them, or else to the last call. Calls without any are left out. */
export function groupByCall(steps: readonly ReasoningStep[]): readonly CallReasoning[] {
  const byCall: { readonly callId: string; readonly states: ReasoningState[] }[] = []
  let thoughts: ReasoningState[] = []
  for (const { callId, state } of steps) {
    const own = state === undefined ? [] : [state]
    if (callId === undefined) thoughts.push(...own)
    else {
      byCall.push({ callId, states: [...thoughts, ...own] })
      thoughts = []
    }
  }
  byCall.at(-1)?.states.unshift(...thoughts)
  return byCall.filter(({ states }) => states.length > 0)
}

/** Whether the text of thoughts is short enough to be stored. */
export function fitsStorage(states: readonly ReasoningState[]): boolean {
  let bytes = 0
  for (const { text = '' } of states) bytes += Buffer.byteLength(text)
  return bytes <= STORED_TEXT_BYTES_MAX
}
