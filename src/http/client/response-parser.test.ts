// Tests that the result does not depend on how the bytes are split, and that a response which two parsers could read
// differently is an error, or at least the last one on its connection.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { expectCheap } from '../../../test/support/cpu.ts'
import { bounds } from '../../base/bounds.ts'
import { ResponseParser } from './response-parser.ts'

interface ParseResult {
  readonly stage: string
  readonly status: number | undefined
  readonly body: string
  readonly isReusable: boolean
}

const bytes = (text: string): Buffer => Buffer.from(text, 'latin1')

/** Parses the pieces. `ends`: the connection ends after them. */
function read(pieces: readonly Uint8Array[], ends = false): ParseResult {
  const parser = new ResponseParser()
  // A parser may move bytes in its input, so each piece is copied.
  const data = pieces.map(piece => parser.push(Buffer.from(piece))).filter(piece => piece !== undefined)
  const { isReusable } = parser
  if (ends) parser.end()
  const body = Buffer.concat(data).toString('latin1')
  return { stage: parser.stage, status: parser.head?.status, body, isReusable }
}

const readText = (text: string, ends = false): ParseResult => read([bytes(text)], ends)
const byteByByte = (data: Uint8Array): Uint8Array[] => Array.from(data, byte => Uint8Array.of(byte))

function cutAt(data: Buffer, positions: readonly number[]): Buffer[] {
  const bounds = [0, ...positions.map(position => position % (data.length + 1)), data.length].sort((a, b) => a - b)
  return bounds.slice(1).map((end, index) => data.subarray(bounds[index], end))
}

const OK = 'HTTP/1.1 200 OK\r\n'
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`
const HINTS = 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 E\r\nlink: x\r\n\r\n'
const good = (body: string): object => ({ stage: 'whole', status: 200, body, isReusable: true })
const last = (body: string): object => ({ stage: 'whole', status: 200, body, isReusable: false })
const notModified = { ...last(''), status: 304 }

describe('a complete response is read', () => {
  const rows: readonly (readonly [string, string, object])[] = [
    ['with a length', `${OK}Content-Length: 5\r\n\r\nhello`, good('hello')],
    ['with a length of zero', `${OK}content-length:0\r\n\r\n`, good('')],
    ['in chunks', `${CHUNKED}5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n`, good('hello!')],
    ['in chunks with sizes in capitals', `${CHUNKED}00A\r\n0123456789\r\n0\r\n\r\n`, good('0123456789')],
    ['in chunks with extensions', `${CHUNKED}5 ;a="b;c"\r\nhello\r\n0;x\r\n\r\n`, good('hello')],
    ['in chunks with blanks after the size', `${CHUNKED}5 \t\r\nhello\r\n0\r\n\r\n`, good('hello')],
    ['in chunks with trailers', `${CHUNKED}5\r\nhello\r\n0\r\nX-Sum: 1\r\nY: \xe9\r\n\r\n`, good('hello')],
    ['chunked in capitals', `${OK}TRANSFER-ENCODING:  Chunked \r\n\r\n0\r\n\r\n`, good('')],
    ['after informational responses', `${HINTS}${CHUNKED}0\r\n\r\n`, good('')],
    ['without a reason phrase', 'HTTP/1.1 200\r\ncontent-length: 1\r\n\r\nx', good('x')],
    ['with the status 204', 'HTTP/1.1 204 No Content\r\n\r\n', { ...good(''), status: 204 }],
    ['with the status 304', 'HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\n\r\n', { ...good(''), status: 304 }],
    ['with UTF-8 in a value', `${OK}x: Gr\xc3\xbc\xc3\x9fe\r\ncontent-length: 0\r\n\r\n`, good('')],
  ]
  test.each(rows)('%s', (_name, text, expected) => {
    expect(readText(text)).toEqual(expected as ParseResult)
    expect(read(byteByByte(bytes(text)))).toEqual(expected as ParseResult)
  })
})

describe('a response is the last on its connection', () => {
  const rows: readonly (readonly [string, string, object])[] = [
    ['has Connection: close', `${OK}Connection: close\r\nContent-Length: 1\r\n\r\nx`, last('x')],
    ['has close among other connection options', `${OK}connection: x, Close\r\nContent-Length: 1\r\n\r\nx`, last('x')],
    ['is of HTTP/1.0', 'HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx', last('x')],
    ['has a length before chunks', `${OK}Content-Length: 3\r\n${CHUNKED.slice(OK.length)}0\r\n\r\n`, last('')],
    ['has a length after chunks', `${CHUNKED.slice(0, -2)}Content-Length: x\r\n\r\n1\r\nx\r\n0\r\n\r\n`, last('x')],
    ['has the same length twice', `${OK}Content-Length: 1\r\nContent-Length: 1\r\n\r\nx`, last('x')],
    ['has the same length twice in a list', `${OK}Content-Length: 1, 1\r\n\r\nx`, last('x')],
    ['has bytes after its length', `${OK}Content-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\n\r\n`, last('x')],
    ['has bytes after its chunks', `${CHUNKED}1\r\nx\r\n0\r\n\r\n\r\n`, last('x')],
    [
      'has a body although its status allows none',
      'HTTP/1.1 204 N\r\ncontent-length: 1\r\n\r\nx',
      { ...last(''), status: 204 },
    ],
    ['has chunks although its status allows none', 'HTTP/1.1 304 N\r\ntransfer-encoding: chunked\r\n\r\n', notModified],
  ]
  test.each(rows)('because it %s', (_name, text, expected) => {
    expect(readText(text)).toEqual(expected as ParseResult)
    expect(read(byteByByte(bytes(text)))).toEqual(expected as ParseResult)
  })

  test('because it ends with the connection', () => {
    const text = `${OK}\r\nas long as it lasts`
    expect(readText(text)).toMatchObject({ stage: 'body', isReusable: false })
    expect(readText(text, true)).toEqual({
      stage: 'whole',
      status: 200,
      body: 'as long as it lasts',
      isReusable: false,
    })
  })
})

describe('a response is invalid', () => {
  const heads: readonly (readonly [string, string])[] = [
    ['of another protocol', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['of HTTP/2', 'HTTP/2 200 OK\r\n\r\n'],
    ['of HTTP/1.2', 'HTTP/1.2 200 OK\r\n\r\n'],
    ['with a blank line before it', '\r\nHTTP/1.1 200 OK\r\n\r\n'],
    ['in small letters', 'http/1.1 200 OK\r\n\r\n'],
    ['with a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n'],
    ['with a status of four digits', 'HTTP/1.1 2000 OK\r\n\r\n'],
    ['with an unknown status', 'HTTP/1.1 999 OK\r\n\r\n'],
    ['with two blanks before its status', 'HTTP/1.1  200 OK\r\n\r\n'],
    ['that switches protocols', 'HTTP/1.1 101 Switching\r\nupgrade: websocket\r\n\r\n'],
    ['with bare LFs', 'HTTP/1.1 200 OK\ncontent-length: 0\n\n'],
    ['with one bare LF', `${OK}a: b\nc: d\r\n\r\n`],
    ['with a bare CR', `${OK}a: b\rc: d\r\n\r\n`],
    ['with a folded line', `${OK}a: b\r\n c\r\n\r\n`],
    ['with a folded first line', `${OK} a: b\r\n\r\n`],
    ['with a NUL', `${OK}a: b\0\r\n\r\n`],
    ['with a line without a colon', `${OK}content-length\r\n\r\n`],
    ['with a header without a name', `${OK}: 5\r\n\r\n`],
    ['with a blank before a colon', `${OK}Content-Length : 5\r\n\r\nhello`],
    ['with an invalid name', `${OK}Content(Length): 5\r\n\r\nhello`],
    ['with two lengths', `${OK}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello`],
    ['with two lengths in one header', `${OK}Content-Length: 5, 6\r\n\r\nhello`],
    ['with a length that is not a number', `${OK}Content-Length: five\r\n\r\nhello`],
    ['with a negative length', `${OK}Content-Length: -5\r\n\r\nhello`],
    ['with a sign before its length', `${OK}Content-Length: +5\r\n\r\nhello`],
    ['with a length in hexadecimal', `${OK}Content-Length: 0x5\r\n\r\nhello`],
    ['with a length and a fraction', `${OK}Content-Length: 5.0\r\n\r\nhello`],
    ['with an empty length', `${OK}Content-Length:\r\n\r\nhello`],
    ['with a non-breaking space after its length', `${OK}Content-Length: 5\xa0\r\n\r\nhello`],
    ['with a length that is too large', `${OK}Content-Length: 99999999999999999999\r\n\r\nhello`],
    ['with another encoding before the chunks', `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
    ['with chunks in chunks', `${OK}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ['with an unknown encoding', `${OK}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`],
    ['with a control character before its encoding', `${OK}Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n`],
    ['with the encoding identity', `${OK}Transfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello`],
    ['with an empty encoding', `${OK}Transfer-Encoding:\r\nContent-Length: 5\r\n\r\nhello`],
  ]
  test.each(heads)('because of a head %s', (_name, text) => {
    const expected = { stage: 'broken', status: undefined, body: '', isReusable: false }
    expect(readText(text)).toEqual(expected)
    expect(read(byteByByte(bytes(text)))).toEqual(expected)
  })

  const chunks: readonly (readonly [string, string, string])[] = [
    ['without a size', '\r\nhello\r\n0\r\n\r\n', ''],
    ['with a size that is not a number', 'zz\r\nhello\r\n', ''],
    ['with a negative size', '-5\r\nhello\r\n', ''],
    ['with a sign before the size', '+5\r\nhello\r\n', ''],
    ['with 0x before the size', '0x5\r\nhello\r\n', ''],
    ['with a blank before the size', ' 5\r\nhello\r\n', ''],
    ['with two sizes', '5 5\r\nhello\r\n', ''],
    ['with a size beyond 64 bits', 'fffffffffffffffff\r\nhello\r\n', ''],
    ['with a size of many zeros', `${'0'.repeat(40)}5\r\nhello\r\n`, ''],
    ['with a bare LF after the size', '5\nhello\r\n', ''],
    ['with a bare CR after the size', '5\rhello\r\n', ''],
    ['with a bare LF in an extension', '5;a\nb\r\nhello\r\n', ''],
    ['with a NUL in an extension', '5;a\0\r\nhello\r\n', ''],
    ['with a bare LF after the data', '5\r\nhello\n0\r\n\r\n', 'hello'],
    ['with a bare CR after the data', '5\r\nhello\r00\r\n\r\n', 'hello'],
    ['longer than its size', '2\r\nhello\r\n0\r\n\r\n', 'he'],
    ['with a bare LF in a trailer', '0\r\na: b\n\r\n', ''],
    ['with a bare LF at its end', '0\r\n\n', ''],
    ['with an endless extension', `5;${'x'.repeat(bounds.chunkOverheadBytesMax + 1)}\r\nhello\r\n`, ''],
    ['with endless trailers', `0\r\n${'a: b\r\n'.repeat(bounds.chunkOverheadBytesMax)}`, ''],
  ]
  test.each(chunks)('because of a chunk %s', (_name, text, body) => {
    const expected = { stage: 'broken', status: 200, body, isReusable: false }
    expect(readText(CHUNKED + text)).toEqual(expected)
    expect(read(byteByByte(bytes(CHUNKED + text)))).toEqual(expected)
  })

  test.each([
    ['no byte', ''],
    ['half a head', 'HTTP/1.1 200 OK\r\ncontent-'],
    ['an informational head', 'HTTP/1.1 100 Continue\r\n\r\n'],
    ['half a body', `${OK}Content-Length: 6\r\n\r\nhello`],
    ['no terminating chunk', `${CHUNKED}5\r\nhello\r\n`],
    ['half a terminating chunk', `${CHUNKED}5\r\nhello\r\n0\r\n`],
  ])('because the connection ends after %s', (_name, text) => {
    expect(readText(text)).not.toMatchObject({ stage: 'broken' })
    expect(readText(text, true)).toMatchObject({ stage: 'broken', isReusable: false })
  })

  test('because of a head beyond its bound, in one piece or many, also with informational responses before it', () => {
    const long = `${OK}x: ${'x'.repeat(bounds.responseHeadBytesMax)}\r\ncontent-length: 0\r\n\r\n`
    const many = `${OK}${'x: y\r\n'.repeat(bounds.responseHeadBytesMax / 6)}\r\n`
    const hints = `${'HTTP/1.1 103 E\r\n\r\n'.repeat(bounds.responseHeadBytesMax / 18)}${OK}content-length: 0\r\n\r\n`
    for (const text of [long, many, hints, long.slice(0, -2), hints.slice(0, -2)]) {
      expect(readText(text).stage).toBe('broken')
      expect(read(cutAt(bytes(text), [7, 1_000, 40_000])).stage).toBe('broken')
    }
    const room = bounds.responseHeadBytesMax - `${OK}x: \r\ncontent-length: 0\r\n\r\n`.length
    expect(readText(`${OK}x: ${'x'.repeat(room)}\r\ncontent-length: 0\r\n\r\n`)).toEqual(good('') as ParseResult)
  })
})

test('a head and a body in a million small pieces cost no more than their bytes', async () => {
  const head = bytes(`${OK}${'x: y\r\n'.repeat(9_000)}transfer-encoding: chunked\r\n\r\n`)
  const body = bytes('1\r\nx\r\n'.repeat(100_000))
  const readAll = () => expect(read([...byteByByte(head), ...byteByByte(body)]).body).toHaveLength(100_000)
  await expectCheap(10_000, readAll)
})

test('header values are found by names in any case, joined, and without the blanks around them', () => {
  const parser = new ResponseParser()
  parser.push(bytes(`${OK}A-b: \t 1 \r\nX: A-b: no\r\na-B:2\r\nEMPTY:\r\nContent-Length: 0\r\n\r\n`))
  expect(['a-b', 'A-B', 'x', 'empty', 'b', 'HTTP/1.1 200 OK'].map(name => parser.head!.header(name))).toEqual([
    '1, 2',
    '1, 2',
    'A-b: no',
    '',
    null,
    null,
  ])
})

describe('for any bytes,', () => {
  const body = fc.uint8Array({ maxLength: 60 }).map(data => Buffer.from(data).toString('latin1'))
  const chunkLines = fc.constantFrom('', ' ', ';x', ';a="b"')
  const chunked = fc.array(fc.tuple(body, chunkLines), { maxLength: 6 }).map(parts => ({
    framing: 'transfer-encoding: chunked\r\n',
    wire: `${parts
      .filter(([data]) => data !== '')
      .map(([data, line]) => `${data.length.toString(16)}${line}\r\n${data}\r\n`)
      .join('')}0\r\n\r\n`,
    body: parts.map(([data]) => data).join(''),
  }))
  const measured = body.map(data => ({ framing: `Content-Length: ${data.length}\r\n`, wire: data, body: data }))
  const hints = fc.constantFrom('', 'HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 103 E\r\nlink: a\r\n\r\n')
  const answers = fc.tuple(hints, fc.oneof(chunked, measured), fc.constantFrom('', 'x-a: b\r\n', 'y:\r\n'))
  const cutLists = fc.array(fc.nat(10_000), { maxLength: 12 })

  test('a valid response is read correctly, however it is split', () => {
    fc.assert(
      fc.property(answers, cutLists, ([hint, { framing, wire, body: expectedBody }, more], cuts) => {
        const data = bytes(`${hint}${OK}${more}${framing}\r\n${wire}`)
        expect(read(cutAt(data, cuts))).toEqual(good(expectedBody) as ParseResult)
        expect(read(byteByByte(data))).toEqual(good(expectedBody) as ParseResult)
        expect(read([data.subarray(0, -1)], true).stage).toBe('broken')
      }),
      { numRuns: 500 },
    )
  })

  const fragments = fc.constantFrom(
    ...['HTTP/1.1 200 OK\r\n', 'HTTP/1.0 204 X\r\n', 'HTTP/1.1 100 C\r\n\r\n', '\r\n', '\n', '\r', ' ', ':', '\0'],
    ...['content-length: 3\r\n', 'Transfer-Encoding: chunked\r\n', 'connection: close\r\n'],
    ...['3\r\nabc\r\n', '0\r\n', '5;x\r\n', 'abc'],
  )
  const noise = fc.oneof(
    fc.array(fragments, { maxLength: 14 }).map(parts => bytes(parts.join(''))),
    fc.uint8Array({ maxLength: 80 }).map(data => Buffer.concat([bytes(CHUNKED), data])),
    fc.uint8Array({ maxLength: 40 }).map(data => Buffer.from(data)),
  )

  test('the result for any bytes does not depend on the split, and nothing throws', () => {
    fc.assert(
      fc.property(noise, cutLists, fc.boolean(), (data, cuts, ends) => {
        const expected = read([data], ends)
        expect(read(cutAt(data, cuts), ends)).toEqual(expected)
        expect(read(byteByByte(data), ends)).toEqual(expected)
      }),
      { numRuns: 2_000 },
    )
  })
})
