// Thoughts on their way through callers that forget them: Gemini CLI brings back what a model said and called, never
// what it thought. So the thoughts before a call are kept by the call's id, and stand there again when it comes back.

import { bounds } from '../../base/bounds.ts'
import type { CallPart, Part, ReasoningPart } from '../neutral/conversation.ts'
import type { Sealed } from '../neutral/reasoning-state.ts'

/** Thoughts that are sealed, while an answer is told. */
export class Thoughts {
  #sealed: Sealed[] = []
  #text = ''
  #chars = 0

  add(text: string, isClosed: boolean, sealed: Sealed | undefined): void {
    this.#chars += text.length
    if (this.#chars <= bounds.keptReasoningBytesMax) this.#text += text
    if (!isClosed) return
    // A part of them would not fit its seal.
    if (sealed !== undefined && this.#chars <= bounds.keptReasoningBytesMax) {
      this.#sealed.push({ ...sealed, text: this.#text })
    }
    this.#text = ''
  }

  take(): readonly Sealed[] {
    const sealed = this.#sealed
    this.#sealed = []
    this.#chars = 0
    return sealed
  }
}

type Recall = (callId: string) => readonly Sealed[]

/** The thoughts of the first call come before all that was said, because whoever signed them wants them first. */
export function withThoughts(parts: readonly Part[], recall: Recall): readonly Part[] {
  const isCarried = parts.some(part => part.kind === 'reasoning' && part.sealed !== undefined)
  const first = parts.findIndex(part => part.kind === 'call')
  if (isCarried || first < 0) return parts
  const front = thoughtsOf(parts[first] as CallPart, recall)
  const rest = parts.flatMap((part, index) =>
    part.kind === 'call' && index > first ? [...thoughtsOf(part, recall), part] : [part],
  )
  // What came without a seal is told again by what has one.
  return front.length === 0 ? rest : [...front, ...rest.filter(part => part.kind !== 'reasoning' || part.sealed)]
}

const thoughtsOf = ({ id }: CallPart, recall: Recall): readonly ReasoningPart[] =>
  recall(id).map(({ text = '', ...sealed }) => ({ kind: 'reasoning', text, sealed }))
