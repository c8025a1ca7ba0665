// Builds small media files whose headers declare any size.

const u16 = (value: number): Buffer => Buffer.from([value >> 8, value & 255])
const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
const le = (value: number, bytes: number): Buffer => {
  const into = Buffer.alloc(bytes)
  into.writeUIntLE(value, 0, bytes)
  return into
}
const filler = Buffer.alloc(32)

export const pngChunk = (name: string, data: Buffer): Buffer =>
  Buffer.concat([u32(data.length), Buffer.from(name), data, u32(0)])
export const pngHeader = (width: number, height: number): Buffer =>
  pngChunk('IHDR', Buffer.concat([u32(width), u32(height), Buffer.from([8, 2, 0, 0, 0])]))
export const pngOf = (...chunks: readonly Buffer[]): Buffer =>
  Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), ...chunks, pngChunk('IDAT', filler)])
export const png = (width: number, height: number): Buffer => pngOf(pngHeader(width, height))

export const jpegSegment = (marker: number, data: Buffer): Buffer =>
  Buffer.concat([Buffer.from([0xff, marker]), u16(data.length + 2), data])
export const jpegFrame = (width: number, height: number, marker = 0xc0): Buffer =>
  jpegSegment(marker, Buffer.concat([Buffer.from([8]), u16(height), u16(width), Buffer.from([1, 1, 0x11, 0])]))
export const jpegOf = (...segments: readonly Buffer[]): Buffer =>
  Buffer.concat([Buffer.from([0xff, 0xd8]), ...segments, jpegSegment(0xda, Buffer.alloc(6)), filler])
/** With a thumbnail of another size in its metadata. */
export const jpeg = (width: number, height: number): Buffer =>
  jpegOf(jpegSegment(0xe1, Buffer.concat([Buffer.from('Exif\0\0'), jpegOf(jpegFrame(9, 9))])), jpegFrame(width, height))

export const gifFrame = (width: number, height: number): Buffer =>
  Buffer.concat([Buffer.from([0x2c, 0, 0, 0, 0]), le(width, 2), le(height, 2), Buffer.from([0, 2, 1, 0, 0])])
export const gifOf = (width: number, height: number, ...frames: readonly Buffer[]): Buffer =>
  Buffer.concat([
    Buffer.from('GIF89a'),
    le(width, 2),
    le(height, 2),
    Buffer.from([0x80, 0, 0]),
    Buffer.alloc(6),
    Buffer.from([0x21, 0xf9, 4, 0, 0, 0, 0, 0]),
    ...frames,
    Buffer.from([0x3b]),
  ])
export const gif = (width: number, height: number): Buffer => gifOf(width, height, gifFrame(width, height))

const riffChunk = (name: string, data: Buffer): Buffer => Buffer.concat([Buffer.from(name), le(data.length, 4), data])
export const webpCanvas = (width: number, height: number): Buffer =>
  riffChunk('VP8X', Buffer.concat([Buffer.alloc(4), le(width - 1, 3), le(height - 1, 3)]))
export const webpLossy = (width: number, height: number): Buffer =>
  riffChunk('VP8 ', Buffer.concat([Buffer.from('0000009d012a', 'hex'), le(width, 2), le(height, 2), filler]))
export const webpLossless = (width: number, height: number): Buffer =>
  riffChunk('VP8L', Buffer.concat([Buffer.from([0x2f]), le((width - 1) | ((height - 1) << 14), 4), filler.subarray(1)]))
export function webpOf(...chunks: readonly Buffer[]): Buffer {
  const data = Buffer.concat([Buffer.from('WEBP'), ...chunks])
  return riffChunk('RIFF', data)
}

export const bmp = (width: number, height: number): Buffer =>
  Buffer.concat([Buffer.from('BM'), Buffer.alloc(12), le(40, 4), le(width, 4), le(height, 4), filler])

/** A PDF in the open, whose list of pages is `kids`. */
export const pdf = (kids: string, { count = '1', more = '' } = {}): Buffer =>
  Buffer.from(
    '%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n' +
      `2 0 obj<</Type/Pages/Kids[${kids}]/Count ${count}>>endobj\n` +
      `3 0 obj<</Type/Page/Parent 2 0 R>>endobj\n${more}trailer<</Root 1 0 R>>\n%%EOF`,
  )

const box = (name: string, ...data: readonly Buffer[]): Buffer => {
  const inside = Buffer.concat(data)
  return Buffer.concat([u32(inside.length + 8), Buffer.from(name), inside])
}

interface Times {
  /** The duration that each box declares, in seconds. */
  readonly movie?: number
  readonly track?: number
  readonly edit?: number
  readonly media?: number
  readonly samples?: number
  readonly offset?: number
  readonly more?: Buffer
}

/** An MP4 with the given durations. */
export function mp4({ movie = 1, track = 1, edit = 1, media = 1, samples = 1, offset = 0, more }: Times = {}): Buffer {
  const ms = (seconds: number): Buffer => u32(seconds * 1_000)
  const scale = u32(1_000)
  const none = (bytes: number): Buffer => Buffer.alloc(bytes)
  const table = box(
    'stbl',
    box('stts', none(4), u32(2), u32(1), ms(samples / 2), u32(1), ms(samples / 2)),
    box('ctts', none(4), u32(1), u32(1), ms(offset)),
  )
  const trak = box(
    'trak',
    box('tkhd', none(20), ms(track), none(60)),
    box('edts', box('elst', none(4), u32(1), ms(edit), none(8))),
    box('mdia', box('mdhd', none(12), scale, ms(media), none(4)), box('minf', table)),
  )
  const head = box('moov', box('mvhd', none(12), scale, ms(movie), none(80)), trak)
  return Buffer.concat([box('ftyp', Buffer.from('isom0000')), head, more ?? box('mdat', none(64))])
}
export const mp4Box = box

/** Uncompressed audio at 8 kHz, one byte for a sample. */
export const wav = (seconds: number): Buffer => {
  const data = Buffer.alloc(seconds * 8_000)
  const format = Buffer.concat([le(1, 2), le(1, 2), le(8_000, 4), le(8_000, 4), le(1, 2), le(8, 2)])
  return riffChunk('RIFF', Buffer.concat([Buffer.from('WAVE'), riffChunk('fmt ', format), riffChunk('data', data)]))
}

export const dataUrl = (mime: string, bytes: Buffer): string => `data:${mime};base64,${bytes.toString('base64')}`
