// Collects the events of a reader and numbers the parts of the answer.

import type { AnswerEvent, PartOpening } from '../neutral/answer.ts'
import type { MediaPart } from '../neutral/conversation.ts'

export class AnswerEventList {
  #events: AnswerEvent[] = []
  #parts = 0

  push(event: AnswerEvent): void {
    this.#events.push(event)
  }

  /** Opens a part and returns its index. */
  open(choice: number, opening: PartOpening): number {
    const index = this.#parts++
    this.#events.push({ kind: 'open', index, choice, ...opening })
    return index
  }

  addWhole(choice: number, part: MediaPart): void {
    this.#events.push({ kind: 'whole', index: this.#parts++, choice, part })
  }

  /** Returns the events since the last call of this function. */
  takeEvents(): AnswerEvent[] {
    const events = this.#events
    this.#events = []
    return events
  }
}
