// What a wire dialect must say so that the scripts and the faults can be spoken in it. A new dialect is a new row.

import type { ReceivedRequest } from './request.ts'

/** What a request asks for, read leniently: a fault is spoken whatever was asked. */
export interface Asked {
  readonly model: string
  readonly stream: boolean
  /** Whether a stream shall tell its usage. */
  readonly usageAsked: boolean
  readonly promptWords: number
  readonly outputMax: number | undefined
  readonly lastUserText: string
  /** A tool is asked for only by the last message; after its result the talk goes on in words. */
  readonly lastIsUser: boolean
  readonly choices: number
  readonly tools: readonly string[]
  /** Whether the answer must call a tool, whatever the last message says. */
  readonly mustCall: boolean
  /** Whether it may call several at once. */
  readonly parallel: boolean
  readonly stops: readonly string[]
  /** Whether the answer shall be JSON. */
  readonly json: boolean
  readonly media: readonly Media[]
  readonly thinking: Thinking
  /** Whether our opaque state came back with the calls that were just answered; undefined if none were. */
  readonly stateKept: boolean | undefined
}

/** A picture, a sound or a document in the request. */
export interface Media {
  /** Its media type, or the kind of the part where the type is not told. */
  readonly type: string
  /** Undefined when only its address is there. */
  readonly bytes: number | undefined
  /** Whether its base64 is none. */
  readonly broken: boolean
}

/** Which parts of its reasoning a model that reasons shall show. */
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

/** JSON text as it shall stand on the wire, for values that no number of ours can hold. */
export interface RawJson {
  readonly json: string
}

/** Tokens; input includes what was cached or written to the cache, output includes the reasoning. */
export interface Counts {
  readonly input: number | RawJson
  readonly output: number | RawJson
  readonly cached?: number
  readonly cacheWrite?: number
  readonly reasoning?: number
  readonly audioInput?: number
  readonly audioOutput?: number
}

export type SpokenUsage = Counts | RawJson

export interface ToolCall {
  readonly name: string
  readonly arguments: string
  /** As a stream cuts the arguments, where it may; in one piece unless told. */
  readonly cuts?: readonly string[]
  /** Made from the request unless told. */
  readonly id?: string
  /** Its place among the calls of the answer; as it stands in the list unless told. */
  readonly index?: number
}

export interface Reasoning {
  readonly text: string
  /** Signature, encrypted content or thought signature; one of ours unless told, none when null. */
  readonly state?: string | null
  /** Only the state is shown, as Anthropic does with what it must hide. */
  readonly redacted?: boolean
}

export type Finish = 'stop' | 'length' | 'tool_calls' | 'content_filter'

/** What one answer says, in this order: reasoning, text, refusal, calls. */
export interface Choice {
  readonly index: number
  readonly reasoning?: Reasoning
  /** Lazy where a stream is long; can be gone through more than once. */
  readonly pieces: Iterable<string>
  readonly refusal?: string
  readonly toolCalls?: readonly ToolCall[]
  readonly finish: Finish
  /** The stop sequence that ended it. */
  readonly stopped?: string
}

export interface Reply {
  /** Ids are made from it. */
  readonly ordinal: number
  readonly model: string
  readonly choices: readonly Choice[]
  /** Left out of the answer when undefined. */
  readonly usage: SpokenUsage | undefined
  /** Whether the other events say that they have none. */
  readonly usageAsked: boolean
  /** Whether each piece comes with its probability, where the dialect has that. */
  readonly logprobs?: boolean
  /** A usage for each piece of a stream, for providers that send one with every event. */
  readonly usageOfPiece?: (piece: number) => SpokenUsage
  /** Fields of the request that a response of the dialect tells back. */
  readonly told?: Readonly<Record<string, unknown>>
}

export interface SaidError {
  readonly message: string
  readonly type?: string
  readonly code?: string
  readonly param?: string
  /** Of the HTTP answer that it stands in, or would stand in. */
  readonly status?: number
}

/** One SSE event, and what it is for. */
export interface Frame {
  readonly kind: 'open' | 'piece' | 'finish' | 'usage' | 'done' | 'error'
  readonly event?: string
  readonly data: string
  /** How its lines end; a line feed unless told. */
  readonly newline?: '\r\n'
}

/** What a dialect has, so that a fault which it cannot commit is left out of its table. */
export interface Traits {
  /** An event that says the stream is over. */
  readonly terminal: boolean
  /** An event before the first piece. */
  readonly opening: boolean
  /** Answers that are numbered. */
  readonly choices: boolean
  /** Tool calls or blocks that are numbered. */
  readonly places: boolean
  /** A usage before the last one. */
  readonly earlyUsage: boolean
}

export interface Dialect {
  readonly name: string
  readonly traits: Traits
  read(request: ReceivedRequest): Asked
  /** Why the real provider would refuse it. */
  problem(request: ReceivedRequest): Problem | undefined
  /** The body of a whole answer. */
  plain(reply: Reply): string
  /** The events of a streamed answer, in order, from the first to the terminal one. */
  frames(reply: Reply): Iterable<Frame>
  /** The body of an error answer. */
  error(error: SaidError): string
  /** An error after the stream has begun. */
  errorFrame(error: SaidError): Frame
  /** The end of a stream that says itself that it failed, where the dialect has one. */
  failedFrame?(reply: Reply, error: SaidError): Frame
}

export function sse(frame: Frame): string {
  const newline = frame.newline ?? '\n'
  return `${frame.event === undefined ? '' : `event: ${frame.event}${newline}`}data: ${frame.data}${newline}${newline}`
}

/** Fixed, so that the same requests give the same bytes. */
export const createdS = Date.UTC(2026, 0, 1) / 1000

/** The number of a request as ids show it. */
export const base36 = (ordinal: number): string => ordinal.toString(36).padStart(6, '0')

export const textOf = (choice: Choice): string => [...choice.pieces].join('')

export const argumentPieces = (call: ToolCall): readonly string[] => call.cuts ?? [call.arguments]

/** The pieces that say something; beside tool calls an empty text is none. */
export function* spokenPieces(choice: Choice): Iterable<string> {
  for (const piece of choice.pieces) if (piece !== '' || !choice.toolCalls) yield piece
}

const statusOfType: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  permission_error: 403,
  not_found_error: 404,
  rate_limit_exceeded: 429,
  insufficient_quota: 429,
  rate_limit_error: 429,
  overloaded_error: 529,
}

/** For dialects that tell the status in the body, or name their errors by it. */
export const statusOf = (error: SaidError): number => error.status ?? statusOfType[error.type ?? ''] ?? 500

const numberJson = (value: number | RawJson): string => (typeof value === 'number' ? String(value) : value.json)

/** An object whose counts may be no JSON numbers. What is undefined is left out. */
export function countsJson(fields: Readonly<Record<string, number | RawJson | undefined>>): string {
  const told = Object.entries(fields).filter(([, value]) => value !== undefined)
  return `{${told.map(([name, value]) => `"${name}":${numberJson(value!)}`).join(',')}}`
}

/** Adds a field of raw JSON to an object, because a fault may give one that no JSON writer would write. */
export function withRaw(object: object, name: string, json: string | undefined): string {
  const text = JSON.stringify(object)
  return json === undefined ? text : `${text.slice(0, -1)},"${name}":${json}}`
}

/** A tool call counts as its name and its arguments. */
const wordsOfCall = 2

/** Counts where words begin; a list of all of them would be long for a long text. */
export function countWords(text: string): number {
  let words = 0
  for (const word = /\S+/g; word.test(text); ) words++
  return words
}

/** Every word with the space before it, so that the pieces joined are the text or, beyond the bound, its start. */
export function cutIntoWords(text: string, piecesMax: number): readonly string[] {
  return Array.from(text.matchAll(/\s*\S+|\s+$/g).take(piecesMax), match => match[0])
}

/** Words of everything that an answer says. */
export function wordsOf(choice: Choice): number {
  const { reasoning, refusal, toolCalls = [] } = choice
  const said = countWords(textOf(choice)) + countWords(refusal ?? '') + toolCalls.length * wordsOfCall
  return said + countWords(reasoning?.text ?? '')
}
