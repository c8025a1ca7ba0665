// Scripts that a test can name in one line: good answers, failures and broken streams, in any dialect.

import type {
  Choice,
  Counts,
  Dialect,
  Finish,
  Frame,
  RawJson,
  Reasoning,
  Reply,
  SaidError,
  ToolCall,
} from './dialect.ts'
import { sse, wordsOf } from './dialect.ts'
import { dialectOf } from './dialects.ts'
import type { ReceivedRequest } from './request.ts'
import type { Script, Step } from './script.ts'
import { bytes, chunk, close, end, gate, head, reset, script, scripted, toBytes, wait } from './script.ts'

export interface AnswerOptions {
  /** That of the request's path unless told. */
  readonly dialect?: Dialect
  /** Left out: words are counted, and a stream tells them if it was asked to. Given: told in any case. */
  readonly usage?: Counts | RawJson | 'missing'
  readonly usageOfPiece?: (piece: number) => Counts | RawJson
  readonly finish?: Finish
  readonly toolCall?: ToolCall
  /** Several at once. */
  readonly toolCalls?: readonly ToolCall[]
  /** What is thought before the answer; a text gets a state of ours. */
  readonly reasoning?: Reasoning | string
  readonly refusal?: string
  /** Further choices say the same. */
  readonly choices?: number
  readonly logprobs?: boolean
  readonly index?: number
  /** From which its ids are made; that of the request unless told. */
  readonly ordinal?: number
}

/** How the last part of a stream goes. */
export type Ending = readonly Step[]

const streamHeaders = { 'content-type': 'text/event-stream; charset=utf-8', 'transfer-encoding': 'chunked' }
export const streamHead: Step = head(200, streamHeaders)

const wireFor = (request: ReceivedRequest, options: AnswerOptions): Dialect => options.dialect ?? dialectOf(request)

function choiceOf(pieces: Iterable<string>, options: AnswerOptions): Choice {
  const { refusal, reasoning } = options
  const toolCalls = options.toolCalls ?? (options.toolCall && [options.toolCall])
  const finish = toolCalls ? 'tool_calls' : refusal === undefined ? 'stop' : 'content_filter'
  return {
    index: options.index ?? 0,
    pieces,
    finish: options.finish ?? finish,
    ...(toolCalls && { toolCalls }),
    ...(refusal !== undefined && { refusal }),
    ...(reasoning !== undefined && { reasoning: typeof reasoning === 'string' ? { text: reasoning } : reasoning }),
  }
}

/** The reply that a script gives to this request. */
export function replyTo(request: ReceivedRequest, pieces: Iterable<string>, options: AnswerOptions = {}): Reply {
  const asked = wireFor(request, options).read(request)
  const choice = choiceOf(pieces, options)
  const count = options.choices ?? 1
  const usage = options.usage ?? { input: asked.promptWords, output: wordsOf(choice) * count }
  return {
    ordinal: options.ordinal ?? request.ordinal,
    model: asked.model,
    choices: Array.from({ length: count }, (_, at) => ({ ...choice, index: choice.index + at })),
    usage: usage === 'missing' ? undefined : usage,
    usageAsked: asked.usageAsked,
    ...(options.logprobs && { logprobs: true }),
    ...(options.usageOfPiece && { usageOfPiece: options.usageOfPiece }),
  }
}

/** The events of a stream as this request would get them; the usage stays out if nobody wants it. */
export function framesTo(request: ReceivedRequest, pieces: Iterable<string>, options: AnswerOptions = {}) {
  const dialect = wireFor(request, options)
  const told = options.usage !== undefined || dialect.read(request).usageAsked
  return dialect.frames(replyTo(request, pieces, told ? options : { ...options, usage: 'missing' }))
}

/** A good answer as one piece of text, in the form that the request asks for. */
export function bodyTo(request: ReceivedRequest, text: string, options: AnswerOptions = {}) {
  const dialect = wireFor(request, options)
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
  return scripted(request => (wireFor(request, options).read(request).stream ? stream : whole).steps(request))
}

/** Whole, whatever was asked. */
export function plain(text: string, options: AnswerOptions = {}): Script {
  return scripted(request => jsonAnswer(200, wireFor(request, options).plain(replyTo(request, [text], options))))
}

export function toolCall(call: ToolCall, options: AnswerOptions = {}): Script {
  return answer('', { ...options, toolCall: call })
}

/** A stream, whatever was asked: one event for each piece. */
export function streamed(pieces: Iterable<string>, options: AnswerOptions = {}): Script {
  return streamThrough(frames => frames, pieces, options)
}

type FrameChange = (frames: Iterable<Frame>, request: ReceivedRequest) => Iterable<Frame>

/** A stream whose events are changed on their way: left out, doubled, put in another order. */
export function streamThrough(
  change: FrameChange,
  pieces: Iterable<string>,
  options: AnswerOptions & { readonly ending?: Ending } = {},
): Script {
  return scripted(function* steps(request) {
    yield streamHead
    yield* frameSteps(change(framesTo(request, pieces, options), request))
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
  return streamThrough(
    function* failing(frames, request) {
      yield* only(openingKinds, frames)
      yield wireFor(request, options).errorFrame(error)
    },
    pieces,
    options,
  )
}

export function resetMidStream(pieces: Iterable<string> = ['He', 'llo'], options: AnswerOptions = {}): Script {
  return streamThrough(frames => only(openingKinds, frames), pieces, { ...options, ending: [wait(0), reset] })
}

export interface FailOptions {
  /** That of the request's path unless told. */
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
  const said = { message: `The upstream answers ${status}.`, type: errorTypes[status] ?? 'server_error' }
  const error = { status, ...(options.error ?? said) }
  const retry = options.retryAfter === undefined ? {} : { 'retry-after': options.retryAfter }
  return scripted(request =>
    jsonAnswer(status, wireFor(request, options).error(error), { ...retry, ...options.headers }),
  )
}

/** Takes the request and never says anything. */
export const silence = (): Script => script()

/** Bytes that are no HTTP. */
export const garbage = (): Script => script(bytes('\x16\x03\x01 this is not HTTP \x00\xff\r\n\r\n'), close)

export const resetAfterRequest = (): Script => script(reset)
