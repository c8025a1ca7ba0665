// A call as all dialects read it, and what the gateway reads from an answer while it forwards it.
//
// If caller and upstream speak the same dialect, the upstream gets the caller's bytes. A call therefore keeps the bytes
// and the positions of the few values that the gateway may replace.

import type { UpstreamError } from '../../base/errors.ts'
import type { Units, UsageReport } from '../../base/money/usage.ts'
import type { FieldSpan } from '../../base/text/json-bytes.ts'
import type { ListedMedia } from '../media/media-list.ts'
import type { Service } from '../request/services.ts'
import type { Tags } from '../request/tags.ts'
import type { Losses } from './losses.ts'
import type { ReasoningState } from './reasoning-state.ts'

export interface Call {
  /** The request body, never changed. Released when no further attempt can need it. */
  body: Buffer
  fields: ReadonlyMap<string, FieldSpan>
  /** The parsed body. Released together with `body`. */
  json: Readonly<Record<string, unknown>>
  /** The dialect of the request. */
  readonly dialect: string
  readonly bodyBytes: number
  /** The whole input is text in the body, so the number of bytes limits the number of tokens. */
  readonly textOnly: boolean
  /** All input that is not text, if nothing else that is not in the body belongs to the input. */
  readonly media?: ListedMedia
  /** For an estimate of the input: the size of the body, with each image or file counted as some text. */
  readonly inputBytes: number
  /**
   * What belongs to `inputBytes` besides, because the text has more tokens than prose. Noted before the text is released,
   * and only where the upstream is asked for a stream, because measuring takes time (11 µs for 2 KB) and only a stream can
   * end without a report after its content.
   */
  extraBytes?: number
  /** The request asks to keep some of its prompt in a cache for an hour. Noted where that has a price of its own. */
  cachesForHour?: true
  /** What part of `inputBytes` stands for images, which may have a rate of their own. */
  readonly imageInputBytes?: number
  /** How many searches the provider may run while it answers. */
  readonly searchesMax: number
  /** Paid services of the provider that the request uses besides the model. */
  readonly services?: readonly Service[]
  /** The model may use tools that run at the provider. Also true if none of them is a search. */
  readonly serverTools?: boolean
  /** The model name as the caller wrote it: `<provider>/<model>`. */
  readonly model: string
  readonly stream: boolean
  /**
   * The format of the stream, if it is not ordinary server-sent events. `array`: one JSON array (Gemini's default).
   * `bare`: server-sent events without comments, for clients that do not understand comments.
   */
  readonly framing?: 'array' | 'bare'
  /** The caller asked for usage in the stream. */
  readonly wantsUsage: boolean
  /** The caller's cap on the output tokens of each choice. */
  readonly outputTokensMax?: number
  readonly choices: number
  /** The upper limit of input tokens, if the size of the body does not give one. */
  readonly inputTokensMax?: number
  /** The context that the caller asks for, where a model can have a longer one than usual. */
  readonly contextTokens?: number
  /** The upper limit of reasoning tokens, for a model that cannot reason. */
  readonly thoughtTokensMax?: 0
  /** The upper limit of other units than tokens. */
  readonly units?: Units
  /** An estimate of these units, if it is lower. Used when the answer does not report them. */
  readonly unitsGuess?: Units
  /** How many bytes of text are spoken in one second. Gives the shortest duration of audio from its transcript. */
  readonly secondTextBytes?: number
  /** An estimate of output tokens for audio and images, used when the answer does not report them. */
  readonly outputTokensGuess?: number
  /** For an answer that is the bare bytes of audio: how many of them one token is at most. */
  readonly soundTokenBytes?: number
  /** The kind of these tokens. Default: text. */
  readonly outputGuessKind?: 'outputImage' | 'outputAudio'
  /**
   * How the images of a call are made, if its answer shows each of them: one after another, so that only one can be
   * unfinished when the call ends early, or all at once.
   */
  readonly imageOrder?: 'in_turn' | 'at_once'
  /** How many events of a stream finish a part of the answer, where this is not the number of choices. */
  readonly finishEvents?: number
  /** The size of the text that the caller predicts as the answer. What the model rejects of it is billed as output. */
  readonly predictedBytes?: number
  /** No field of the request can make the answer shorter. */
  readonly uncapped?: boolean
  /** The service tier, as the caller wrote it. */
  readonly serviceClass?: string
  /** The caller's own id of its end user. */
  readonly endUser?: string
  /** Labels by which the caller groups its costs. */
  readonly tags?: Tags
  /** The request without the earlier responses that were merged into `json`. The answer repeats this request. */
  echoedJson?: Readonly<Record<string, unknown>>
  /** What the call stores, and which stored response or conversation it continues. For dialects with storage. */
  readonly state?: CallState
  /** Returns the reasoning state that `AnswerTarget.keep` stored for a tool call. */
  recall?(callId: string): readonly ReasoningState[]
}

export interface CallState {
  /** The id of the previous response, as the caller knows it. */
  readonly previous?: string
  readonly conversation?: string
  readonly store: boolean
  readonly background: boolean
}

const noBytes = Buffer.alloc(0)
export const noJson: Readonly<Record<string, unknown>> = {}
const noFields: ReadonlyMap<string, FieldSpan> = new Map()

/** Frees the memory of the request: an answer may stream for minutes, and a prompt may have megabytes. */
export function releaseBody(call: Call): void {
  call.body = noBytes
  call.json = noJson
  if (call.echoedJson !== undefined) call.echoedJson = noJson
  call.fields = noFields
}

/** What the gateway replaces in a request for one upstream of the same dialect. */
export interface CallTarget {
  readonly model: string
  /** Ask the upstream for usage in the stream, even if the caller did not. */
  readonly askUsage: boolean
  /** Ask for a stream, even if the caller did not. */
  readonly stream?: boolean
  /** The gateway's cap on the output of each choice. Lowers the caller's own cap fields, or else sets `capField`. */
  readonly cap?: number
  readonly capField: OutputCapField
  /** The upstream's id of the previous response. */
  readonly previous?: string
  /** Identifies the credential and the model, as in `ConversationTarget`. */
  readonly origin?: string
  /** Collects what the upstream does not get. */
  readonly losses?: Losses
}

/** The field in which an upstream of the chat dialect expects the cap on output. */
export type OutputCapField = 'max_tokens' | 'max_completion_tokens'

/** What the gateway reads from a whole answer, or from one event of a stream. */
export interface AnswerReading {
  /** The parsed data of an event. Absent for errors, garbage and `[DONE]`. */
  readonly json?: unknown
  readonly usage?: UsageReport | undefined
  /** The size of the output, for an estimate if no usage is reported. Four bytes count as one token (`textBytes`). */
  readonly outputBytes: number
  /** How much of the output is visible thoughts. */
  readonly thoughtBytes?: number
  /** How much of the output is images and audio, by the estimate of their tokens. */
  readonly pictureBytes?: number
  readonly soundBytes?: number
  /** The service tier that the upstream reports. */
  readonly serviceClass?: string | undefined
  /** Uses of the provider's own tools, counted from the content of the answer. */
  readonly uses?: Units
  /** The searches that the provider has run, if it names each of them. A stream may name one of them again. */
  readonly queries?: readonly string[]
  /** Names of the services that ran code on a machine of the provider. */
  readonly machines?: readonly string[]
  readonly error?: UpstreamError
  /** The upstream's message if it failed in the middle of an answer. */
  readonly failed?: string | undefined
  /** The error object that belongs to `failed`, if there is one. */
  readonly failure?: UpstreamError
}

/**
 * The kind of one event of a stream:
 * - `aside`: a comment or ping, forwarded without effect
 * - `opening`: an event before any content (a role chunk, for example)
 * - `content`: content that the caller waits for
 * - `usage`: only usage
 * - `error`: the upstream reports a failure
 * - `closing`: the model is done; used by dialects without a last event
 * - `terminal`: the last event
 * - `garbage`: not an event of this dialect
 */
export type FrameKind = 'aside' | 'opening' | 'content' | 'usage' | 'error' | 'closing' | 'terminal' | 'garbage'

/** What the model wrote in items that an event holds whole, in estimated bytes. Images and audio are beside the text. */
export interface ItemSizes {
  /** Text, thoughts and calls. */
  readonly textBytes: number
  /** How much of it is visible thoughts. */
  readonly thoughtBytes: number
  readonly pictureBytes: number
  readonly soundBytes: number
}

export const noItems: ItemSizes = { textBytes: 0, thoughtBytes: 0, pictureBytes: 0, soundBytes: 0 }

export const addItems = (one: ItemSizes, other: ItemSizes): ItemSizes => ({
  textBytes: one.textBytes + other.textBytes,
  thoughtBytes: one.thoughtBytes + other.thoughtBytes,
  pictureBytes: one.pictureBytes + other.pictureBytes,
  soundBytes: one.soundBytes + other.soundBytes,
})

export const isEmptyItem = ({ textBytes, pictureBytes, soundBytes }: ItemSizes): boolean =>
  textBytes + pictureBytes + soundBytes === 0

export interface FrameReading extends AnswerReading {
  /** Whole items, whose pieces may have arrived in earlier events. */
  readonly items?: ItemSizes
  /** For the last event: `items` and these uses are those of the whole answer, not further ones. */
  readonly usesOfAll?: Units
  /** The report does not say how many searches were run, so those that were seen count. */
  readonly searchesUntold?: boolean
  readonly kind: FrameKind
  /** How many choices this event finishes. The terminal event may follow or be missing. */
  readonly finishes: number
  /** The highest number of a choice in this event, counted from 1. Only for dialects without a last event. */
  readonly choices?: number
  /** A tool of the provider, or a summary of the input: after it the model reads its input once more. */
  readonly readsAgain?: boolean
  /** A choice ended for a reason that makes an empty answer a failure, unless its upstream bills it. */
  readonly badEnd?: boolean
}

/** An event without meaning for the call, and one that cannot be read. */
export const asideFrame: FrameReading = { kind: 'aside', outputBytes: 0, finishes: 0 }
export const garbageFrame: FrameReading = { kind: 'garbage', outputBytes: 0, finishes: 0 }
