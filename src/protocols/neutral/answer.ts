// The neutral answer: whole, or as the events of a stream. Every dialect reads its upstream's answers into them and
// writes them for its own callers.
//
// The law of the events: `start` first; each part is opened once, grows by deltas, and is closed once; several parts
// may be open at a time; `index` is one for each part of the answer, counted from 0 in the order of opening; then a
// `finish` for each choice; `usage` at any time, the last one counts; nothing after the end of the stream. A reader
// obeys this whatever the upstream does, or throws.

import type { Usage } from '../../base/money/usage.ts'
import type { CallPart, Citation, MediaPart, NativePart, ReasoningPart, RefusalPart, TextPart } from './conversation.ts'
import type { Sealed } from './reasoning-state.ts'

/**
 * Why the model stopped:
 * `stop` it was done · `stop_sequence` it wrote a text that was to stop it · `length` its cap · `context` its window
 * `calls` it waits for tools · `filtered` it, or its provider, refused · `paused` it wants to be called again
 * `malformed` it wrote a call that is none, or more calls than it may · `failed` the upstream failed in the middle
 * `other` any other end that is not known to be a good one: it did not say why, or said something new
 */
export type Finish =
  | 'stop'
  | 'stop_sequence'
  | 'length'
  | 'context'
  | 'calls'
  | 'filtered'
  | 'paused'
  | 'malformed'
  | 'failed'
  | 'other'

export interface TokenProb {
  readonly token: string
  readonly logprob: number
  readonly bytes?: readonly number[] | null
  readonly top?: readonly Omit<TokenProb, 'top'>[]
}

export type AnswerPart =
  | (TextPart & { readonly logprobs?: readonly TokenProb[] })
  | ReasoningPart
  | CallPart
  | RefusalPart
  | MediaPart
  | NativePart

export interface Answer {
  /** The upstream's own name for it, if it gave one. */
  readonly id?: string
  readonly model?: string
  readonly createdS?: number
  readonly choices: readonly AnswerChoice[]
  readonly usage?: Usage
  readonly serviceClass?: string
}

export interface AnswerChoice {
  readonly parts: readonly AnswerPart[]
  readonly finish: Finish
  /** The upstream's own word for it, where some dialect cannot say the same. */
  readonly reason?: string | undefined
  readonly stopSequence?: string
}

export type AnswerEvent =
  | { readonly kind: 'start'; readonly id?: string; readonly model?: string; readonly createdS?: number }
  | ({ readonly kind: 'open'; readonly index: number; readonly choice: number } & Opening)
  | { readonly kind: 'delta'; readonly index: number; readonly text: string; readonly logprobs?: readonly TokenProb[] }
  | { readonly kind: 'cite'; readonly index: number; readonly citation: Citation }
  | { readonly kind: 'close'; readonly index: number; readonly sealed?: Sealed }
  /** A part that comes in one piece; it has an index of its own and is neither opened nor closed. */
  | { readonly kind: 'whole'; readonly index: number; readonly choice: number; readonly part: MediaPart | NativePart }
  | ({ readonly kind: 'finish'; readonly choice: number } & Omit<AnswerChoice, 'parts'>)
  | { readonly kind: 'usage'; readonly usage: Usage }
  | { readonly kind: 'class'; readonly serviceClass: string }

export type Opening =
  | { readonly part: 'text' }
  | { readonly part: 'refusal' }
  | { readonly part: 'reasoning'; readonly raw?: boolean }
  | CallOpening

export interface CallOpening {
  readonly part: 'call'
  readonly id: string
  readonly name: string
  readonly custom?: boolean
  /** Where it is known from the first; else it is told when the part is closed. */
  readonly sealed?: Sealed
}

/** Reads the events of one stream. It has state: one for each stream. */
export interface EventReader {
  /** `json` is the parsed data of one server-sent event that is of the dialect and no error. Throws a Refusal. */
  read(json: unknown): readonly AnswerEvent[]
  /** The stream is over: closes what is still open. */
  end(): readonly AnswerEvent[]
}

/** Writes the events of one stream. It has state: one for each stream. */
export interface EventWriter {
  /** What goes out now, as text of server-sent events; may be empty. Finish and usage wait for `end`. */
  write(event: AnswerEvent): string
  /** What goes out when the call is settled: everything from the reason for stopping to the last event. */
  end(): string
}
