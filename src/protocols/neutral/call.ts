// The neutral call, and what is read from an answer as it passes.
//
// The native path (same dialect in and out) sends the caller's own bytes, so a call keeps them and remembers where
// in them the few values lie that we may replace.

import type { UpstreamWords } from '../../base/errors.ts'
import type { Units, UsageReport } from '../../base/money/usage.ts'
import type { FieldSpan } from '../../base/text/json-bytes.ts'
import type { Service } from '../request/services.ts'
import type { Tags } from '../request/tags.ts'
import type { Losses } from './losses.ts'
import type { Sealed } from './reasoning-state.ts'

export interface Call {
  /** The caller's bytes, never changed; gone once no further attempt can need them. */
  body: Buffer
  fields: ReadonlyMap<string, FieldSpan>
  /** The same, parsed; gone with them. */
  json: Readonly<Record<string, unknown>>
  /** The dialect that it came in. */
  readonly dialect: string
  readonly bodyBytes: number
  /** All of its input is text in the body, so that its bytes bound its tokens. */
  readonly textOnly: boolean
  /** For an estimate: the body's bytes, with an image or a file in it taken as some text. */
  readonly inputBytes: number
  /** How often the provider may search while it answers. */
  readonly searchesMax: number
  /** What else it asks of the provider besides the work of the model. */
  readonly services?: readonly Service[]
  /** It lets the model use tools that run at the provider's, also where none of them is a search. */
  readonly serverTools?: boolean
  /** As the caller named it: `<provider>/<model>`. */
  readonly model: string
  readonly stream: boolean
  /**
   * How its stream is cut, where not into server-sent events: Gemini's is one JSON array unless SSE is asked for.
   * `bare` is events without comments, for readers that know none.
   */
  readonly framing?: 'array' | 'bare'
  /** Whether the caller asked to see usage in the stream. */
  readonly wantsUsage: boolean
  /** The caller's own cap on output, for each choice. */
  readonly outputTokensMax?: number
  readonly choices: number
  /** What its input comes to at most, where the bytes of its body do not tell. */
  readonly inputTokensMax?: number
  /** What it is counted in besides tokens, at most. */
  readonly units?: Units
  /** The same as far as it can be guessed, where that is less; for an answer that does not say. */
  readonly unitsGuess?: Units
  /** As much as is said in a second of sound, in bytes: what is heard lasted at least as long as its words. */
  readonly secondTextBytes?: number
  /** What its answer is taken to be in tokens where it does not say and its bytes do not tell: sound, or a picture. */
  readonly outputTokensGuess?: number
  /** What these are tokens of, where not of text. */
  readonly outputGuessKind?: 'outputImage' | 'outputAudio'
  /** Nothing in it makes its answer shorter. */
  readonly uncapped?: boolean
  /** The class of service, as the caller wrote it. */
  readonly serviceClass?: string
  /** Whom the caller calls for, as the caller names them. */
  readonly endUser?: string
  /** What the caller wants its costs to be sorted by. */
  readonly tags?: Tags
  /** The caller's own request, where what it follows was put into `json`: its answer repeats this. */
  asked?: Readonly<Record<string, unknown>>
  /** What it wants kept, and what kept before it builds on; for dialects that keep anything. */
  readonly state?: CallState
  /** What `AnswerAsk.keep` was given for this call of a tool, for dialects that cannot carry it. */
  recall?(callId: string): readonly Sealed[]
}

export interface CallState {
  /** The answer that it follows, by the name that the caller was given. */
  readonly previous?: string
  readonly conversation?: string
  readonly store: boolean
  readonly background: boolean
}

const nothing = Buffer.alloc(0)
const unsaid: Readonly<Record<string, unknown>> = {}
const nowhere: ReadonlyMap<string, FieldSpan> = new Map()

/** Lets go of the caller's bytes: an answer may stream for minutes, and a prompt may be megabytes. */
export function releaseBody(call: Call): void {
  call.body = nothing
  call.json = unsaid
  if (call.asked !== undefined) call.asked = unsaid
  call.fields = nowhere
}

/** What the call must become for one upstream. */
export interface CallTarget {
  readonly model: string
  /** Ask for usage in the stream, whether or not the caller did. */
  readonly askUsage: boolean
  /** A cap on the output of each choice that we impose; it stands in the caller's own fields, or else in `capField`. */
  readonly cap?: number
  readonly capField: OutputCapField
  /** The upstream's own name of the answer that the call follows. */
  readonly previous?: string
  /** Names its credential and model, as in `ConversationTarget`. */
  readonly origin?: string
  /** Takes what the upstream is not told of the request. */
  readonly losses?: Losses
}

/** Where an upstream of OpenAI's dialect reads its cap. */
export type OutputCapField = 'max_tokens' | 'max_completion_tokens'

/** What a plain answer says. */
export interface AnswerReading {
  /** Of an event that is neither an error nor garbage nor the last word of chat: its parsed data. */
  readonly json?: unknown
  readonly usage?: UsageReport | undefined
  /** Written text, for where no usage came, in bytes of prose: four are taken for a token (`textBytes`). */
  readonly outputBytes: number
  /** How much of that are thoughts that the model shows. */
  readonly thoughtBytes?: number
  /** How much of that stands for pictures and for sound, each by the tokens that it is taken to be. */
  readonly pictureBytes?: number
  readonly soundBytes?: number
  /** The class of service that it was served at, where the upstream says so. */
  readonly serviceClass?: string | undefined
  /** What the provider's own tools did in it, counted by what can be seen of that. */
  readonly uses?: Units
  /** The names of the services that ran something on a machine of the provider's. */
  readonly machines?: readonly string[]
  readonly error?: UpstreamWords
  /** The upstream's own words for having failed in the middle of an answer that is otherwise one. */
  readonly failed?: string | undefined
  /** The error that it names for it, if it names one. */
  readonly failure?: UpstreamWords
}

/**
 * What one event of a stream is:
 * - `aside`: a comment or ping; passes, means nothing
 * - `opening`: comes before any content (a role chunk)
 * - `content`: something the caller waits for
 * - `usage`: nothing but usage
 * - `error`: the upstream says that it failed
 * - `closing`: the model is done, and whatever follows is the end; for dialects that have no last event
 * - `terminal`: the last event
 * - `garbage`: not this dialect
 */
export type FrameKind = 'aside' | 'opening' | 'content' | 'usage' | 'error' | 'closing' | 'terminal' | 'garbage'

export interface FrameReading extends AnswerReading {
  readonly kind: FrameKind
  /** How many choices the model said are done; the terminal event may follow or be missing. */
  readonly finishes: number
  /** One of them is done for a reason with which no answer of nothing is good. */
  readonly badEnd?: boolean
}
