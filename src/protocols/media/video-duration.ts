// Reads how long a video lasts, from the tables of an MP4 or MOV file.
//
// Providers bill a video by the second, and its bytes say little: a still picture of an hour has a few kilobytes. So the
// times in the file count, and of several the longest, because the caller wrote them and each may be the one that a
// decoder uses: of the file, of each track, of its edits, and the sum of its samples with their latest offset. Files
// whose times are elsewhere (in fragments, in a compressed head) and other formats are unknown.

const [BOX_HEAD, BOX_HEAD_LONG] = [8, 16] as const
/** More boxes than the head of any video has. */
const BOXES_MAX = 1_000

const HOLDERS: ReadonlySet<string> = new Set(['moov', 'trak', 'mdia', 'minf', 'stbl', 'edts'])
/** Times may be elsewhere, or the head cannot be read. */
const UNCLEAR: ReadonlySet<string> = new Set(['moof', 'mvex', 'cmov', 'sidx', 'mfra'])

interface TrackTimes {
  /** Units per second; 0 while unknown. */
  scale: number
  /** In units of the track. */
  length: number
  offset: number
  hasSamples: boolean
}

class Unclear extends Error {}

/** Undefined: not an MP4, or not clear. */
export function readVideoSeconds(bytes: Buffer): number | undefined {
  if (bytes.length < BOX_HEAD || bytes.toString('latin1', 4, 8) !== 'ftyp') return undefined
  const movie = new MovieTimes()
  try {
    movie.read(bytes)
    return movie.seconds()
  } catch (fault) {
    // A read beyond the end of a box is a RangeError.
    if (fault instanceof Unclear || fault instanceof RangeError) return undefined
    throw fault
  }
}

class MovieTimes {
  #boxes = 0
  #scale = 0
  /** In units of the file. */
  #lengths: number[] = []
  readonly #tracks: TrackTimes[] = []

  read(bytes: Buffer): void {
    let at = 0
    while (at < bytes.length) {
      if (at + BOX_HEAD > bytes.length || ++this.#boxes > BOXES_MAX) throw new Unclear()
      const [size, name] = [bytes.readUInt32BE(at), bytes.toString('latin1', at + 4, at + 8)]
      const isLong = size === 1
      const length = isLong ? Number(bytes.readBigUInt64BE(at + BOX_HEAD)) : size === 0 ? bytes.length - at : size
      const head = isLong ? BOX_HEAD_LONG : BOX_HEAD
      if (length < head || at + length > bytes.length || UNCLEAR.has(name)) throw new Unclear()
      this.#box(name, bytes.subarray(at + head, at + length))
      at += length
    }
  }

  seconds(): number {
    const isClear = this.#scale > 0 && this.#tracks.length > 0
    if (!isClear || this.#tracks.some(({ scale, hasSamples }) => scale === 0 || !hasSamples)) throw new Unclear()
    const ofTracks = this.#tracks.map(({ scale, length, offset }) => (length + offset) / scale)
    return Math.max(...ofTracks, ...this.#lengths.map(length => length / this.#scale))
  }

  #box(name: string, data: Buffer): void {
    if (name === 'trak') this.#tracks.push({ scale: 0, length: 0, offset: 0, hasSamples: false })
    if (HOLDERS.has(name)) return this.read(data)
    const track = this.#tracks.at(-1)
    if (name === 'mvhd') this.#head(data)
    else if (name === 'tkhd') this.#lengths.push(readLength(data, [20, 28]))
    else if (name === 'elst') this.#lengths.push(sumOfEdits(data))
    else if (track === undefined) return
    else if (name === 'mdhd') {
      if (track.scale > 0) throw new Unclear()
      track.scale = readScale(data)
      track.length = Math.max(track.length, readLength(data, [16, 24]))
    } else if (name === 'stts') {
      track.hasSamples = true
      track.length = Math.max(track.length, sumOfSamples(data))
    } else if (name === 'ctts') track.offset = Math.max(track.offset, latestOffset(data))
  }

  #head(data: Buffer): void {
    if (this.#scale > 0) throw new Unclear()
    this.#scale = readScale(data)
    this.#lengths.push(readLength(data, [16, 24]))
  }
}

/** In version 1 of a box its times have eight bytes. */
const isWide = (data: Buffer): boolean => data.readUInt8(0) === 1

function readScale(data: Buffer): number {
  const scale = data.readUInt32BE(isWide(data) ? 20 : 12)
  if (scale === 0) throw new Unclear()
  return scale
}

/** A length with all bits set is unknown; the sum of the samples then counts. */
function readLength(data: Buffer, [short, wide]: readonly [number, number]): number {
  if (!isWide(data)) return withoutUnknown(data.readUInt32BE(short), 0xffffffff)
  return withoutUnknown(Number(data.readBigUInt64BE(wide)), 2 ** 64)
}

const withoutUnknown = (length: number, unknown: number): number => (length === unknown ? 0 : length)

function sumOfEdits(data: Buffer): number {
  const [count, wide] = [data.readUInt32BE(4), isWide(data)]
  let sum = 0
  for (let edit = 0; edit < count; edit++) {
    sum += wide ? Number(data.readBigUInt64BE(8 + edit * 20)) : data.readUInt32BE(8 + edit * 12)
  }
  return sum
}

function sumOfSamples(data: Buffer): number {
  let sum = 0
  for (let run = 0; run < data.readUInt32BE(4); run++) {
    sum += data.readUInt32BE(8 + run * 8) * data.readUInt32BE(12 + run * 8)
  }
  return sum
}

/** Read without a sign: a negative offset then counts as a very late one. */
function latestOffset(data: Buffer): number {
  let latest = 0
  for (let run = 0; run < data.readUInt32BE(4); run++) {
    const offset = data.readInt32BE(12 + run * 8)
    latest = Math.max(latest, isWide(data) ? offset : offset >>> 0)
  }
  return latest
}
