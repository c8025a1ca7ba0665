// Converts between the two forms of a neutral answer: collects events into a whole answer, and turns a whole answer
// into events.

import { assert } from '../../base/assert.ts'
import type { Answer, AnswerChoice, AnswerEvent, AnswerPart, CallOpening, PartOpening, TokenProb } from './answer.ts'
import type { Citation, MediaPart, NativePart } from './conversation.ts'
import type { ReasoningState } from './reasoning-state.ts'

export function collectAnswer(events: Iterable<AnswerEvent>): Answer {
  const collector = new AnswerCollector()
  for (const event of events) collector.add(event)
  return collector.answer()
}

type OpenEvent = AnswerEvent & { readonly kind: 'open' }

interface PartialPart {
  readonly choice: number
  readonly opening: OpenEvent | undefined
  readonly whole: MediaPart | NativePart | undefined
  text: string
  sealed: ReasoningState | undefined
  isCut?: boolean
  logprobs: TokenProb[] | undefined
  citations: Citation[] | undefined
}

type Head = Pick<Answer, 'id' | 'model' | 'createdS' | 'usage' | 'serviceClass'>
type Ending = Omit<AnswerChoice, 'parts'>

/** Collects the events of one stream. */
export class AnswerCollector {
  #head: Head = {}
  /** By index, which is the order in which they were opened. */
  readonly #parts: PartialPart[] = []
  readonly #endings = new Map<number, Ending>()

  add(event: AnswerEvent): void {
    switch (event.kind) {
      case 'start': {
        const { kind: _kind, ...head } = event
        this.#head = { ...this.#head, ...head }
        return
      }
      case 'open':
        return this.#add(event.index, event.choice, { opening: event })
      case 'whole':
        return this.#add(event.index, event.choice, { whole: event.part })
      case 'delta': {
        const part = this.#part(event.index)
        part.text += event.text
        for (const logprob of event.logprobs ?? []) (part.logprobs ??= []).push(logprob)
        return
      }
      case 'cite':
        ;(this.#part(event.index).citations ??= []).push(event.citation)
        return
      case 'close': {
        const part = this.#part(event.index)
        part.sealed = event.sealed ?? part.sealed
        if (event.isCut) part.isCut = true
        return
      }
      case 'finish': {
        const { kind: _kind, choice, ...ending } = event
        this.#endings.set(choice, ending)
        return
      }
      case 'usage':
        this.#head = { ...this.#head, usage: event.usage }
        return
      case 'class':
        this.#head = { ...this.#head, serviceClass: event.serviceClass }
    }
  }

  /** The answer so far. A choice without a `finish` event has the reason `other`. */
  answer(): Answer {
    const byChoice = new Map<number, AnswerPart[]>()
    for (const choice of this.#endings.keys()) byChoice.set(choice, [])
    for (const part of this.#parts) {
      const parts = byChoice.get(part.choice)
      if (parts === undefined) byChoice.set(part.choice, [completePart(part)])
      else parts.push(completePart(part))
    }
    const choices = Array.from({ length: Math.max(-1, ...byChoice.keys()) + 1 }, (_, choice): AnswerChoice => {
      return { parts: byChoice.get(choice) ?? [], ...(this.#endings.get(choice) ?? { finish: 'other' }) }
    })
    return { ...this.#head, choices }
  }

  #part(index: number): PartialPart {
    const part = this.#parts[index]
    assert(part !== undefined, 'a part is opened before its first delta')
    return part
  }

  #add(index: number, choice: number, from: { opening?: OpenEvent; whole?: MediaPart | NativePart }): void {
    assert(index === this.#parts.length, 'the index of a part is its position in the order of opening')
    const { opening, whole } = from
    const sealed = opening?.part === 'call' ? opening.sealed : undefined
    this.#parts.push({ choice, opening, whole, text: '', sealed, logprobs: undefined, citations: undefined })
  }
}

function completePart({ opening, whole, text, sealed, isCut, logprobs, citations }: PartialPart): AnswerPart {
  if (whole !== undefined) return whole
  assert(opening !== undefined, 'a part is opened or whole')
  const withState = sealed === undefined ? {} : { sealed }
  switch (opening.part) {
    case 'text':
      return { kind: 'text', text, ...(citations && { citations }), ...(logprobs && { logprobs }) }
    case 'refusal':
      return { kind: 'refusal', text }
    case 'reasoning':
      return { kind: 'reasoning', text, ...(opening.raw !== undefined && { raw: opening.raw }), ...withState }
    case 'call': {
      const cut = isCut === undefined ? {} : { isCut }
      return { kind: 'call', ...toolOf(opening), arguments: text, ...withState, ...cut }
    }
  }
}

/** The fields that a call has in both forms. */
const toolOf = ({ id, name, namespace, custom }: CallTool): CallTool => ({
  id,
  name,
  ...(namespace !== undefined && { namespace }),
  ...(custom !== undefined && { custom }),
})

type CallTool = Pick<CallOpening, 'id' | 'name' | 'namespace' | 'custom'>

/** Returns the events of a whole answer: choice by choice, one part after the other. */
export function toEvents({ choices, usage, serviceClass, ...head }: Answer): AnswerEvent[] {
  const events: AnswerEvent[] = [{ kind: 'start', ...head }]
  let index = 0
  choices.forEach(({ parts, ...ending }, choice) => {
    for (const part of parts) addPartEvents(part, { index: index++, choice }, events)
    events.push({ kind: 'finish', choice, ...ending })
  })
  if (serviceClass !== undefined) events.push({ kind: 'class', serviceClass })
  if (usage !== undefined) events.push({ kind: 'usage', usage })
  return events
}

function addPartEvents(part: AnswerPart, position: { index: number; choice: number }, events: AnswerEvent[]): void {
  const { index } = position
  const opening = openingOf(part)
  if (opening === undefined) {
    events.push({ kind: 'whole', ...position, part: part as MediaPart | NativePart })
    return
  }
  events.push({ kind: 'open', ...position, ...opening })
  const text = part.kind === 'call' ? part.arguments : (part as { readonly text: string }).text
  const logprobs = part.kind === 'text' ? part.logprobs : undefined
  if (text !== '' || logprobs !== undefined) events.push({ kind: 'delta', index, text, ...(logprobs && { logprobs }) })
  const citations = part.kind === 'text' ? part.citations : undefined
  for (const citation of citations ?? []) events.push({ kind: 'cite', index, citation })
  const sealed = part.kind === 'reasoning' ? part.sealed : undefined
  const isCut = part.kind === 'call' && part.isCut === true
  events.push({ kind: 'close', index, ...(sealed && { sealed }), ...(isCut && { isCut }) })
}

/** Undefined for a part that is sent in one piece. */
function openingOf(part: AnswerPart): PartOpening | undefined {
  switch (part.kind) {
    case 'text':
    case 'refusal':
      return { part: part.kind }
    case 'reasoning':
      return { part: 'reasoning', ...(part.raw !== undefined && { raw: part.raw }) }
    case 'call': {
      const { sealed } = part
      return { part: 'call', ...toolOf(part), ...(sealed && { sealed }) }
    }
    default:
      return undefined
  }
}
