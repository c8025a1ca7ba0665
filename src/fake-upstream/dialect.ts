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
}

/** JSON text as it shall stand on the wire, for values that no number of ours can hold. */
export interface RawJson {
  readonly json: string
}

/** Tokens; input includes what was cached. */
export interface Counts {
  readonly input: number | RawJson
  readonly output: number | RawJson
  readonly cached?: number
}

export type SpokenUsage = Counts | RawJson

export interface ToolCall {
  readonly name: string
  readonly arguments: string
  /** Its place among the calls of the answer; 0 unless told. */
  readonly index?: number
}

export type Finish = 'stop' | 'length' | 'tool_calls'

export interface Choice {
  readonly index: number
  /** Lazy where a stream is long; can be gone through more than once. */
  readonly pieces: Iterable<string>
  readonly toolCall?: ToolCall
  readonly finish: Finish
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
  /** A usage for each piece of a stream, for providers that send one with every event. */
  readonly usageOfPiece?: (piece: number) => SpokenUsage
}

export interface SaidError {
  readonly message: string
  readonly type?: string
  readonly code?: string
  readonly param?: string
}

/** One SSE event, and what it is for. */
export interface Frame {
  readonly kind: 'open' | 'piece' | 'finish' | 'usage' | 'done' | 'error'
  readonly event?: string
  readonly data: string
}

export interface Dialect {
  readonly name: string
  read(request: ReceivedRequest): Asked
  /** The body of a whole answer. */
  plain(reply: Reply): string
  /** The events of a streamed answer, in order, from the first to the terminal one. */
  frames(reply: Reply): Iterable<Frame>
  /** The body of an error answer. */
  error(error: SaidError): string
  /** An error after the stream has begun. */
  errorFrame(error: SaidError): Frame
}

export function sse(frame: Frame): string {
  return `${frame.event === undefined ? '' : `event: ${frame.event}\n`}data: ${frame.data}\n\n`
}

/** A tool call counts as its name and its arguments. */
export const wordsOfCall = 2

/** Counts where words begin; a list of all of them would be long for a long text. */
export function countWords(text: string): number {
  let words = 0
  for (const word = /\S+/g; word.test(text);) words++
  return words
}

/** Every word with the space before it, so that the pieces joined are the text or, beyond the bound, its start. */
export function cutIntoWords(text: string, piecesMax: number): readonly string[] {
  return Array.from(text.matchAll(/\s*\S+|\s+$/g).take(piecesMax), match => match[0])
}
