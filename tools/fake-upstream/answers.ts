// Ready-made scripts in any dialect: good answers, failures and broken streams.

import type {
  Choice,
  Counts,
  Dialect,
  ErrorFields,
  Finish,
  Frame,
  RawJson,
  Reasoning,
  Reply,
  ToolCall,
} from './dialect.ts'
import { countChoiceWords, formatEvent } from './dialect.ts'
import { findDialect } from './dialects.ts'
import type { ReceivedRequest } from './request.ts'
import type { Script, Step } from './script.ts'
import { bytes, chunk, close, end, gate, head, reset, script, scripted, toBytes, wait } from './script.ts'

export interface AnswerOptions {
  /** By default the dialect of the request's path. */
  readonly dialect?: Dialect
  /** By default words are counted, and a stream reports them if the request asks for usage. A given usage is always sent. */
  readonly usage?: Counts | RawJson | 'missing'
  readonly usageOfPiece?: (piece: number) => Counts | RawJson
  readonly finish?: Finish
  readonly toolCall?: ToolCall
  /** Several tool calls in one answer. */
  readonly toolCalls?: readonly ToolCall[]
  /** The reasoning before the answer; for a text, a state is issued. */
  readonly reasoning?: Reasoning | string
  readonly refusal?: string
  /** The number of choices, all with the same content. */
  readonly choices?: number
  readonly logprobs?: boolean
  readonly index?: number
  /** The number from which ids are made; by default that of the request. */
  readonly ordinal?: number
}

/** The last steps of a stream. */
export type EndingSteps = readonly Step[]

const streamHeaders = { 'content-type': 'text/event-stream; charset=utf-8', 'transfer-encoding': 'chunked' }
export const streamHead: Step = head(200, streamHeaders)

const dialectFor = (request: ReceivedRequest, options: AnswerOptions): Dialect =>
  options.dialect ?? findDialect(request)

function buildChoice(pieces: Iterable<string>, options: AnswerOptions): Choice {
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

/** Builds the reply of a script to this request. */
export function buildReplyTo(request: ReceivedRequest, pieces: Iterable<string>, options: AnswerOptions = {}): Reply {
  const asked = dialectFor(request, options).read(request)
  const choice = buildChoice(pieces, options)
  const count = options.choices ?? 1
  const usage = options.usage ?? { input: asked.promptWords, output: countChoiceWords(choice) * count }
  return {
    ordinal: options.ordinal ?? request.ordinal,
    model: asked.model,
    choices: Array.from({ length: count }, (_, at) => ({ ...choice, index: choice.index + at })),
    usage: usage === 'missing' ? undefined : usage,
    wantsUsage: asked.wantsUsage,
    ...(options.logprobs && { logprobs: true }),
    ...(options.usageOfPiece && { usageOfPiece: options.usageOfPiece }),
  }
}

/** The events of a stream for this request, without usage if the request does not ask for it. */
export function buildFramesTo(request: ReceivedRequest, pieces: Iterable<string>, options: AnswerOptions = {}) {
  const dialect = dialectFor(request, options)
  const hasUsage = options.usage !== undefined || dialect.read(request).wantsUsage
  return dialect.frames(buildReplyTo(request, pieces, hasUsage ? options : { ...options, usage: 'missing' }))
}

/** The body of a good answer, whole or as a stream, as the request asks for. */
export function buildBodyTo(request: ReceivedRequest, text: string, options: AnswerOptions = {}) {
  const dialect = dialectFor(request, options)
  if (!dialect.read(request).stream) {
    return { contentType: 'application/json', body: toBytes(dialect.plain(buildReplyTo(request, [text], options))) }
  }
  const events = Array.from(buildFramesTo(request, [text], options), formatEvent)
  return { contentType: streamHeaders['content-type'], body: toBytes(events.join('')) }
}

export function jsonAnswer(status: number, json: string, headers: Readonly<Record<string, string>> = {}): Step[] {
  const body = toBytes(json)
  const all = { 'content-type': 'application/json', ...headers, 'content-length': String(body.length) }
  return [head(status, all), bytes(body), end]
}

export function* frameSteps(frames: Iterable<Frame>): Iterable<Step> {
  for (const frame of frames) yield chunk(formatEvent(frame))
}

/** A good answer, whole or as a stream, as the request asks for. */
export function answer(text: string, options: AnswerOptions = {}): Script {
  const [whole, stream] = [plain(text, options), streamed([text], options)]
  return scripted(request => (dialectFor(request, options).read(request).stream ? stream : whole).steps(request))
}

/** A whole answer, even if the request asks for a stream. */
export function plain(text: string, options: AnswerOptions = {}): Script {
  return scripted(request =>
    jsonAnswer(200, dialectFor(request, options).plain(buildReplyTo(request, [text], options))),
  )
}

export function toolCall(call: ToolCall, options: AnswerOptions = {}): Script {
  return answer('', { ...options, toolCall: call })
}

/** A stream with one event for each piece, even if the request does not ask for a stream. */
export function streamed(pieces: Iterable<string>, options: AnswerOptions = {}): Script {
  return streamThrough(frames => frames, pieces, options)
}

type FrameChange = (frames: Iterable<Frame>, request: ReceivedRequest) => Iterable<Frame>

/** A stream whose events are changed before they are sent: left out, doubled, put in another order. */
export function streamThrough(
  change: FrameChange,
  pieces: Iterable<string>,
  options: AnswerOptions & { readonly ending?: EndingSteps } = {},
): Script {
  return scripted(function* steps(request) {
    yield streamHead
    yield* frameSteps(change(buildFramesTo(request, pieces, options), request))
    yield* options.ending ?? [end]
  })
}

export function* filterFrames(kinds: readonly Frame['kind'][], frames: Iterable<Frame>): Iterable<Frame> {
  for (const frame of frames) if (kinds.includes(frame.kind)) yield frame
}

/** Sends the head and the first piece at once, each further piece when its gate opens, and the rest after the last gate. */
export function pausedStream(
  pieces: readonly string[],
  gates: Promise<unknown> | readonly Promise<unknown>[],
  options: AnswerOptions = {},
): Script {
  const gateList = gates instanceof Promise ? [gates] : gates
  return scripted(function* steps(request) {
    let passed = 0
    yield streamHead
    for (const frame of buildFramesTo(request, pieces, options)) {
      const next = frame.kind === 'piece' ? gateList[passed++ - 1] : undefined
      if (next) yield gate(next)
      // Gates without a piece of their own delay the finish event.
      if (frame.kind === 'finish') for (const left of gateList.slice(Math.max(passed - 1, 0))) yield gate(left)
      yield chunk(formatEvent(frame))
    }
    yield end
  })
}

const OPENING_KINDS = ['open', 'piece'] as const

/** Closes the socket after the pieces, without finish event, last event or last chunk. */
export function truncatedStream(pieces: Iterable<string> = ['He', 'llo'], options: AnswerOptions = {}): Script {
  return streamThrough(frames => filterFrames(OPENING_KINDS, frames), pieces, { ...options, ending: [close] })
}

/** A complete HTTP body with a finish event, but without the last event of the dialect. */
export function streamWithoutDone(pieces: Iterable<string> = ['He', 'llo'], options: AnswerOptions = {}): Script {
  return streamThrough(frames => filterFrames(['open', 'piece', 'finish', 'usage'], frames), pieces, options)
}

/** Sends an error event after the pieces and ends the body. */
export function errorMidStream(
  pieces: Iterable<string> = ['He', 'llo'],
  error: ErrorFields = { message: 'The server had an error while processing your request.', type: 'server_error' },
  options: AnswerOptions = {},
): Script {
  return streamThrough(
    function* failing(frames, request) {
      yield* filterFrames(OPENING_KINDS, frames)
      yield dialectFor(request, options).errorFrame(error)
    },
    pieces,
    options,
  )
}

export function resetMidStream(pieces: Iterable<string> = ['He', 'llo'], options: AnswerOptions = {}): Script {
  return streamThrough(frames => filterFrames(OPENING_KINDS, frames), pieces, { ...options, ending: [wait(0), reset] })
}

export interface FailOptions {
  /** By default the dialect of the request's path. */
  readonly dialect?: Dialect
  readonly error?: ErrorFields
  /** The value of the header: seconds, a date, or nonsense. */
  readonly retryAfter?: string
  readonly headers?: Readonly<Record<string, string>>
}

const TYPE_BY_STATUS: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'invalid_request_error',
  403: 'invalid_request_error',
  404: 'invalid_request_error',
  429: 'rate_limit_exceeded',
}

/** An error status with a body in the provider's shape. */
export function fail(status: number, options: FailOptions = {}): Script {
  const defaultError = { message: `The upstream answers ${status}.`, type: TYPE_BY_STATUS[status] ?? 'server_error' }
  const error = { status, ...(options.error ?? defaultError) }
  const retry = options.retryAfter === undefined ? {} : { 'retry-after': options.retryAfter }
  return scripted(request =>
    jsonAnswer(status, dialectFor(request, options).error(error), { ...retry, ...options.headers }),
  )
}

/** Reads the request and never answers. */
export const silence = (): Script => script()

/** Sends bytes that are not HTTP. */
export const garbage = (): Script => script(bytes('\x16\x03\x01 this is not HTTP \x00\xff\r\n\r\n'), close)

export const resetAfterRequest = (): Script => script(reset)
