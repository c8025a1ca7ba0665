// Tests that frames do not depend on how the bytes are split, and that no byte is lost or changed.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { Refusal } from '../base/errors.ts'
import { frameData, SseSplitter } from './sse.ts'

const MIB = 1024 * 1024

/** The frames of the bytes when they arrive in these pieces and then end. */
function split(pieces: readonly Uint8Array[]): string[] {
  const splitter = new SseSplitter(MIB)
  // Each frame is read at once, because it may be a view of memory that the next piece overwrites.
  const frames = pieces.flatMap(piece => splitter.push(piece).map(String))
  const last = splitter.end()
  expect(splitter.end()).toBeUndefined()
  return last?.isEnded ? [...frames, String(last.frame)] : frames
}

/** The data of each event, the last one with or without its blank line. */
function dataOf(pieces: readonly Uint8Array[]): (string | undefined)[] {
  const splitter = new SseSplitter(MIB)
  const data = pieces.flatMap(piece => splitter.push(piece).map(frameData))
  const last = splitter.end()
  return [...data, last && frameData(last.frame)].filter(data => data !== undefined)
}

const bytes = (text: string): Buffer => Buffer.from(text, 'utf8')
const splitText = (text: string): string[] => split([bytes(text)])
const byteByByte = (data: Buffer): Uint8Array[] => Array.from(data, byte => Uint8Array.of(byte))

/** Lines of a stream with every kind of ending, mixed. */
const lines = fc.constantFrom(
  ...['data: a', 'data:b', 'data', 'event: x', ': comment', 'id: 1', '', 'data: Grüße 😀', '\ufeff'],
)
const endings = fc.constantFrom('\n', '\r', '\r\n')
const streams = fc
  .array(fc.tuple(lines, endings), { maxLength: 30 })
  .map(parts => parts.map(([line, ending]) => line + ending).join(''))

/** The frames by the definition of the standard: lines end with CRLF, LF or CR, and a blank line ends an event. */
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

/** Appends to its frame each LF that arrived after its CR was taken for a line end, and so became a frame of its own. */
function joinLoneLineFeeds(frames: readonly string[]): string[] {
  const list: string[] = []
  for (const frame of frames) {
    if (frame === '\n' && list.at(-1)?.endsWith('\r')) list.push(list.pop()! + frame)
    else list.push(frame)
  }
  return list
}

describe('SseSplitter', () => {
  test('returns the same data for any line ends and any split of the bytes', () => {
    const line = fc.constantFrom('data: a', 'data:b', 'data: Grüße 😀', 'data', 'event: x', ': c', 'retry: 9')
    const events = fc.array(fc.array(line, { minLength: 1, maxLength: 4 }), { maxLength: 8 })
    const write = (list: readonly (readonly string[])[], next: () => string): string =>
      list.map(rows => rows.map(row => row + next()).join('') + next()).join('')
    fc.assert(
      fc.property(events, fc.array(endings, { minLength: 1 }), fc.nat(7), fc.boolean(), (list, ends, size, isCut) => {
        let index = 0
        // A LF after a bare CR would be the second half of one line end.
        const mixed = write(list, () => ends[index++ % ends.length]!).replace(/\r(?=\n\n)/g, '')
        const plain = write(list, () => '\n')
        const text = isCut ? mixed.replace(/[\r\n]+$/, '') : mixed
        const data = bytes(text)
        const pieces = Array.from({ length: Math.ceil(data.length / (size + 1)) }, (_, index) =>
          data.subarray(index * (size + 1), (index + 1) * (size + 1)),
        )
        expect(dataOf(pieces)).toEqual(dataOf([data]))
        if (ends.every(end => end === ends[0])) expect(dataOf(pieces)).toEqual(dataOf([bytes(plain)]))
      }),
      { numRuns: 1_000 },
    )
  })

  test('returns the same frames for any split of the bytes', () => {
    fc.assert(
      fc.property(streams, fc.array(fc.nat(400), { maxLength: 20 }), (text, positions) => {
        const data = bytes(text)
        const cuts = [0, ...positions.map(position => Math.min(position, data.length)), data.length].sort(
          (a, b) => a - b,
        )
        const pieces = cuts.slice(1).map((end, index) => data.subarray(cuts[index], end))
        const expected = splitText(text)
        for (const cut of [pieces, byteByByte(data)]) {
          expect(joinLoneLineFeeds(split(cut))).toEqual(joinLoneLineFeeds(expected))
          expect(split(cut).join('')).toBe(expected.join(''))
          expect(dataOf(cut)).toEqual(dataOf([data]))
        }
        expect(text.startsWith(expected.join(''))).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  test('returns the frames of the standard', () => {
    fc.assert(
      fc.property(streams, text => expect(splitText(text)).toEqual(framesByStandard(text))),
      { numRuns: 500 },
    )
  })

  test.each(['\n', '\r\n', '\r'])('returns two events with %j at the end of each line', ending => {
    const events = [`event: a${ending}data: 1${ending}${ending}`, `data: 2${ending}${ending}`]
    expect(splitText(events.join(''))).toEqual(events)
  })

  test('waits after a CR that ends a chunk, because its LF may come with the next one', () => {
    const splitter = new SseSplitter(MIB)
    const push = (text: string): string[] => splitter.push(bytes(text)).map(String)
    expect(push('data: 1\r\n\r')).toEqual([])
    expect(push('\ndata: 2\n\n')).toEqual(['data: 1\r\n\r\n', 'data: 2\n\n'])
    expect(push('data: 3\r')).toEqual([])
    expect(push('x\r')).toEqual([])
  })

  test('returns a complete event at once in a stream whose lines end with CR', () => {
    const splitter = new SseSplitter(MIB)
    const push = (text: string): string[] => splitter.push(bytes(text)).map(String)
    expect(push('data: 3\r')).toEqual([])
    expect(push('\r')).toEqual(['data: 3\r\r'])
    expect(push('data: 4\r\r')).toEqual(['data: 4\r\r'])
    expect(splitter.end()).toBeUndefined()
  })

  test('does not wait at the end of the stream', () => {
    expect(splitText('data: 1\r\rdata: 2\r\r')).toEqual(['data: 1\r\r', 'data: 2\r\r'])
    expect(splitText('data: 1\r\n\r')).toEqual(['data: 1\r\n\r'])
  })

  test('returns a blank line without an event as a frame of its own', () => {
    expect(splitText('\n\ndata: 1\n\n')).toEqual(['\n', '\n', 'data: 1\n\n'])
  })

  test.each(['', '\n', '\r', '\r\n'])('returns a last event that ends with %j once, with a blank line', ending => {
    const splitter = new SseSplitter(MIB)
    expect(splitter.push(bytes(`data: 1\n\ndata: 2${ending}`)).map(String)).toEqual(['data: 1\n\n'])
    const { frame, isEnded } = splitter.end()!
    expect(isEnded).toBe(false)
    expect(String(frame).replace(/\r\n/g, '\n')).toBe('data: 2\n\n')
    expect(frameData(frame)).toBe('2')
    expect(splitter.end()).toBeUndefined()
  })

  test('returns no last frame of an empty stream', () => {
    expect(new SseSplitter(MIB).end()).toBeUndefined()
  })

  test('continues the rest of a chunk with the next one', () => {
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
      expect((fault as Refusal).code).toBe('answer_too_large')
      return true
    }
  }
  const inPieces = (data: Buffer, size: number): Uint8Array[] =>
    Array.from({ length: Math.ceil(data.length / size) }, (_, index) => data.subarray(index * size, (index + 1) * size))

  test.each([16_384, 65_536, MIB - 1])('is refused in pieces of %p bytes', size => {
    expect(isRefused(inPieces(long(MIB), size))).toBe(false)
    expect(isRefused(inPieces(Buffer.concat([long(MIB + size + 1), long(9)]), size))).toBe(true)
  })

  test('is refused in one piece', () => {
    expect(isRefused([long(MIB)])).toBe(false)
    expect(isRefused([long(MIB + 1)])).toBe(true)
  })

  test('is refused if it never ends', () => {
    const piece = Buffer.alloc(100_000, 'x')
    expect(isRefused(Array.from({ length: 12 }, () => piece))).toBe(true)
  })

  test('is not the sum of many smaller events, which are accepted', () => {
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
    ['data\n\n', undefined],
    ['data:\n\n', undefined],
    ['data: \n\n', undefined],
    ['data:   \ndata\n\n', undefined],
    ['data: a\n\ufeffdata: b\n\n', 'a'],
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
