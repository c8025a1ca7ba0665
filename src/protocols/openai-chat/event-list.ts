// Collects the events of a reader and numbers the parts of the answer.

import type { AnswerEvent, Opening } from '../neutral/answer.ts'
import type { MediaPart } from '../neutral/conversation.ts'

export class EventList {
  #events: AnswerEvent[] = []
  #parts = 0

  push(event: AnswerEvent): void {
    this.#events.push(event)
  }

  /** Opens a part and returns its index. */
  open(choice: number, opening: Opening): number {
    const index = this.#parts++
    this.#events.push({ kind: 'open', index, choice, ...opening })
    return index
  }

  whole(choice: number, part: MediaPart): void {
    this.#events.push({ kind: 'whole', index: this.#parts++, choice, part })
  }

  /** Returns the events since the last call of this function. */
  taken(): AnswerEvent[] {
    const events = this.#events
    this.#events = []
    return events
  }
}
