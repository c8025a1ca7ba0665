// Converts the binary event stream of AWS to server-sent events, so that the rest of the gateway reads only one format.
//
// A message is: its length, the length of its headers, a checksum of both, headers, payload, a checksum of all. The
// payload of an event is {"bytes": "<base64>"}; decoded, it is the data that the same model sends without AWS.

import { crc32 } from 'node:zlib'
import { answerTooLarge } from '../base/answer-too-large.ts'
import { Refusal } from '../base/errors.ts'
import type { LastFrame, SseFrame } from './sse.ts'

const PRELUDE_BYTES = 12
const CHECKSUM_BYTES = 4
const LEAST_BYTES = PRELUDE_BYTES + CHECKSUM_BYTES

/** Takes chunks as they arrive and returns whole events, like SseSplitter. */
export class AwsEventStream {
  readonly #messageBytesMax: number
  /** First the prelude of a message, which contains its length; then the whole message. */
  #buffer: Buffer = Buffer.alloc(PRELUDE_BYTES)
  #used = 0

  constructor(messageBytesMax: number) {
    this.#messageBytesMax = messageBytesMax
  }

  /** The memory of the unfinished message. */
  get bufferedBytes(): number {
    return this.#buffer.length
  }

  push(chunk: Uint8Array): SseFrame[] {
    const frames: SseFrame[] = []
    for (let at = 0; at < chunk.byteLength; ) {
      const taken = Math.min(chunk.byteLength - at, this.#buffer.length - this.#used)
      this.#buffer.set(chunk.subarray(at, at + taken), this.#used)
      this.#used += taken
      at += taken
      if (this.#used < this.#buffer.length) break
      if (this.#used === PRELUDE_BYTES) this.#allocateMessage()
      else {
        frames.push(frameOf(this.#buffer))
        this.#buffer = Buffer.alloc(PRELUDE_BYTES)
        this.#used = 0
      }
    }
    return frames
  }

  /** An unfinished message is never an event. */
  end(): LastFrame | undefined {
    return undefined
  }

  /** Checks the checksum of the length first, so that noise cannot make the gateway wait for megabytes. */
  #allocateMessage(): void {
    const prelude = this.#buffer
    if (crc32(prelude.subarray(0, 8)) !== prelude.readUInt32BE(8)) throw broken('a length with a wrong checksum')
    const bytes = prelude.readUInt32BE(0)
    const bytesMax = this.#messageBytesMax
    if (bytes > bytesMax) throw answerTooLarge(`One event has more than ${bytesMax} bytes.`)
    if (bytes < LEAST_BYTES || prelude.readUInt32BE(4) > bytes - LEAST_BYTES) throw broken('lengths that do not fit')
    this.#buffer = Buffer.alloc(bytes)
    prelude.copy(this.#buffer)
  }
}

const broken = (detail: string): Refusal => new Refusal('upstream_failed', `event stream: ${detail}`)

function frameOf(message: Buffer): SseFrame {
  const end = message.length - CHECKSUM_BYTES
  if (crc32(message.subarray(0, end)) !== message.readUInt32BE(end)) throw broken('a message with a wrong checksum')
  const payloadAt = PRELUDE_BYTES + message.readUInt32BE(4)
  const headers = readHeaders(message.subarray(PRELUDE_BYTES, payloadAt))
  const payload = message.toString('utf8', payloadAt, end)
  if (headers.get(':message-type') === 'event') return eventFrame(payload)
  const detail = headers.get(':error-message') ?? messageIn(payload)
  return errorFrame(headers.get(':exception-type') ?? headers.get(':error-code') ?? 'unknown', detail)
}

/** The sizes of header values, by type: flags, numbers, a timestamp, a UUID; undefined for types of variable length. */
const fixedBytes: readonly (number | undefined)[] = [0, 0, 1, 2, 4, 8, undefined, undefined, 8, 16]
const TEXT = 7

/** Reads the headers that are texts; other types are not needed. */
function readHeaders(bytes: Buffer): ReadonlyMap<string, string> {
  const headers = new Map<string, string>()
  let at = 0
  const take = (count: number): Buffer => {
    if (at + count > bytes.length) throw broken('headers that do not end')
    at += count
    return bytes.subarray(at - count, at)
  }
  while (at < bytes.length) {
    const name = take(take(1).readUInt8()).toString('utf8')
    const kind = take(1).readUInt8()
    if (kind >= fixedBytes.length) throw broken('a header of an unknown kind')
    const value = take(fixedBytes[kind] ?? take(2).readUInt16BE())
    if (kind === TEXT) headers.set(name, value.toString('utf8'))
  }
  return headers
}

/** A payload without `bytes` is passed on unchanged; the reader of the dialect checks it. */
function eventFrame(payload: string): SseFrame {
  const bytes = field(payload, 'bytes')
  const data = bytes === undefined ? payload : Buffer.from(bytes, 'base64').toString('utf8')
  const type = /^\{"type":"([a-z_.]{1,64})"/.exec(data)?.[1] ?? field(data, 'type')
  const name = type !== undefined && /^[\w.]{1,64}$/.test(type) ? `event: ${type}\n` : ''
  // A line break in JSON is a space; in an event it would be another field.
  return Buffer.from(`${name}data: ${data.replace(/[\r\n]/g, ' ')}\n\n`)
}

/** The error types of events for the exceptions of AWS. */
const errorTypes: Readonly<Record<string, string>> = {
  accessDeniedException: 'permission_error',
  modelTimeoutException: 'timeout_error',
  serviceUnavailableException: 'overloaded_error',
  throttlingException: 'rate_limit_error',
  validationException: 'invalid_request_error',
}

function errorFrame(name: string, detail: string | undefined): SseFrame {
  const type = Object.hasOwn(errorTypes, name) ? errorTypes[name]! : 'api_error'
  const message = detail ?? `The upstream ended the stream: ${name}.`
  return Buffer.from(`event: error\ndata: ${JSON.stringify({ type: 'error', error: { type, message } })}\n\n`)
}

const messageIn = (payload: string): string | undefined => field(payload, 'message') ?? field(payload, 'Message')

function field(json: string, name: string): string | undefined {
  try {
    const value = (JSON.parse(json) as Readonly<Record<string, unknown>> | null)?.[name]
    return typeof value === 'string' ? value : undefined
  } catch {
    return undefined
  }
}
