// The neutral answer, whole or as the events of a stream. Each dialect reads the answers of its upstreams into it, and
// writes it for its callers.
//
// Order of the events: `start` comes first. Each part is opened once, gets deltas, and is closed once; several parts
// may be open at the same time. Each part of the answer has its own `index`, counted from 0 in the order of opening.
// Then each choice has one `finish`. `usage` may come at any time, and the last one counts. A reader keeps to this
// order whatever the upstream sends, or throws.

import type { Usage } from '../../base/money/usage.ts'
import type { CallPart, Citation, MediaPart, NativePart, ReasoningPart, RefusalPart, TextPart } from './conversation.ts'
import type { ReasoningState } from './reasoning-state.ts'

/**
 * Why the model stopped:
 * - `stop`: the answer is complete
 * - `stop_sequence`: the model wrote a stop sequence
 * - `length`: the answer reached the cap on output
 * - `context`: the context window is full
 * - `calls`: the model waits for the results of tool calls
 * - `filtered`: the model or its provider refused
 * - `paused`: the model wants to be called again
 * - `malformed`: a tool call is invalid, or there are too many
 * - `failed`: the upstream failed in the middle of the answer
 * - `other`: the reason is missing or unknown, so the answer may be incomplete
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
  | (CallPart & Pick<PartCloseEvent, 'isCut'>)
  | RefusalPart
  | MediaPart
  | NativePart

export interface Answer {
  /** The upstream's id of the answer. */
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
  /** The upstream's own reason, if some dialect has no equal of `finish`. */
  readonly reason?: string | undefined
  readonly stopSequence?: string
}

export type AnswerEvent =
  | { readonly kind: 'start'; readonly id?: string; readonly model?: string; readonly createdS?: number }
  | ({ readonly kind: 'open'; readonly index: number; readonly choice: number } & PartOpening)
  | { readonly kind: 'delta'; readonly index: number; readonly text: string; readonly logprobs?: readonly TokenProb[] }
  | { readonly kind: 'cite'; readonly index: number; readonly citation: Citation }
  | PartCloseEvent
  /** A part that comes in one piece. It has its own index and is neither opened nor closed. */
  | { readonly kind: 'whole'; readonly index: number; readonly choice: number; readonly part: MediaPart | NativePart }
  | ({ readonly kind: 'finish'; readonly choice: number } & Omit<AnswerChoice, 'parts'>)
  | { readonly kind: 'usage'; readonly usage: Usage }
  | { readonly kind: 'class'; readonly serviceClass: string }

interface PartCloseEvent {
  readonly kind: 'close'
  readonly index: number
  readonly sealed?: ReasoningState
  /** The answer ends early, and the arguments of this call may be incomplete. */
  readonly isCut?: boolean
}

export type PartOpening =
  | { readonly part: 'text' }
  | { readonly part: 'refusal' }
  | { readonly part: 'reasoning'; readonly raw?: boolean }
  | CallOpening

export interface CallOpening {
  readonly part: 'call'
  readonly id: string
  readonly name: string
  readonly namespace?: string
  readonly custom?: boolean
  /** Present if it is known when the part is opened. Otherwise it comes when the part is closed. */
  readonly sealed?: ReasoningState
}

/** Reads the events of a stream. Has state: one object per stream. */
export interface EventReader {
  /** `json` is the parsed data of an event that belongs to the dialect and is no error. Throws a Refusal. */
  read(json: unknown): readonly AnswerEvent[]
  /** Ends the stream: closes all open parts. `isCut`: the gateway ends the answer early. */
  end(isCut?: boolean): readonly AnswerEvent[]
}

/** Writes the events of a stream. Has state: one object per stream. */
export interface EventWriter {
  /** Returns the text to send now, as server-sent events. May be empty. Finish and usage are written by `end`. */
  write(event: AnswerEvent): string
  /** Returns the text to send when the call is settled: from the finish reason to the last event. */
  end(): string
}
