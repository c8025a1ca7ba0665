// Both sides of a translation with default values, for the tests of codecs.

import type { Losses } from '../../src/protocols/neutral/losses.ts'
import { Losses as LossList } from '../../src/protocols/neutral/losses.ts'
import type { TranslationNotes } from '../../src/protocols/neutral/translation-notes.ts'
import type { AnswerSource, AnswerTarget, ConversationTarget } from '../../src/protocols/protocol.ts'

export const ORIGIN = 'origin-here'

export function freshNotes(): TranslationNotes {
  return { losses: new LossList(), renamed: new Map() }
}

/** An upstream that an answer came from. Its minted ids are `call_m0`, `call_m1` and so on. */
export function sourceOf(notes = freshNotes()): AnswerSource {
  let minted = 0
  return { origin: ORIGIN, notes, mintCallId: () => `call_m${minted++}` }
}

/** An upstream without traits and without a limit of output tokens. */
export function targetOf(fields: Partial<ConversationTarget> = {}): ConversationTarget {
  return {
    model: 'm',
    traits: {},
    outputTokensMax: undefined,
    cap: undefined,
    capField: 'max_tokens',
    askUsage: true,
    origin: ORIGIN,
    media: new Map(),
    notes: freshNotes(),
    ...fields,
  }
}

/** A caller that asked for one choice and wants to see usage. */
export function askOf(fields: Partial<AnswerTarget> = {}): AnswerTarget {
  const losses: Losses = new LossList()
  const named = { requestId: 'req_1', model: 'up/m', createdS: 1_700_000_000 }
  return { ...named, wantsUsage: true, choices: 1, json: {}, losses, ...fields }
}
