// What tests of the Responses dialect share: its stream taken apart, and both sides of a translation.

import type { AnswerAsk, AnswerSource, ConversationTarget, TranslationNotes } from '../../src/protocols/protocol.ts'
import { Losses } from '../../src/protocols/losses.ts'

export type Wire = Readonly<Record<string, unknown>>

export function eventsOfSse(sse: string): readonly Wire[] {
  return sse
    .split('\n\n')
    .filter(block => block.trim() !== '')
    .map(block => {
      const [event, data] = block.split('\n')
      const json = JSON.parse(data!.slice('data: '.length)) as Wire
      if (event !== `event: ${String(json.type)}`) throw new Error(`${event} is not ${String(json.type)}`)
      return json
    })
}

export const notes = (): TranslationNotes => ({ losses: new Losses(), renamed: new Map() })

export function source(given: Partial<AnswerSource> = {}): AnswerSource {
  let calls = 0
  return { origin: 'here', notes: notes(), mintCallId: () => `call_minted${calls++}`, ...given }
}

export const ask = (given: Partial<AnswerAsk> = {}): AnswerAsk => ({
  requestId: 'req_0123456789a',
  model: 'p/m',
  createdS: 1_763_000_000,
  wantsUsage: true,
  choices: 1,
  json: { model: 'p/m', input: 'hi' },
  losses: new Losses(),
  ...given,
})

export const target = (given: Partial<ConversationTarget> = {}): ConversationTarget => ({
  model: 'm',
  traits: {},
  outputTokensMax: undefined,
  cap: undefined,
  capField: 'max_tokens',
  askUsage: true,
  origin: 'here',
  media: new Map(),
  notes: notes(),
  ...given,
})
