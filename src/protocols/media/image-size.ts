// Reads the size of an image from its header.
//
// The bytes come from a caller who may want a small size to be read here and a large one at the provider. So a header
// counts only if all decoders agree about it: no second header, and nothing between the parts of the file that some
// decoders skip. For anything else the size is unknown, and the image counts as the largest that the provider accepts.
// A decoder allocates its pixels by these headers, so the data that follow cannot make an image larger. Rotation (EXIF)
// exchanges width and height, so no rule may depend on which of them is which. Frames of an animation lie within the
// canvas, or the size of the largest frame counts; providers read the first frame.

export interface ImageSize {
  readonly width: number
  readonly height: number
}

/** Undefined: not one of these formats, or not clear. */
export function readImageSize(bytes: Buffer): ImageSize | undefined {
  const size = readHeader(bytes)
  return size !== undefined && size.width > 0 && size.height > 0 ? size : undefined
}

function readHeader(bytes: Buffer): ImageSize | undefined {
  if (bytes.length < 30) return undefined
  if (bytes.readUInt32BE(0) === 0x89504e47 && bytes.readUInt32BE(4) === 0x0d0a1a0a) return readPng(bytes)
  if (bytes[0] === 0xff && bytes[1] === 0xd8) return readJpeg(bytes)
  const start = bytes.toString('latin1', 0, 12)
  if (/^GIF8[79]a/.test(start)) return readGif(bytes)
  if (start.startsWith('RIFF') && start.endsWith('WEBP')) return readWebp(bytes)
  return start.startsWith('BM') ? readBmp(bytes) : undefined
}

const largest = (sizes: readonly ImageSize[]): ImageSize => ({
  width: Math.max(0, ...sizes.map(({ width }) => width)),
  height: Math.max(0, ...sizes.map(({ height }) => height)),
})

/** More parts of a file than any image has before its pixels. */
const PARTS_MAX = 10_000

/** The first chunk is the header. Some decoders let a second one replace it. */
function readPng(bytes: Buffer): ImageSize | undefined {
  let size: ImageSize | undefined
  for (let [at, parts] = [8, 0]; at + 8 <= bytes.length && parts < PARTS_MAX; parts++) {
    const [length, name] = [bytes.readUInt32BE(at), bytes.toString('latin1', at + 4, at + 8)]
    const isHeader = name === 'IHDR'
    if (isHeader !== (parts === 0)) return undefined
    if (isHeader) {
      if (length !== 13 || at + 16 > bytes.length) return undefined
      size = { width: bytes.readUInt32BE(at + 8), height: bytes.readUInt32BE(at + 12) }
    }
    if (name === 'IDAT') return size
    at += 12 + length
  }
  return undefined
}

/** Frame headers: SOF0 to SOF15, without the three markers in between that are something else. */
const isFrameHeader = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc

/** Segments up to the first scan. A thumbnail lies inside a segment and is skipped with it. */
function readJpeg(bytes: Buffer): ImageSize | undefined {
  let size: ImageSize | undefined
  for (let [at, parts] = [2, 0]; at + 4 <= bytes.length && parts < PARTS_MAX; parts++) {
    if (bytes[at] !== 0xff) return undefined
    const marker = bytes[at + 1]!
    if (marker === 0xda) return size
    // Markers without a length do not occur before the scan.
    const isAlone = marker === 0x00 || marker === 0x01 || marker === 0xff || (marker >= 0xd0 && marker <= 0xd9)
    const length = bytes.readUInt16BE(at + 2)
    if (isAlone || length < 2) return undefined
    if (isFrameHeader(marker)) {
      if (size !== undefined || at + 9 > bytes.length) return undefined
      size = { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) }
    }
    at += 2 + length
  }
  return undefined
}

/** Frames may be larger than the screen, and some decoders then enlarge the screen. */
function readGif(bytes: Buffer): ImageSize | undefined {
  const sizes: ImageSize[] = [{ width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) }]
  let at = 13 + tableBytes(bytes[10]!)
  for (let parts = 0; at < bytes.length && parts < PARTS_MAX; parts++) {
    const mark = bytes[at]
    if (mark === 0x3b) return sizes.length > 1 ? largest(sizes) : undefined
    if (mark === 0x21) at += 2
    else if (mark === 0x2c && at + 10 <= bytes.length) {
      const [left, top, width, height] = [1, 3, 5, 7].map(step => bytes.readUInt16LE(at + step)) as [
        number,
        number,
        number,
        number,
      ]
      sizes.push({ width: left + width, height: top + height })
      at += 11 + tableBytes(bytes[at + 9]!)
    } else return undefined
    while (at < bytes.length && bytes[at] !== 0) at += 1 + bytes[at]!
    at++
  }
  return undefined
}

/** A table of colours, if the flags say that one follows. */
const tableBytes = (flags: number): number => (flags & 0x80 ? 3 << ((flags & 7) + 1) : 0)

/** The canvas, and the picture itself, which has its own size. */
function readWebp(bytes: Buffer): ImageSize | undefined {
  const sizes: ImageSize[] = []
  for (let [at, parts] = [12, 0]; at + 8 <= bytes.length && parts < PARTS_MAX; parts++) {
    const [name, length] = [bytes.toString('latin1', at, at + 4), bytes.readUInt32LE(at + 4)]
    const size = webpSize(name, bytes.subarray(at + 8))
    if (size === 'unclear') return undefined
    if (size !== undefined) sizes.push(size)
    at += 8 + length + (length & 1)
  }
  return sizes.length > 0 ? largest(sizes) : undefined
}

function webpSize(name: string, data: Buffer): ImageSize | 'unclear' | undefined {
  if (!/^VP8[ LX]$/.test(name)) return undefined
  if (data.length < 10) return 'unclear'
  if (name === 'VP8X') return { width: data.readUIntLE(4, 3) + 1, height: data.readUIntLE(7, 3) + 1 }
  if (name === 'VP8L') {
    if (data[0] !== 0x2f) return 'unclear'
    const bits = data.readUInt32LE(1)
    return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 }
  }
  if (data.readUIntBE(3, 3) !== 0x9d012a) return 'unclear'
  return { width: data.readUInt16LE(6) & 0x3fff, height: data.readUInt16LE(8) & 0x3fff }
}

/** The height is negative if the rows are stored from the top. */
function readBmp(bytes: Buffer): ImageSize {
  const isFirstVersion = bytes.readUInt32LE(14) === 12
  return isFirstVersion
    ? { width: bytes.readUInt16LE(18), height: bytes.readUInt16LE(20) }
    : { width: Math.abs(bytes.readInt32LE(18)), height: Math.abs(bytes.readInt32LE(22)) }
}
