// Frames do not depend on how the bytes were cut, and nothing of the bytes is lost or changed.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { Refusal } from '../base/errors.ts'
import { frameData, SseSplitter } from './sse.ts'

const MIB = 1024 * 1024

/** The frames of the bytes when they arrive in these pieces and then end. */
function split(pieces: readonly Uint8Array[]): string[] {
  const splitter = new SseSplitter(MIB)
  // Read at once: a frame may be a view of memory that the next piece overwrites.
  const frames = pieces.flatMap(piece => splitter.push(piece).map(String))
  const last = splitter.end()
  return last === undefined ? frames : [...frames, String(last)]
}

const bytes = (text: string): Buffer => Buffer.from(text, 'utf8')
const whole = (text: string): string[] => split([bytes(text)])
const byteByByte = (data: Buffer): Uint8Array[] => Array.from(data, byte => Uint8Array.of(byte))

/** Lines of a stream with every kind of ending, mixed. */
const lines = fc.constantFrom(
  ...['data: a', 'data:b', 'data', 'event: x', ': comment', 'id: 1', '', 'data: Grüße 😀', '\ufeff'],
)
const endings = fc.constantFrom('\n', '\r', '\r\n')
const streams = fc
  .array(fc.tuple(lines, endings), { maxLength: 30 })
  .map(parts => parts.map(([line, ending]) => line + ending).join(''))

/** The frames by the standard's own words: lines end with CRLF, LF or CR, and a blank line ends an event. */
function framesByStandard(text: string): string[] {
  const frames: string[] = []
  let frame = ''
  for (const [line] of text.matchAll(/[^\r\n]*(\r\n|\n|\r)/g)) {
    frame += line
    if (/^(\r\n|\n|\r)$/.test(line)) {
      frames.push(frame)
      frame = ''
    }
  }
  return frames
}

describe('SseSplitter', () => {
  test('any cut of the bytes gives the frames of the whole', () => {
    fc.assert(
      fc.property(streams, fc.array(fc.nat(400), { maxLength: 20 }), (text, places) => {
        const data = bytes(text)
        const cuts = [0, ...places.map(place => Math.min(place, data.length)), data.length].sort((a, b) => a - b)
        const pieces = cuts.slice(1).map((end, index) => data.subarray(cuts[index], end))
        const expected = whole(text)
        expect(split(pieces)).toEqual(expected)
        expect(split(byteByByte(data))).toEqual(expected)
        expect(text.startsWith(expected.join(''))).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  test('the frames are those of the standard', () => {
    fc.assert(
      fc.property(streams, text => expect(whole(text)).toEqual(framesByStandard(text))),
      { numRuns: 500 },
    )
  })

  test.each(['\n', '\r\n', '\r'])('two events with %j at the end of each line', ending => {
    const events = [`event: a${ending}data: 1${ending}${ending}`, `data: 2${ending}${ending}`]
    expect(whole(events.join(''))).toEqual(events)
  })

  test('a CR that ends a chunk waits: its LF may come with the next', () => {
    const splitter = new SseSplitter(MIB)
    const push = (text: string): string[] => splitter.push(bytes(text)).map(String)
    expect(push('data: 1\r\n\r')).toEqual([])
    expect(push('\ndata: 2\n\n')).toEqual(['data: 1\r\n\r\n', 'data: 2\n\n'])
    expect(push('data: 3\r')).toEqual([])
    expect(push('\r')).toEqual([])
    expect(push('data: 4')).toEqual(['data: 3\r\r'])
  })

  test('at the end it waits no longer', () => {
    expect(whole('data: 1\r\rdata: 2\r\r')).toEqual(['data: 1\r\r', 'data: 2\r\r'])
    expect(whole('data: 1\r\n\r')).toEqual(['data: 1\r\n\r'])
  })

  test('a blank line with nothing before it is kept, as a frame of its own', () => {
    expect(whole('\n\ndata: 1\n\n')).toEqual(['\n', '\n', 'data: 1\n\n'])
  })

  test('an event that was never finished is none', () => {
    expect(whole('data: 1\n\ndata: 2\n')).toEqual(['data: 1\n\n'])
    expect(whole('data: 1\n\ndata: 2\r')).toEqual(['data: 1\n\n'])
    expect(whole('data: 1')).toEqual([])
    expect(whole('')).toEqual([])
  })

  test('what is left of a chunk goes on with the next', () => {
    const splitter = new SseSplitter(MIB)
    const frames = [splitter.push(bytes('data: 1\n\ndata: 2')), splitter.push(bytes('\n\n'))]
    expect(frames.map(list => list.map(String))).toEqual([['data: 1\n\n'], ['data: 2\n\n']])
  })
})

describe('an event beyond the bound', () => {
  const long = (length: number): Buffer => bytes(`data: ${'x'.repeat(length - 8)}\n\n`)
  const isRefused = (pieces: readonly Uint8Array[]): boolean => {
    try {
      split(pieces)
      return false
    } catch (fault) {
      expect(fault).toBeInstanceOf(Refusal)
      expect((fault as Refusal).code).toBe('upstream_failed')
      return true
    }
  }
  const inPieces = (data: Buffer, size: number): Uint8Array[] =>
    Array.from({ length: Math.ceil(data.length / size) }, (_, at) => data.subarray(at * size, (at + 1) * size))

  test.each([16_384, 65_536, MIB - 1])('comes in pieces of %p bytes', size => {
    expect(isRefused(inPieces(long(MIB), size))).toBe(false)
    expect(isRefused(inPieces(Buffer.concat([long(MIB + size + 1), long(9)]), size))).toBe(true)
  })

  test('comes in one piece', () => {
    expect(isRefused([long(MIB)])).toBe(false)
    expect(isRefused([long(MIB + 1)])).toBe(true)
  })

  test('never ends', () => {
    const piece = Buffer.alloc(100_000, 'x')
    expect(isRefused(Array.from({ length: 12 }, () => piece))).toBe(true)
  })

  test('many events of less than it are no matter', () => {
    expect(isRefused([Buffer.concat(Array.from({ length: 40 }, () => long(100_000)))])).toBe(false)
  })
})

describe('frameData', () => {
  test.each<[string, string | undefined]>([
    ['data: hello\n\n', 'hello'],
    ['data:hello\n\n', 'hello'],
    ['data:  two blanks\n\n', ' two blanks'],
    ['data: a\ndata: b\n\n', 'a\nb'],
    ['data: a\r\ndata: b\r\n\r\n', 'a\nb'],
    ['data: a\rdata: b\r\r', 'a\nb'],
    ['data: a\r\n\n', 'a'],
    ['data\n\n', ''],
    ['data:\n\n', ''],
    ['data: \n\n', ''],
    ['event: x\ndata: a\nid: 7\n\n', 'a'],
    ['\ufeffdata: a\n\n', 'a'],
    [': comment\n\n', undefined],
    ['event: ping\n\n', undefined],
    ['database: a\n\n', undefined],
    ['DATA: a\n\n', undefined],
    [' data: a\n\n', undefined],
    ['\n', undefined],
    ['data: Grüße 😀\n\n', 'Grüße 😀'],
    ['data: a: b, data: c\n\n', 'a: b, data: c'],
    ['data: [DONE]\n\n', '[DONE]'],
  ])('of %j is %p', (frame, data) => {
    expect(frameData(bytes(frame))).toBe(data as string)
  })

  test('is the same whichever way its lines end', () => {
    const row = fc.constantFrom('data: a', 'data:', 'data', 'event: e', ': c', 'data: x y')
    const values = fc.array(row, { minLength: 1 })
    fc.assert(
      fc.property(values, rows => {
        const [lf, crlf, cr] = ['\n', '\r\n', '\r'].map(ending => frameData(bytes(rows.join(ending) + ending + ending)))
        expect([crlf, cr]).toEqual([lf, lf])
      }),
    )
  })
})
