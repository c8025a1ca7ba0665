// Keeps reasoning for callers that drop it: Gemini CLI sends back what a model wrote and which tools it called, and
// never what it thought. The reasoning before a tool call is stored under the call's id and put back before the call
// when the caller sends the call again.

import { bounds } from '../../base/bounds.ts'
import type { CallPart, ConversationPart, ReasoningPart } from '../neutral/conversation.ts'
import type { ReasoningState } from '../neutral/reasoning-state.ts'

/** Collects the reasoning with state (signed or encrypted) of an answer while the answer is written. */
export class AnswerReasoning {
  #sealed: ReasoningState[] = []
  #text = ''
  #chars = 0

  /** Returns false if the reasoning is too long to be stored. */
  add(text: string, isClosed: boolean, sealed: ReasoningState | undefined): boolean {
    this.#chars += text.length
    const isWithinLimit = this.#chars <= bounds.reasoningStateBytesMax
    if (isWithinLimit) this.#text += text
    if (!isClosed) return true
    // A signature is valid for the whole text only, so text beyond the bound makes the state useless.
    if (sealed !== undefined && isWithinLimit) this.#sealed.push({ ...sealed, text: this.#text })
    this.#text = ''
    return sealed === undefined || isWithinLimit
  }

  take(): readonly ReasoningState[] {
    const sealed = this.#sealed
    this.#sealed = []
    this.#chars = 0
    return sealed
  }
}

type Recall = (callId: string) => readonly ReasoningState[]

/** Puts stored reasoning back. That of the first call goes before all text: the provider that signed it requires this. */
export function restoreReasoning(parts: readonly ConversationPart[], recall: Recall): readonly ConversationPart[] {
  const hasState = parts.some(part => part.kind === 'reasoning' && part.sealed !== undefined)
  const first = parts.findIndex(part => part.kind === 'call')
  if (hasState || first < 0) return parts
  const firstThoughts = recallThoughts(parts[first] as CallPart, recall)
  const rest = parts.flatMap((part, index) =>
    part.kind === 'call' && index > first ? [...recallThoughts(part, recall), part] : [part],
  )
  // Reasoning parts without state repeat the stored text, so they are left out.
  return firstThoughts.length === 0
    ? rest
    : [...firstThoughts, ...rest.filter(part => part.kind !== 'reasoning' || part.sealed)]
}

const recallThoughts = ({ id }: CallPart, recall: Recall): readonly ReasoningPart[] =>
  recall(id).map(({ text = '', ...sealed }) => ({ kind: 'reasoning', text, sealed }))
