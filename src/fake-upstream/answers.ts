// Scripts that a test can name in one line: good answers, failures and broken streams, in any dialect.

import { chatWire } from './chat-wire.ts'
import { countWords, sse, wordsOfCall } from './dialect.ts'
import type { Asked, Choice, Counts, Dialect, Finish, Frame, RawJson, Reply, SaidError, ToolCall } from './dialect.ts'
import type { ReceivedRequest } from './request.ts'
import { bytes, chunk, close, end, gate, head, reset, script, scripted, toBytes, wait } from './script.ts'
import type { Script, Step } from './script.ts'

export interface AnswerOptions {
  readonly dialect?: Dialect
  /** Left out: words are counted, and a stream tells them if it was asked to. Given: told in any case. */
  readonly usage?: Counts | RawJson | 'missing'
  readonly usageOfPiece?: (piece: number) => Counts | RawJson
  readonly finish?: Finish
  readonly toolCall?: ToolCall
  readonly index?: number
  /** From which its ids are made; that of the request unless told. */
  readonly ordinal?: number
}

/** How the last part of a stream goes. */
export type Ending = readonly Step[]

export const streamHeaders = { 'content-type': 'text/event-stream; charset=utf-8', 'transfer-encoding': 'chunked' }
export const streamHead: Step = head(200, streamHeaders)

function usageFor(options: AnswerOptions, count: () => Counts): Counts | RawJson | undefined {
  if (options.usage === 'missing') return undefined
  return options.usage ?? count()
}

/** The reply that a script gives to this request. */
export function replyTo(request: ReceivedRequest, pieces: Iterable<string>, options: AnswerOptions = {}): Reply {
  const asked = (options.dialect ?? chatWire).read(request)
  const choice: Choice = {
    index: options.index ?? 0,
    pieces,
    finish: options.finish ?? (options.toolCall ? 'tool_calls' : 'stop'),
    ...(options.toolCall && { toolCall: options.toolCall }),
  }
  const output = () => options.toolCall ? wordsOfCall : countWords([...pieces].join(''))
  return {
    ordinal: options.ordinal ?? request.ordinal,
    model: asked.model,
    choices: [choice],
    usage: usageFor(options, () => ({ input: asked.promptWords, output: output() })),
    usageAsked: asked.usageAsked,
    ...(options.usageOfPiece && { usageOfPiece: options.usageOfPiece }),
  }
}

/** The events of a stream as this request would get them; the usage stays out if nobody wants it. */
export function framesTo(request: ReceivedRequest, pieces: Iterable<string>, options: AnswerOptions = {}) {
  const dialect = options.dialect ?? chatWire
  const told = options.usage !== undefined || dialect.read(request).usageAsked
  return dialect.frames(replyTo(request, pieces, told ? options : { ...options, usage: 'missing' }))
}

/** A good answer as one piece of text, in the form that the request asks for. */
export function bodyTo(request: ReceivedRequest, text: string, options: AnswerOptions = {}) {
  const dialect = options.dialect ?? chatWire
  if (!dialect.read(request).stream) {
    return { contentType: 'application/json', body: toBytes(dialect.plain(replyTo(request, [text], options))) }
  }
  const events = Array.from(framesTo(request, [text], options), sse)
  return { contentType: streamHeaders['content-type'], body: toBytes(events.join('')) }
}

export function jsonAnswer(status: number, json: string, headers: Readonly<Record<string, string>> = {}): Step[] {
  const body = toBytes(json)
  const all = { 'content-type': 'application/json', ...headers, 'content-length': String(body.length) }
  return [head(status, all), bytes(body), end]
}

export function* frameSteps(frames: Iterable<Frame>): Iterable<Step> {
  for (const frame of frames) yield chunk(sse(frame))
}

/** As the request asks: whole, or as a stream. */
export function answer(text: string, options: AnswerOptions = {}): Script {
  const [whole, stream] = [plain(text, options), streamed([text], options)]
  return scripted(request => {
    const asked: Asked = (options.dialect ?? chatWire).read(request)
    return (asked.stream ? stream : whole).steps(request)
  })
}

/** Whole, whatever was asked. */
export function plain(text: string, options: AnswerOptions = {}): Script {
  const dialect = options.dialect ?? chatWire
  return scripted(request => jsonAnswer(200, dialect.plain(replyTo(request, [text], options))))
}

export function toolCall(call: ToolCall, options: AnswerOptions = {}): Script {
  return answer('', { ...options, toolCall: call })
}

/** A stream, whatever was asked: one event for each piece. */
export function streamed(pieces: Iterable<string>, options: AnswerOptions = {}): Script {
  return streamThrough(frames => frames, pieces, options)
}

/** A stream whose events are changed on their way: left out, doubled, put in another order. */
export function streamThrough(
  change: (frames: Iterable<Frame>) => Iterable<Frame>,
  pieces: Iterable<string>,
  options: AnswerOptions & { readonly ending?: Ending } = {},
): Script {
  return scripted(function* steps(request) {
    yield streamHead
    yield* frameSteps(change(framesTo(request, pieces, options)))
    yield* options.ending ?? [end]
  })
}

export function* only(kinds: readonly Frame['kind'][], frames: Iterable<Frame>): Iterable<Frame> {
  for (const frame of frames) if (kinds.includes(frame.kind)) yield frame
}

/** The head and the first piece at once; each further piece when its gate opens, and the rest after the last gate. */
export function pausedStream(
  pieces: readonly string[],
  gates: Promise<unknown> | readonly Promise<unknown>[],
  options: AnswerOptions = {},
): Script {
  const waiting = gates instanceof Promise ? [gates] : gates
  return scripted(function* steps(request) {
    let passed = 0
    yield streamHead
    for (const frame of framesTo(request, pieces, options)) {
      const next = frame.kind === 'piece' ? waiting[passed++ - 1] : undefined
      if (next) yield gate(next)
      // Without a second piece the gates stand before the finish.
      if (frame.kind === 'finish') for (const left of waiting.slice(Math.max(passed - 1, 0))) yield gate(left)
      yield chunk(sse(frame))
    }
    yield end
  })
}

const openingKinds = ['open', 'piece'] as const

/** Breaks off after the pieces: FIN, without finish, terminal event or terminating chunk. */
export function truncatedStream(pieces: Iterable<string> = ['He', 'llo'], options: AnswerOptions = {}): Script {
  return streamThrough(frames => only(openingKinds, frames), pieces, { ...options, ending: [close] })
}

/** Finishes, and the HTTP body ends well, but the terminal event is missing. */
export function streamWithoutDone(pieces: Iterable<string> = ['He', 'llo'], options: AnswerOptions = {}): Script {
  return streamThrough(frames => only(['open', 'piece', 'finish', 'usage'], frames), pieces, options)
}

/** Says an error after the pieces and ends the body. */
export function errorMidStream(
  pieces: Iterable<string> = ['He', 'llo'],
  error: SaidError = { message: 'The server had an error while processing your request.', type: 'server_error' },
  options: AnswerOptions = {},
): Script {
  const frame = (options.dialect ?? chatWire).errorFrame(error)
  return streamThrough(
    function* failing(frames) {
      yield* only(openingKinds, frames)
      yield frame
    },
    pieces,
    options,
  )
}

export function resetMidStream(pieces: Iterable<string> = ['He', 'llo'], options: AnswerOptions = {}): Script {
  return streamThrough(frames => only(openingKinds, frames), pieces, { ...options, ending: [wait(0), reset] })
}

export interface FailOptions {
  readonly dialect?: Dialect
  readonly error?: SaidError
  /** As it stands in the header: seconds, a date, or nonsense. */
  readonly retryAfter?: string
  readonly headers?: Readonly<Record<string, string>>
}

const errorTypes: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'invalid_request_error',
  403: 'invalid_request_error',
  404: 'invalid_request_error',
  429: 'rate_limit_exceeded',
}

/** An error status with a body in the provider's shape. */
export function fail(status: number, options: FailOptions = {}): Script {
  const error = { message: `The upstream answers ${status}.`, type: errorTypes[status] ?? 'server_error' }
  const json = (options.dialect ?? chatWire).error(options.error ?? error)
  const retry = options.retryAfter === undefined ? {} : { 'retry-after': options.retryAfter }
  return script(...jsonAnswer(status, json, { ...retry, ...options.headers }))
}

/** Takes the request and never says anything. */
export const silence = (): Script => script()

/** Bytes that are no HTTP. */
export const garbage = (): Script => script(bytes('\x16\x03\x01 this is not HTTP \x00\xff\r\n\r\n'), close)

export const resetAfterRequest = (): Script => script(reset)
