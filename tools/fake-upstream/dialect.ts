// What the fake upstream needs to know about a wire dialect, so that scripts and faults work in it.

import type { ReceivedRequest } from './request.ts'

/** What a request asks for. It is read leniently, because a fault is committed whatever the request asks for. */
export interface RequestSummary {
  readonly model: string
  readonly stream: boolean
  /** Whether a stream must report its usage. */
  readonly wantsUsage: boolean
  readonly promptWords: number
  readonly outputMax: number | undefined
  readonly lastUserText: string
  /** Whether the last message is the user's. Only then can its text ask for a tool call; a tool result gets text. */
  readonly lastIsUser: boolean
  readonly choices: number
  readonly tools: readonly string[]
  /** Whether the answer must call a tool, whatever the last message says. */
  readonly mustCall: boolean
  /** Whether the answer may hold several tool calls. */
  readonly parallel: boolean
  readonly stopSequences: readonly string[]
  /** Whether the answer must be JSON. */
  readonly wantsJson: boolean
  readonly media: readonly Media[]
  readonly thinking: Thinking
  /** Whether the reasoning state came back with the tool calls that were just answered; undefined if none were. */
  readonly stateKept: boolean | undefined
}

/** An image, a sound or a document in the request. */
export interface Media {
  /** The media type, or the kind of the part if the request has no type. */
  readonly type: string
  /** Undefined if the request only has a URL. */
  readonly bytes: number | undefined
  /** Whether the base64 is invalid. */
  readonly broken: boolean
}

/** Which parts of its reasoning a model must show. */
export interface Thinking {
  readonly off: boolean
  readonly text: boolean
  readonly state: boolean
}

/** Why a real provider would refuse a request. */
export interface Problem {
  readonly message: string
  readonly param?: string
  readonly code?: string
  readonly status?: number
}

/** JSON text that is sent as it is, for values that a JavaScript number cannot hold. */
export interface RawJson {
  readonly json: string
}

/** Token counts. Input includes tokens read from the cache and written to it; output includes reasoning. */
export interface Counts {
  readonly input: number | RawJson
  readonly output: number | RawJson
  readonly cached?: number
  readonly cacheWrite?: number
  readonly reasoning?: number
  readonly audioInput?: number
  readonly audioOutput?: number
}

export type WireUsage = Counts | RawJson

export interface ToolCall {
  readonly name: string
  readonly arguments: string
  /** How a stream cuts the arguments, if the dialect can; one piece by default. */
  readonly cuts?: readonly string[]
  /** Made from the request by default. */
  readonly id?: string
  /** The index among the calls of the answer; by default the position in the list. */
  readonly index?: number
}

export interface Reasoning {
  readonly text: string
  /** Signature, encrypted content or thought signature; issued by default, none if null. */
  readonly state?: string | null
  /** Only the state is shown, as in Anthropic's redacted thinking. */
  readonly redacted?: boolean
}

export type Finish = 'stop' | 'length' | 'tool_calls' | 'content_filter'

/** One choice of an answer, in this order: reasoning, text, refusal, calls. */
export interface Choice {
  readonly index: number
  readonly reasoning?: Reasoning
  /** May be lazy for a long stream; can be iterated more than once. */
  readonly pieces: Iterable<string>
  readonly refusal?: string
  readonly toolCalls?: readonly ToolCall[]
  readonly finish: Finish
  /** The stop sequence that ended the text. */
  readonly stopSequence?: string
}

export interface Reply {
  /** The number of the request, from which ids are made. */
  readonly ordinal: number
  readonly model: string
  readonly choices: readonly Choice[]
  /** Undefined: the answer has no usage. */
  readonly usage: WireUsage | undefined
  /** Whether the other events of a stream say that they have no usage. */
  readonly wantsUsage: boolean
  /** Whether each piece has its log probability, if the dialect has that. */
  readonly logprobs?: boolean
  /** The usage after each piece of a stream, for providers that send usage with every event. */
  readonly usageOfPiece?: (piece: number) => WireUsage
  /** Fields of the request that the response repeats. */
  readonly repeatedFields?: Readonly<Record<string, unknown>>
}

export interface ErrorFields {
  readonly message: string
  readonly type?: string
  readonly code?: string
  readonly param?: string
  /** The HTTP status of the error. */
  readonly status?: number
}

/** One server-sent event and its purpose. */
export interface Frame {
  readonly kind: 'open' | 'piece' | 'finish' | 'usage' | 'done' | 'error'
  readonly event?: string
  readonly data: string
  /** How its lines end; by default a line feed. */
  readonly newline?: '\r\n'
}

/** What a dialect has. Faults that need something else are left out of its table. */
export interface DialectTraits {
  /** A last event that ends the stream. */
  readonly terminal: boolean
  /** An event before the first piece. */
  readonly opening: boolean
  /** Numbered choices. */
  readonly choices: boolean
  /** Numbered tool calls or blocks. */
  readonly places: boolean
  /** A usage report before the last one. */
  readonly earlyUsage: boolean
}

export interface Dialect {
  readonly name: string
  readonly traits: DialectTraits
  read(request: ReceivedRequest): RequestSummary
  /** Why the real provider would refuse the request. */
  problem(request: ReceivedRequest): Problem | undefined
  /** The body of a whole answer. */
  plain(reply: Reply): string
  /** The events of a streamed answer, from the first to the last. */
  frames(reply: Reply): Iterable<Frame>
  /** The body of an error answer. */
  error(error: ErrorFields): string
  /** An error after the stream has begun. */
  errorFrame(error: ErrorFields): Frame
  /** The last event of a failed stream, if the dialect has one. */
  failedFrame?(reply: Reply, error: ErrorFields): Frame
}

export function formatEvent(frame: Frame): string {
  const newline = frame.newline ?? '\n'
  return `${frame.event === undefined ? '' : `event: ${frame.event}${newline}`}data: ${frame.data}${newline}${newline}`
}

/** Fixed, so that the same requests give the same bytes. */
export const createdS = Date.UTC(2026, 0, 1) / 1000

/** The number of a request as it appears in ids. */
export const base36 = (ordinal: number): string => ordinal.toString(36).padStart(6, '0')

export const joinPieces = (choice: Choice): string => [...choice.pieces].join('')

export const listArgumentPieces = (call: ToolCall): readonly string[] => call.cuts ?? [call.arguments]

/** The pieces of the text; empty ones are left out if there are tool calls. */
export function* listTextPieces(choice: Choice): Iterable<string> {
  for (const piece of choice.pieces) if (piece !== '' || !choice.toolCalls) yield piece
}

const STATUS_BY_TYPE: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  permission_error: 403,
  not_found_error: 404,
  rate_limit_exceeded: 429,
  insufficient_quota: 429,
  rate_limit_error: 429,
  overloaded_error: 529,
}

/** The status of an error, for dialects whose error body depends on it. */
export const findStatus = (error: ErrorFields): number => error.status ?? STATUS_BY_TYPE[error.type ?? ''] ?? 500

const numberJson = (value: number | RawJson): string => (typeof value === 'number' ? String(value) : value.json)

/** Writes an object whose counts may be raw JSON. Undefined counts are left out. */
export function writeCounts(fields: Readonly<Record<string, number | RawJson | undefined>>): string {
  const defined = Object.entries(fields).filter(([, value]) => value !== undefined)
  return `{${defined.map(([name, value]) => `"${name}":${numberJson(value!)}`).join(',')}}`
}

/** Adds a field of raw JSON to an object: a fault may need a value that JSON.stringify cannot write. */
export function addRawField(object: object, name: string, json: string | undefined): string {
  const text = JSON.stringify(object)
  return json === undefined ? text : `${text.slice(0, -1)},"${name}":${json}}`
}

/** A tool call counts as its name and its arguments. */
const WORDS_PER_CALL = 2

/** Counts words without a list of them, which would be long for a long text. */
export function countWords(text: string): number {
  let words = 0
  for (const word = /\S+/g; word.test(text); ) words++
  return words
}

/** Cuts a text into words, each with the space before it: joined, they are the text, or its start beyond `piecesMax`. */
export function cutIntoWords(text: string, piecesMax: number): readonly string[] {
  return Array.from(text.matchAll(/\s*\S+|\s+$/g).take(piecesMax), match => match[0])
}

/** Counts the words of everything in a choice. */
export function countChoiceWords(choice: Choice): number {
  const { reasoning, refusal, toolCalls = [] } = choice
  const said = countWords(joinPieces(choice)) + countWords(refusal ?? '') + toolCalls.length * WORDS_PER_CALL
  return said + countWords(reasoning?.text ?? '')
}
