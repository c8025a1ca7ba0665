// The seam between the pipeline and a wire dialect. A dialect never sees another dialect: where two are needed, they
// meet in conversation.ts (requests) and answer.ts (answers).

import type { SpokenError, ToldQuota } from '../base/errors.ts'
import type { Traits } from '../base/money/model-traits.ts'
import type { Usage } from '../base/money/usage.ts'
import type { Answer, EventReader, EventWriter } from './neutral/answer.ts'
import type { AnswerReading, Call, CallTarget, FrameReading } from './neutral/call.ts'
import type { Conversation, MediaPart, Source } from './neutral/conversation.ts'
import type { VectorCodec } from './neutral/embeddings.ts'
import type { Losses } from './neutral/losses.ts'
import type { Sealed } from './neutral/reasoning-state.ts'
import type { TranslationNotes } from './neutral/translation-notes.ts'

/** What is native: the same dialect on both sides, whose bytes pass. */
export interface Protocol extends ErrorDialect {
  /** The last event of a stream, for an upstream that forgets it; empty where the end of the bytes is the end. */
  readonly lastEvent: string
  /** An event of its own that says nothing, for a caller that waits; a comment unless told. */
  readonly ping?: string
  /** A stream of nothing but usage is a whole answer, of nothing. */
  readonly emptyIsWhole?: boolean
  /** What its requests are; JSON unless told. */
  readonly takes?: 'json' | 'multipart' | 'nothing'
  /** It generates no text for a caller to read, so that its answers do not tell what each stage did. */
  readonly quiet?: boolean
  /** A whole usage tells how often the provider searched, and says nothing where it did not. */
  readonly tellsSearches?: boolean
  /** What a stream shows of a model's thoughts is a summary of them. */
  readonly sumsUpThoughts?: boolean
  /** A model that can be told not to think does so only if it is asked to. */
  readonly thinksOnlyIfAsked?: boolean
  /** Whether a native request asks the model to think; undefined where it leaves that to the model. */
  thinks?(json: Call['json']): boolean | undefined
  /** Nobody pays for its calls, whatever the model costs. */
  readonly free?: boolean
  /** An answer that is neither JSON nor events is as good; it is passed on as it comes. */
  readonly passesBytes?: boolean
  /** The upstream decides whether it streams, whatever was asked for. */
  readonly mayNotStream?: boolean
  /** The caller's own name of a cap on the output; `max_tokens` unless told. */
  readonly capName?: string
  /** The caller's own name of the list of turns; `messages` unless told. */
  readonly turnsName?: string
  /** Headers of the caller that go to an upstream of this dialect, in lower case. */
  readonly passes?: readonly string[]
  /** Headers that every upstream of this dialect wants; those that pass win. */
  readonly headers?: Readonly<Record<string, string>>
  /** Checks the body as far as routing, limits and billing need it. Throws a Refusal. */
  readCall(body: Buffer, asked: Asked): Call
  /** The request for an upstream of this same dialect. */
  writeCall(call: Call, target: CallTarget): Uint8Array
  /**
   * Names the conversation that a call is a turn of, as a short text: its turns have the same, others hardly ever.
   * `json` is a call's that `readCall` took.
   */
  begins?(json: Call['json']): string
  /** For how long the caller wants its prompt cached, where it says. */
  cacheMs?(json: Call['json']): number | undefined
  /** Undefined for what is not an answer of this dialect at all. */
  readAnswer(body: Buffer): AnswerReading | undefined
  /** For calls whose stream is not one of server-sent events. */
  openFraming?(call: Call): Framing | undefined
  /**
   * `data` is the text of one server-sent event. `earlier` is what its stream last reported of usage, for dialects
   * whose later reports only tell what has changed.
   */
  readFrame(data: string | undefined, earlier?: Usage): FrameReading
  /** How its meaning is read and written; absent for one that is only ever passed on. */
  readonly codec?: Codec
  /** The same, of what makes vectors of texts. */
  readonly vectors?: VectorCodec
}

/** How the data of events travel without being events. It has state: one for each stream. */
export interface Framing {
  readonly contentType: string
  element(data: string): string
  /** What stands where events would have a comment. */
  readonly comment: string
  /** An event that says nothing, where nothing would reach a caller that waits. */
  readonly heartbeat?: string
  end(): string
  /** An answer that is an error and never was a stream. */
  error(body: string): string
}

/** The rest of the request, for dialects that say something there. */
export interface Asked {
  /** Percent-decoded once. */
  readonly path: string
  query(name: string): string | null
  header(name: string): string | undefined
}

/** What is translated: another dialect on the other side. */
export interface Codec {
  /** All that the caller means. `call.json` is there. Throws a Refusal for what makes no sense in its own dialect. */
  readConversation(call: Call): Conversation
  /** A request for an upstream of this dialect. Throws a Refusal for what could only be sent as another wish. */
  writeConversation(conversation: Conversation, target: ConversationTarget): string
  /** `json` is a whole answer that `readAnswer` took for one. Throws a Refusal. */
  readWhole(json: unknown, source: AnswerSource): Answer
  openReader(source: AnswerSource): EventReader
  writeWhole(answer: Answer, to: AnswerAsk): string
  openWriter(to: AnswerAsk): EventWriter
  /** Whether what lies at an address must be in the request itself; absent: the upstream fetches everything. */
  mustHold?(source: Source, kind: MediaPart['kind']): boolean
}

/** The upstream that a conversation is written for. */
export interface ConversationTarget {
  readonly model: string
  readonly traits: Traits
  /** The model's own bound on its output, for dialects that must be told one. */
  readonly outputTokensMax: number | undefined
  /** A cap that the funds impose on each choice. */
  readonly cap: number | undefined
  readonly capField: CallTarget['capField']
  readonly askUsage: boolean
  /** Names its credential and model: only reasoning state of this origin goes to it. */
  readonly origin: string
  /** What lies at the addresses that the conversation names, for dialects that must hold it themselves. */
  readonly media: ReadonlyMap<string, { readonly mime: string; readonly base64: string }>
  readonly notes: TranslationNotes
}

/** The upstream that an answer came from. */
export interface AnswerSource {
  readonly origin: string
  readonly notes: TranslationNotes
  /** For calls to which the upstream gave no name; each is another. */
  mintCallId(): string
}

/** The caller that an answer is written for. */
export interface AnswerAsk {
  /** Ours: the upstream's own is not the caller's to use. */
  readonly requestId: string
  /** As the caller named it. */
  readonly model: string
  readonly createdS: number
  /** The present time, in seconds of Unix time and never before `createdS`. */
  nowS?(): number
  readonly wantsUsage: boolean
  readonly choices: number
  /** The caller's own request, for dialects whose answers repeat it; gone once a writer is open and has content. */
  json: Readonly<Record<string, unknown>>
  readonly losses: Losses
  /**
   * Keeps reasoning state for a caller who cannot carry it, or forgets it: once for each call of a tool that has any,
   * the state of the thoughts before it in its choice, after the call before, and last its own unless it is carried.
   */
  keep?(callId: string, sealed: readonly Sealed[]): void
}

/** Every prefix answers errors in its dialect, also where calls in that dialect are not served. */
export interface ErrorDialect {
  readonly name: string
  writeError(error: SpokenError): WrittenError
  /** What is left of a limit of requests or tokens, in headers of its own beside those that all have. */
  quotaHeaders?(quota: ToldQuota, dateMs: number): Readonly<Record<string, string>>
}

export interface WrittenError {
  readonly status: number
  readonly body: string
  /** The same as the last events of a stream that had already begun. */
  readonly events: string
}
