// Checks the rules for answer events that answer.ts states, for the tests of every dialect.

import { assert } from '../../src/base/assert.ts'
import type { AnswerEvent, PartOpening } from '../../src/protocols/neutral/answer.ts'

/** Throws unless these are the events of one complete stream by the rules of answer.ts. */
export function assertCompleteStream(events: Iterable<AnswerEvent>): void {
  const checker = new EventChecker()
  for (const event of events) checker.take(event)
  checker.end()
}

class EventChecker {
  #started = false
  readonly #parts: { readonly choice: number; readonly part: PartOpening['part'] | undefined; open: boolean }[] = []
  readonly #finished = new Set<number>()

  take(event: AnswerEvent): void {
    assert(this.#started === (event.kind !== 'start'), 'a stream starts once, before all else')
    this.#started = true
    if (event.kind === 'open' || event.kind === 'whole') this.#begin(event)
    else if (event.kind === 'delta' || event.kind === 'cite' || event.kind === 'close') this.#grow(event)
    else if (event.kind === 'finish') this.#finish(event.choice)
  }

  end(): void {
    assert(this.#started, 'a stream starts')
    assert(!this.#parts.some(part => part.open), 'what was opened is closed')
    const last = Math.max(-1, ...this.#finished, ...new Set(this.#parts.map(part => part.choice)))
    for (let choice = 0; choice <= last; choice++) assert(this.#finished.has(choice), 'every choice finishes')
  }

  #begin(event: AnswerEvent & { readonly kind: 'open' | 'whole' }): void {
    const { index, choice } = event
    assert(index === this.#parts.length, `parts are counted in the order of opening: ${index}`)
    assert(Number.isSafeInteger(choice) && choice >= 0, 'choices are counted from 0')
    assert(!this.#finished.has(choice), 'nothing is opened in a choice that has finished')
    const part = event.kind === 'open' ? event.part : undefined
    if (event.kind === 'open' && event.part === 'call') assert(event.id !== '' && event.name !== '', 'calls have names')
    this.#parts.push({ choice, part, open: part !== undefined })
  }

  #grow(event: AnswerEvent & { readonly kind: 'delta' | 'cite' | 'close' }): void {
    const part = this.#parts[event.index]
    assert(part?.open === true, `only what is open grows and is closed: ${event.kind} ${event.index}`)
    const isText = part.part === 'text'
    if (event.kind === 'cite') assert(isText, 'only text has citations')
    if (event.kind === 'delta') assert(isText || event.logprobs === undefined, 'only text has probabilities')
    if (event.kind !== 'close') return
    const seals = part.part === 'reasoning' || part.part === 'call'
    assert(seals || event.sealed === undefined, 'only thoughts and calls are sealed')
    part.open = false
  }

  #finish(choice: number): void {
    assert(!this.#finished.has(choice), 'a choice finishes once')
    assert(!this.#parts.some(part => part.choice === choice && part.open), 'a choice finishes with its parts closed')
    this.#finished.add(choice)
  }
}
