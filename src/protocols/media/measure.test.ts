// Reads sizes from the bytes of media, also of files that contradict themselves.

import { describe, expect, test } from 'bun:test'
import * as sample from '../../../test/support/sample-media.ts'
import { readImageSize } from './image-size.ts'
import { measureBytes } from './measure.ts'
import { countPdfPages } from './pdf-pages.ts'
import { readVideoSeconds } from './video-duration.ts'

const size = (width: number, height: number) => ({ width, height })

describe('the size of an image', () => {
  const formats: readonly (readonly [string, (width: number, height: number) => Buffer])[] = [
    ['PNG', sample.png],
    ['JPEG', sample.jpeg],
    ['progressive JPEG', (width, height) => sample.jpegOf(sample.jpegFrame(width, height, 0xc2))],
    ['GIF', sample.gif],
    ['WebP with a canvas', (w, h) => sample.webpOf(sample.webpCanvas(w, h), sample.webpLossy(1, 1))],
    ['lossy WebP', (width, height) => sample.webpOf(sample.webpLossy(width, height))],
    ['lossless WebP', (width, height) => sample.webpOf(sample.webpLossless(width, height))],
    ['BMP', sample.bmp],
  ]
  test.each(formats)('%s', (_name, build) => {
    for (const [width, height] of [
      [1, 1],
      [640, 480],
      [3_000, 9_000],
      [16_383, 2],
    ] as const) {
      expect(readImageSize(build(width, height))).toEqual(size(width, height))
    }
  })

  test('a JPEG whose frame header comes late is found', () => {
    const metadata = Array.from({ length: 40 }, () => sample.jpegSegment(0xe2, Buffer.alloc(60_000)))
    expect(readImageSize(sample.jpegOf(...metadata, sample.jpegFrame(640, 480)))).toEqual(size(640, 480))
  })

  test('of two sizes in one file the larger counts', () => {
    expect(readImageSize(sample.gifOf(1, 1, sample.gifFrame(900, 2), sample.gifFrame(3, 800)))).toEqual(size(900, 800))
    expect(readImageSize(sample.webpOf(sample.webpCanvas(1, 1), sample.webpLossy(900, 800)))).toEqual(size(900, 800))
    expect(readImageSize(sample.webpOf(sample.webpCanvas(900, 1), sample.webpLossless(1, 800)))).toEqual(size(900, 800))
  })

  const small = sample.pngHeader(1, 1)
  const unclear: readonly (readonly [string, Buffer])[] = [
    ['a second header', sample.pngOf(small, sample.pngHeader(8_000, 8_000))],
    ['a header that is not the first', sample.pngOf(sample.pngChunk('tEXt', Buffer.alloc(4)), small)],
    ['no pixels', Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), small])],
    ['no width', sample.png(0, 5)],
    ['two frame headers', sample.jpegOf(sample.jpegFrame(1, 1), sample.jpegFrame(8_000, 8_000))],
    ['a height that comes after the scan', sample.jpegOf(sample.jpegFrame(5, 0))],
    ['garbage that decoders skip', sample.jpegOf(Buffer.from('junk'), sample.jpegFrame(1, 1))],
    ['a scan without a frame', sample.jpegOf()],
    ['a frame header beyond the end', sample.jpeg(1, 1).subarray(0, 50)],
    ['a GIF without an end', sample.gif(1, 1).subarray(0, -1)],
    ['a GIF without a frame', sample.gifOf(1, 1)],
    ['a WebP without a picture', sample.webpOf(Buffer.from('ALPH\x10\0\0\0________________'))],
    ['HEIC', Buffer.concat([sample.mp4Box('ftyp', Buffer.from('heic0000')), Buffer.alloc(64)])],
    ['nothing', Buffer.alloc(0)],
    ['text', Buffer.from('x'.repeat(100))],
  ]
  test.each(unclear)('is unknown: %s', (_name, bytes) => expect(readImageSize(bytes)).toBeUndefined())

  test('no bytes make the reader fail or run long', () => {
    const whole = [sample.png(9, 9), sample.jpeg(9, 9), sample.gif(9, 9), sample.webpOf(sample.webpCanvas(9, 9))]
    for (const bytes of [...whole, sample.bmp(9, 9), sample.mp4(), sample.pdf('3 0 R'), sample.wav(1)]) {
      for (let end = 0; end < Math.min(bytes.length, 300); end++) {
        expect(measureBytes(bytes.subarray(0, end))).toBeObject()
      }
      for (let at = 0; at < Math.min(bytes.length, 300); at++) {
        const changed = Buffer.from(bytes)
        changed[at] = 0xff
        expect(measureBytes(changed)).toBeObject()
      }
    }
  })

  test('what is a PDF as well is no image', () => {
    const both = sample.pngOf(small, sample.pngChunk('tEXt', sample.pdf('3 0 R '.repeat(900))))
    expect(measureBytes(both).image).toBeUndefined()
    expect(measureBytes(both).pdf).toBeDefined()
  })
})

describe('the pages of a PDF', () => {
  test.each([
    ['one', '3 0 R', {}, 1],
    ['three', '3 0 R 4 0 R\n5 0\nR', { count: '3' }, 3],
    ['one that is listed many times', '3 0 R '.repeat(900), {}, 900],
    ['inside the list', '<</Type/Page>> <</Type/Page>>', {}, 3],
    // Readers differ in which of two numbers they believe.
    ['more by their number than by their list', '3 0 R', { count: '700' }, 700],
    ['a negative number', '3 0 R', { count: '-700' }, 700],
    ['outside the list', '3 0 R', { more: '4 0 obj<</Type/Page>>endobj 5 0 obj<</Type /P#61ge>>endobj ' }, 3],
  ])('%s', (_name, kids, more, pages) => expect(countPdfPages(sample.pdf(kids, more))).toBe(pages))

  test.each([
    ['a tree of two levels', '3 0 R', { more: '9 0 obj<</Kids[4 0 R 5 0 R]>>endobj' }],
    ['a second list, escaped', '3 0 R', { more: '9 0 obj<</K#69d#73 [4 0 R 5 0 R]>>endobj' }],
    ['objects in streams', '3 0 R', { more: '9 0 obj<</Type/ObjStm>>endobj' }],
    ['the same, escaped', '3 0 R', { more: '9 0 obj<</Type/#4FbjStm>>endobj' }],
    ['encryption', '3 0 R', { more: '<</Encrypt 9 0 R>>' }],
    ['a comment with a bracket', '%]\n3 0 R 3 0 R', {}],
    ['a string with a bracket', '(]) 3 0 R', {}],
    ['a number that is elsewhere', '3 0 R', { count: '9 0 R' }],
  ])('are unknown: %s', (_name, kids, more) => expect(countPdfPages(sample.pdf(kids, more))).toBeUndefined())

  test('are unknown if the list is elsewhere', () => {
    const text = sample.pdf('3 0 R').toString('latin1').replace('/Kids[3 0 R]', '/Kids 9 0 R')
    expect(countPdfPages(Buffer.from(text, 'latin1'))).toBeUndefined()
  })
})

describe('the seconds of a video', () => {
  test.each(['movie', 'track', 'edit', 'media', 'samples'])('the longest time counts: %s', place => {
    expect(readVideoSeconds(sample.mp4())).toBe(1)
    expect(readVideoSeconds(sample.mp4({ [place]: 3_000 }))).toBe(3_000)
  })
  test('a late frame makes it longer', () => expect(readVideoSeconds(sample.mp4({ offset: 3_000 }))).toBe(3_001))

  test.each([
    ['fragments', sample.mp4({ more: sample.mp4Box('moof') })],
    ['two heads', Buffer.concat([sample.mp4(), sample.mp4()])],
    ['a box beyond the end', sample.mp4().subarray(0, -5)],
    ['no head', sample.mp4Box('ftyp', Buffer.from('isom0000'))],
    ['another format', Buffer.from('1a45dfa3', 'hex')],
  ])('are unknown: %s', (_name, bytes) => expect(readVideoSeconds(bytes)).toBeUndefined())
})

test('audio is measured as for transcriptions', () => {
  expect(measureBytes(sample.wav(3))).toEqual({ audioSeconds: 3 })
  // Bytes of no known format last as long as they could at the lowest rate of speech.
  expect(measureBytes(Buffer.alloc(7_500))).toEqual({ audioSeconds: 10 })
})
