// The interface between the pipeline and a wire dialect. Dialects do not know each other: a translation reads the
// caller's dialect into the neutral conversation (neutral/conversation.ts) and writes the upstream's dialect from it.
// Answers go the other way through neutral/answer.ts.

import type { BasicChatField, ChatField } from '../base/chat-fields.ts'
import type { ErrorReply, QuotaReport } from '../base/errors.ts'
import type { ModelTraits } from '../base/money/model-traits.ts'
import type { Usage } from '../base/money/usage.ts'
import type { Answer, EventReader, EventWriter } from './neutral/answer.ts'
import type { AnswerReading, Call, CallTarget, FrameReading } from './neutral/call.ts'
import type { Conversation, GenerationSettings, MediaPart, MediaSource } from './neutral/conversation.ts'
import type { EmbeddingsCodec } from './neutral/embeddings.ts'
import type { Losses } from './neutral/losses.ts'
import type { ReasoningState } from './neutral/reasoning-state.ts'
import type { TranslationNotes } from './neutral/translation-notes.ts'
import type { Json } from './request/json-type.ts'

/**
 * A dialect as the pipeline uses it when caller and upstream speak the same dialect: the bytes are forwarded, and only
 * a few fields are read and replaced.
 */
export interface Protocol extends ErrorDialect {
  /** The last event of a stream, added when the upstream leaves it out. Empty if streams just end. */
  readonly lastEvent: string
  /** An event without content that keeps a waiting caller connected. Default: an SSE comment. */
  readonly ping?: string
  /** A stream that has only usage counts as a complete, empty answer. */
  readonly emptyIsComplete?: boolean
  /** The content type of request bodies. Default: JSON. */
  readonly requestType?: 'json' | 'multipart' | 'nothing'
  /** Calls of this dialect generate no text, and their answers have no X-Pipeline-* headers. */
  readonly hidesStages?: boolean
  /** A complete usage report includes the number of searches, and leaves it out only if there were none. */
  readonly tellsSearches?: boolean
  /** The thoughts that a stream shows are a summary, and shorter than the thoughts that are billed. */
  readonly showsThoughtSummaries?: boolean
  /** A stream reports its input at the start, and shows when the model reads it once more (`FrameReading.readsAgain`). */
  readonly showsReadingAgain?: boolean
  /** A model that can switch its thinking off thinks only if the request asks for it. */
  readonly thinksOnlyIfRequested?: boolean
  /** Whether a request asks the model to think. Undefined: the request leaves this to the model. */
  asksForThinking?(json: Call['json']): boolean | undefined
  /** Calls of this dialect are free, whatever the model costs. */
  readonly free?: boolean
  /** An answer may be neither JSON nor events (audio, for example). Such an answer is forwarded unread. */
  readonly allowsBinaryAnswers?: boolean
  /** A whole answer may be plain text, which can begin like an event. */
  readonly allowsTextAnswers?: boolean
  /** The upstream may answer without a stream although the request asked for one. */
  readonly mayNotStream?: boolean
  /** The request field that caps the output. Default: `max_tokens`. */
  readonly capFieldName?: string
  /** The request field that has the list of messages. Default: `messages`. */
  readonly messagesFieldName?: string
  /** Request headers that are forwarded to an upstream of this dialect, in lower case. */
  readonly passedHeaders?: readonly string[]
  /** Headers that every upstream of this dialect requires. Forwarded headers override them. */
  readonly headers?: Readonly<Record<string, string>>
  /** Reads what routing, limits and billing need from the body. Throws a Refusal. */
  readCall(body: Buffer, request: RequestHead): Call
  /** Writes the request for an upstream of the same dialect. */
  writeCall(call: Call, target: CallTarget): Uint8Array
  /**
   * Returns a short text that identifies the conversation of a call, for affinity: all turns of one conversation have
   * the same text, and other conversations almost never do. `readCall` has accepted `json`.
   */
  begins?(json: Call['json']): string
  /** For how long the caller wants the prompt cached. Undefined: the request does not say. */
  cacheMs?(json: Call['json']): number | undefined
  /** Reads usage, size and errors of a whole answer. Undefined: the body is no answer of this dialect. */
  readAnswer(body: Buffer): AnswerReading | undefined
  /** How to write the stream of a call that does not use server-sent events. Undefined: it uses them. */
  openFraming?(call: Call): StreamFraming | undefined
  /**
   * Reads one event of a stream. `data` is the text of the event. `earlier` is the last usage that the stream has
   * reported, for dialects whose later reports contain only what has changed.
   */
  readFrame(data: string | undefined, earlier?: Usage): FrameReading
  /** Translates to and from the neutral conversation. Absent for passthrough dialects. */
  readonly codec?: Codec
  /** Translates requests for embeddings. */
  readonly vectors?: EmbeddingsCodec
}

/** Writes the events of a stream in a format other than server-sent events. Has state: one object per stream. */
export interface StreamFraming {
  readonly contentType: string
  element(data: string): string
  /** Written where a stream of server-sent events would have a comment. */
  readonly comment: string
  /** An element without content that keeps a waiting caller connected, if a comment would not reach the caller. */
  readonly heartbeat?: string
  end(): string
  /** Writes an error that comes before the stream has started. */
  error(body: string): string
}

/** The parts of an HTTP request besides the body, for dialects that put parameters there. */
export interface RequestHead {
  /** Percent-decoded once. */
  readonly path: string
  query(name: string): string | null
  header(name: string): string | undefined
}

/** Translates between one dialect and the neutral conversation and answer. */
export interface Codec {
  /** Reads a request. `call.json` is present. Throws a Refusal if the request is invalid in its own dialect. */
  readConversation(call: Call): Conversation
  /** Writes a request for an upstream of this dialect. Throws a Refusal if that would change what was asked for. */
  writeConversation(conversation: Conversation, target: ConversationTarget): string
  /** Reads a whole answer. `readAnswer` has accepted `json`. Throws a Refusal. */
  readWholeAnswer(json: unknown, source: AnswerSource): Answer
  openEventReader(source: AnswerSource): EventReader
  writeWholeAnswer(answer: Answer, target: AnswerTarget): string
  openEventWriter(target: AnswerTarget): EventWriter
  /** Follows a stream of this dialect for a caller of the same dialect. `keepsContent`: `answer` will be called. */
  followStream(target: AnswerTarget, keepsContent: boolean): StreamFollower
  /** Settings of the generation that requests of this dialect cannot have, and other dialects can. Default none. */
  readonly missingSettings?: readonly (keyof GenerationSettings)[]
  /** The least cap on output tokens that upstreams of this dialect accept. */
  readonly outputTokensMin: number
  /** Whether media at a URL must be sent inside the request. Absent: the upstream fetches every URL itself. */
  mustInline?(source: MediaSource, kind: MediaPart['kind']): boolean
}

/** The upstream that a conversation is written for. */
export interface ConversationTarget {
  readonly model: string
  readonly traits: ModelTraits
  /** The model's own limit of output tokens. */
  readonly outputTokensMax: number | undefined
  /** A cap on the output of each choice, because the balance allows no more. */
  readonly cap: number | undefined
  readonly capField: CallTarget['capField']
  readonly askUsage: boolean
  /** The optional parts of chat requests that the provider accepts. Absent: the default. */
  readonly chatFields?: readonly ChatField[]
  /** The usual fields of chat requests that the provider does not accept. */
  readonly missingChatFields?: readonly BasicChatField[]
  /** The ids of tool calls in chat requests must have exactly so many letters and digits. Absent: any form. */
  readonly callIdChars?: number | undefined
  /** Chat requests may have several system messages, anywhere. Absent: only one, at the beginning. */
  readonly systemAnywhere?: boolean
  /** Chat requests may have a message of the user directly after results of tools. Default true. */
  readonly userAfterTool?: boolean
  /** Identifies the credential and the model. Only reasoning state of the same origin is sent to the upstream. */
  readonly origin: string
  /** Media that were fetched from the URLs of the conversation, for dialects that must send them inline. */
  readonly media: ReadonlyMap<string, { readonly mime: string; readonly base64: string }>
  readonly notes: TranslationNotes
}

/** The upstream that an answer came from. */
export interface AnswerSource {
  readonly origin: string
  readonly notes: TranslationNotes
  /** Returns a new id for a tool call to which the upstream gave none. */
  mintCallId(): string
}

/**
 * Follows a stream whose caller speaks the upstream's dialect. It keeps the upstream's ids and all fields that the
 * gateway does not know. Has state: one object per stream.
 */
export interface StreamFollower {
  /** `json` is the parsed data of an event that belongs to the dialect and is no error. Throws a Refusal. */
  follow(json: unknown): void
  /** The events that end the stream after what was followed, as if the answer had reached its cap on output. */
  endEarly(usage: Usage): string
  /** The plain answer. `cut`: the usage of an answer that ends here, as if it had reached its cap on output. */
  answer(cut?: Usage): Json
}

/** The caller that an answer is written for. */
export interface AnswerTarget {
  /** The gateway's id. Callers do not see the upstream's id. */
  readonly requestId: string
  /** The model name as the caller wrote it. */
  readonly model: string
  readonly createdS: number
  /** The present time in Unix seconds, never before `createdS`. */
  nowS?(): number
  readonly wantsUsage: boolean
  readonly choices: number
  /** The caller's request, for dialects whose answers repeat it. Released when a writer is open and has content. */
  json: Readonly<Record<string, unknown>>
  readonly losses: Losses
  /**
   * Stores the reasoning state that belongs to a tool call, because callers of this dialect cannot send it back or may
   * lose it. Called once per tool call that has any state: first the state of the thoughts between the previous call
   * of the choice and this one, then the call's own state unless the answer carries it.
   */
  keep?(callId: string, sealed: readonly ReasoningState[]): void
}

/** Writes errors of one dialect. Every URL prefix uses its dialect's errors, also for URLs that serve no calls. */
export interface ErrorDialect {
  readonly name: string
  writeError(error: ErrorReply): WrittenError
  /** The dialect's own rate-limit headers, in addition to those that all dialects have. */
  quotaHeaders?(quota: QuotaReport, dateMs: number): Readonly<Record<string, string>>
}

export interface WrittenError {
  readonly status: number
  readonly body: string
  /** The error as the last events of a stream that has already started. */
  readonly events: string
}
