// The events of a stream as one answer.

import type { Answer, AnswerChoice, AnswerEvent, AnswerPart, Finish, Opening, TokenProb } from '../answer.ts'
import type { Citation } from '../conversation.ts'
import type { Sealed } from '../sealed.ts'

type Open = Extract<AnswerEvent, { readonly kind: 'open' }>

interface Growing {
  readonly opening: Open
  readonly texts: string[]
  readonly citations: Citation[]
  readonly logprobs: TokenProb[]
  sealed?: Sealed
}

interface Told {
  readonly parts: (Growing | AnswerPart)[]
  finish: Finish
  stopSequence?: string
}

export function collect(events: readonly AnswerEvent[]): Answer {
  const choices: Told[] = []
  const growing = new Map<number, Growing>()
  let head: Omit<Answer, 'choices'> = {}
  const choiceOf = (number: number): Told => (choices[number] ??= { parts: [], finish: 'other' })
  for (const event of events) {
    if (event.kind === 'start') {
      const { kind: _kind, ...rest } = event
      head = { ...head, ...rest }
    } else if (event.kind === 'open') {
      const part: Growing = { opening: event, texts: [], citations: [], logprobs: [] }
      growing.set(event.index, part)
      choiceOf(event.choice).parts.push(part)
    } else if (event.kind === 'whole') choiceOf(event.choice).parts.push(event.part)
    else if (event.kind === 'finish') {
      const choice = choiceOf(event.choice)
      choice.finish = event.finish
      if (event.stopSequence !== undefined) choice.stopSequence = event.stopSequence
    } else if (event.kind === 'usage') head = { ...head, usage: event.usage }
    else if (event.kind === 'class') head = { ...head, serviceClass: event.serviceClass }
    else grow(growing.get(event.index)!, event)
  }
  return { ...head, choices: Array.from(choices, choice => choiceFrom(choice ?? { parts: [], finish: 'other' })) }
}

function grow(part: Growing, event: Extract<AnswerEvent, { readonly kind: 'delta' | 'cite' | 'close' }>): void {
  if (event.kind === 'delta') {
    part.texts.push(event.text)
    if (event.logprobs !== undefined) part.logprobs.push(...event.logprobs)
  } else if (event.kind === 'cite') part.citations.push(event.citation)
  else if (event.sealed !== undefined) part.sealed = event.sealed
}

function choiceFrom({ parts, finish, stopSequence }: Told): AnswerChoice {
  const whole = parts.map(part => ('opening' in part ? partFrom(part) : part))
  return { parts: whole, finish, ...(stopSequence !== undefined && { stopSequence }) }
}

function partFrom({ opening, texts, citations, logprobs, sealed }: Growing): AnswerPart {
  const text = texts.join('')
  const seal = sealed === undefined ? {} : { sealed }
  const made: Opening = opening
  switch (made.part) {
    case 'text':
      return {
        kind: 'text',
        text,
        ...(citations.length > 0 && { citations }),
        ...(logprobs.length > 0 && { logprobs }),
      }
    case 'refusal':
      return { kind: 'refusal', text }
    case 'reasoning':
      return { kind: 'reasoning', text, ...(made.raw !== undefined && { raw: made.raw }), ...seal }
    case 'call': {
      const { id, name, custom } = made
      return { kind: 'call', id, name, arguments: text, ...(custom !== undefined && { custom }), ...seal }
    }
  }
}
