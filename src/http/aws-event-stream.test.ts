// Tests reading messages of the vendor's own codec, however they are split, and that everything else is refused.

import { describe, expect, test } from 'bun:test'
import { EventStreamCodec } from '@smithy/eventstream-codec'
import fc from 'fast-check'
import { expectCheap } from '../../test/support/cpu.ts'
import { Refusal } from '../base/errors.ts'
import { AwsEventStream } from './aws-event-stream.ts'
import { frameData } from './sse.ts'

type Headers = Parameters<EventStreamCodec['encode']>[0]['headers']

const codec = new EventStreamCodec(
  bytes => Buffer.from(bytes as Uint8Array).toString('utf8'),
  text => Buffer.from(text),
)
const encode = (headers: Headers, body: string): Buffer =>
  Buffer.from(codec.encode({ headers, body: Buffer.from(body) }))
const text = (value: string) => ({ type: 'string' as const, value })

const eventHeaders = { ':event-type': text('chunk'), ':message-type': text('event') }
const chunk = (data: string): Buffer =>
  encode(eventHeaders, JSON.stringify({ bytes: Buffer.from(data).toString('base64'), p: 'abcd' }))
const exception = (name: string, body: string): Buffer =>
  encode({ ':exception-type': text(name), ':message-type': text('exception') }, body)

function read(...chunks: readonly Uint8Array[]): readonly string[] {
  const stream = new AwsEventStream(1024 * 1024)
  return chunks.flatMap(bytes => stream.push(bytes)).map(String)
}

test('a message becomes a server-sent event with its name and its data', () => {
  const data = '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Grüße"}}'
  expect(read(chunk(data))).toEqual([`event: content_block_delta\ndata: ${data}\n\n`])
  expect(read(chunk('{"index":0,"type":"ping"}'))).toEqual(['event: ping\ndata: {"index":0,"type":"ping"}\n\n'])
})

test('a name that could end its line is left out, and line breaks in data become spaces', () => {
  expect(read(chunk('{"type":"a\\nb"}'))).toEqual(['data: {"type":"a\\nb"}\n\n'])
  expect(read(chunk('{\r\n"a":1}'))).toEqual(['data: {  "a":1}\n\n'])
})

test('a payload without bytes is passed on unchanged', () => {
  expect(read(encode(eventHeaders, '{"a":1}'))).toEqual(['data: {"a":1}\n\n'])
  expect(read(encode(eventHeaders, 'noise'))).toEqual(['data: noise\n\n'])
  expect(read(encode(eventHeaders, 'null'))).toEqual(['data: null\n\n'])
})

test.each([
  ['throttlingException', 'rate_limit_error'],
  ['validationException', 'invalid_request_error'],
  ['accessDeniedException', 'permission_error'],
  ['serviceUnavailableException', 'overloaded_error'],
  ['modelTimeoutException', 'timeout_error'],
  ['modelStreamErrorException', 'api_error'],
  ['toString', 'api_error'],
])('the exception %s becomes an error event of the type %s', (name, type) => {
  const [frame = ''] = read(exception(name, '{"message":"Too\\nmany"}'))
  expect(frame).toStartWith('event: error\ndata: ')
  expect(JSON.parse(frameData(Buffer.from(frame))!)).toEqual({ type: 'error', error: { type, message: 'Too\nmany' } })
})

test('an error of the service has its message in headers', () => {
  const headers = { ':message-type': text('error'), ':error-code': text('InternalFailure') }
  expect(read(encode({ ...headers, ':error-message': text('Sorry') }, ''))[0]).toInclude('"Sorry"')
  expect(read(encode(headers, ''))[0]).toInclude('InternalFailure')
})

test('headers of all types are skipped', () => {
  const headers: Headers = {
    yes: { type: 'boolean', value: true },
    no: { type: 'boolean', value: false },
    byte: { type: 'byte', value: 1 },
    short: { type: 'short', value: 2 },
    whole: { type: 'integer', value: 3 },
    binary: { type: 'binary', value: Buffer.from('abc') },
    moment: { type: 'timestamp', value: new Date(0) },
    uuid: { type: 'uuid', value: '01234567-89ab-cdef-0123-456789abcdef' },
    ...eventHeaders,
  }
  expect(read(encode(headers, '{}'))).toEqual(['data: {}\n\n'])
})

test('any split of the bytes gives the same events', () => {
  const pieces = ['{"type":"message_start"}', '{"type":"ping"}', '{"type":"message_stop","x":"äöü"}']
  const bytes = Buffer.concat([...pieces.map(chunk), exception('throttlingException', '{"message":"m"}')])
  const expected = read(bytes)
  expect(expected).toHaveLength(4)
  fc.assert(
    fc.property(fc.array(fc.nat(bytes.length), { maxLength: 30 }), cuts => {
      const ends = [0, ...cuts.sort((a, b) => a - b), bytes.length]
      expect(read(...ends.slice(1).map((end, index) => bytes.subarray(ends[index], end)))).toEqual([...expected])
    }),
  )
  expect(read(...Array.from(bytes, byte => Uint8Array.of(byte)))).toEqual([...expected])
})

describe('a broken stream', () => {
  test('with any byte changed is refused', () => {
    const bytes = chunk('{"type":"ping"}')
    for (let position = 0; position < bytes.length; position++) {
      const changed = Buffer.from(bytes)
      changed[position]! ^= 1
      expect(() => read(changed)).toThrow(Refusal)
    }
  })

  test('that ends in the middle of a message returns nothing of the message', () => {
    const stream = new AwsEventStream(1024)
    expect(stream.push(chunk('{}').subarray(0, -1))).toEqual([])
    expect(stream.end()).toBeUndefined()
  })

  test('with a message beyond the bound is refused at its length', () => {
    const stream = new AwsEventStream(200)
    expect(() => stream.push(chunk('{}'.padEnd(300)).subarray(0, 12))).toThrow(Refusal)
  })

  test('of noise is refused at once, however long', async () => {
    const noise = Buffer.alloc(64 * 1024, 7)
    await expectCheap(500, () => expect(() => read(noise)).toThrow(Refusal))
  })
})

test.each([
  ['lengths that do not fit', (bytes: Buffer) => bytes.writeUInt32BE(15, 0)],
  ['headers longer than the message', (bytes: Buffer) => bytes.writeUInt32BE(bytes.length, 4)],
])('%s are refused even with a valid checksum', (_, change) => {
  const bytes = Buffer.from(chunk('{}'))
  change(bytes)
  bytes.writeUInt32BE(Bun.hash.crc32(bytes.subarray(0, 8)), 8)
  expect(() => read(bytes)).toThrow('do not fit')
})
