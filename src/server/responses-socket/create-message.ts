// Reads a message of a WebSocket, and builds from it the body that a POST /v1/responses with the same meaning has.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import type { FieldSpan } from '../../base/text/json-bytes.ts'
import { uniqueFields } from '../../protocols/openai-responses/request.ts'
import { invalid, readOptional } from '../../protocols/request/checks.ts'
import { readJsonObject } from '../../protocols/request/json-body.ts'

/** A `response.create` message. */
export interface CreateMessage {
  /** Messages with the same stream id are answered one after another. */
  readonly streamId: string | undefined
  /** `generate: false`: nothing is generated, and the next message continues from here. */
  readonly warmsUp: boolean
  readonly idempotencyKey: string | undefined
  /** The response that the message continues. */
  readonly previousId: string | undefined
  /** Whether the gateway stores the response, so that it can be continued from everywhere. */
  readonly store: boolean
  readonly bytes: Buffer
  readonly fields: ReadonlyMap<string, FieldSpan>
}

/** Fields that only messages have, and `stream`, which is implied. */
const envelope = ['type', 'stream_id', 'generate', 'idempotency_key', 'stream'] as const

/** A client tells with it that it has read a response. There is nothing to do. */
const PROCESSED = 'response.processed'

/** The parts of a message before its stream id, as clients write them: fields with short values. */
const STREAM_ID = /^\s*\{\s*(?:"\w+"\s*:\s*(?:"[^"\\]*"|[\w.+-]+)\s*,\s*)*?"stream_id"\s*:\s*"([^"\\]+)"/
const PEEKED_CHARS = 2_048

/** The stream id of a message that may be refused before it is parsed, where it is near the beginning. */
export function peekStreamId(message: string): string | undefined {
  const id = STREAM_ID.exec(message.slice(0, PEEKED_CHARS))?.[1]
  return id !== undefined && id.length <= bounds.streamIdCharsMax ? id : undefined
}

/** Undefined for a message that needs no answer. `setStream` gets the stream id even if the message is not valid. */
export function readMessage(bytes: Buffer, setStream: (id: string) => void): CreateMessage | undefined {
  const { json, fields } = readJsonObject(bytes, [...uniqueFields, ...envelope])
  if (json.type === PROCESSED) return undefined
  const streamId = readOptional(json, 'stream_id', 'text')
  if (streamId !== undefined && (streamId === '' || streamId.length > bounds.streamIdCharsMax))
    throw invalid('stream_id', `must have 1 to ${bounds.streamIdCharsMax} characters`)
  if (streamId !== undefined) setStream(streamId)
  if (json.type !== 'response.create') throw invalid('type', 'must be "response.create"')
  if (readOptional(json, 'background', 'boolean')) throw invalid('background', 'must not be true on a WebSocket')
  return {
    streamId,
    warmsUp: readOptional(json, 'generate', 'boolean') === false,
    idempotencyKey: readOptional(json, 'idempotency_key', 'text'),
    previousId: readOptional(json, 'previous_response_id', 'text'),
    store: readOptional(json, 'store', 'boolean') ?? true,
    bytes,
    fields,
  }
}

/** The input of a message as the inside of a JSON list; empty if there is none. */
export function inputItems({ bytes, fields }: CreateMessage): Buffer {
  const span = fields.get('input')
  const input = span === undefined ? Buffer.alloc(0) : bytes.subarray(span.start, span.end)
  if (input[0] === 0x5b) return emptyIfBlank(input.subarray(1, -1)) // [
  return input[0] === 0x22 ? Buffer.concat([TEXT_START, input, TEXT_END]) : Buffer.alloc(0) // "
}

const TEXT_START = Buffer.from('{"role":"user","content":')
const TEXT_END = Buffer.from('}')

const emptyIfBlank = (bytes: Buffer): Buffer => (bytes.some(byte => byte > 0x20) ? bytes : Buffer.alloc(0))

/** Joins lists of items; each one is the inside of a JSON list. */
export function joinItems(lists: readonly Buffer[]): Buffer {
  const full = lists.filter(({ length }) => length > 0)
  return Buffer.concat(full.flatMap((list, at) => (at === 0 ? [list] : [COMMA, list])))
}

const COMMA = Buffer.from(',')

/** `previous`: the items of the conversation before, where the connection has them. They become part of the input. */
export function buildBody(message: CreateMessage, previous: Buffer | undefined): Buffer {
  const { bytes, fields } = message
  const parts: Buffer[] = [Buffer.from('{"stream":true')]
  for (const [name, { start, end }] of fields) {
    if ((envelope as readonly string[]).includes(name)) continue
    if (previous !== undefined && (name === 'previous_response_id' || name === 'input')) continue
    parts.push(Buffer.from(`,${JSON.stringify(name)}:`), bytes.subarray(start, end))
  }
  if (previous !== undefined) {
    parts.push(Buffer.from(',"input":['), joinItems([previous, inputItems(message)]), Buffer.from(']'))
  }
  parts.push(Buffer.from('}'))
  const body = Buffer.concat(parts)
  if (body.length <= bounds.bodyBytesMax) return body
  throw new Refusal('body_too_large', 'with the previous turns', { hint: hintOf('call_with_turns') })
}
