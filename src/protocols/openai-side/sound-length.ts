// How long a sound lasts, read from its bytes as a decoder reads them.
//
// What a header claims of its length is the caller's word and no more: frames and packets are counted as a decoder
// reads them, and a claim counts only where it is the greater, and no greater than the bytes could last at the lowest
// rate of speech. That is also how long a sound is taken to be which is in no format of the table below, or which has
// too many bytes that belong to no frame.
//
// | format           | counted                                                     | claimed                    |
// |------------------|-------------------------------------------------------------|----------------------------|
// | WAV (RIFF, RF64) | all bytes after the head of its data, by the size of samples | nothing                    |
// | MP3, AAC (ADTS)  | frames, of a constant or a variable rate                    | nothing                    |
// | FLAC             | frames                                                      | nothing                    |
// | Ogg              | packets of Opus, of Vorbis by their kind, else by 20 ms     | granules                   |
// | WebM, Matroska   | packets of Opus and AAC, else by 20 ms                      | duration, the last time    |
// | MP4, M4A         | samples of AAC, ALAC and Opus                               | durations, sums of times   |
// | AMR, AMR-WB      | frames                                                      | nothing                    |
//
// Everything is read once from front to back, and no step goes back: the work is linear in the bytes. What has more
// tags, chunks, elements, boxes or tracks than any recording is not read to its end, and not known.

export interface SoundLength {
  /** As far as its bytes tell; rounded up. */
  readonly seconds: number
  /** No decoder makes more of it. */
  readonly secondsMax: number
}

/** Of sound in a second, at as little as speech is ever pressed into. */
const SECOND_BYTES_MIN = 750

/** Bytes that belong to no frame may be so many of all before the sound is not what it seems. */
const STRAY_MAX = 0.1
const STRAY_AT_ONCE = 64 * 1024

const TAGS_MAX = 16
const CHUNKS_MAX = 10_000
const ELEMENTS_MAX = 1_000_000
/** Frames and packets: eleven hours of twenty milliseconds each. */
const FRAMES_MAX = 2_000_000
const HEADS_MAX = 500_000
const BOXES_MAX = 200_000
const TRACKS_MAX = 64

interface Measured {
  readonly counted: number
  readonly claimed?: number
  /** Where a decoder could make more of it. */
  readonly secondsMax?: number
  /** Bytes that are neither a frame nor a tag. */
  readonly strayBytes?: number
}

type Measure = (bytes: Buffer) => Measured | undefined

/** How each format begins, after tags of ID3, and how it is measured. The first that fits is taken. */
const formats: readonly (readonly [begins: (bytes: Buffer) => boolean, measure: Measure])[] = [
  [bytes => /^(RIFF|RF64|BW64)$/.test(text(bytes, 0, 4)) && text(bytes, 8, 4) === 'WAVE', measureWav],
  [bytes => text(bytes, 0, 4) === 'fLaC', measureFlac],
  [bytes => text(bytes, 0, 4) === 'OggS', measureOgg],
  [bytes => bytes.length >= 4 && bytes.readUInt32BE(0) === 0x1a45dfa3, measureMatroska],
  [bytes => /^(ftyp|moov|mdat|free|skip|wide|styp|moof)$/.test(text(bytes, 4, 4)), measureMp4],
  [bytes => text(bytes, 0, 5) === '#!AMR', measureAmr],
  [bytes => bytes[0] === 0xff && (bytes[1]! & 0xf6) === 0xf0, bytes => measureFrames(bytes, adtsFrame)],
  [bytes => bytes[0] === 0xff && (bytes[1]! & 0xe0) === 0xe0, bytes => measureFrames(bytes, mp3Frame)],
]

export function soundLength(bytes: Buffer): SoundLength {
  const atLowestRate = Math.ceil(bytes.length / SECOND_BYTES_MIN)
  const sound = withoutTags(bytes)
  const measured = formats.find(([begins]) => begins(sound))?.[1](sound)
  const { counted = 0, claimed = 0, secondsMax = 0, strayBytes = 0 } = measured ?? {}
  const isKnown = counted + claimed > 0 && strayBytes <= sound.length * STRAY_MAX
  const length = Math.max(counted, isKnown ? Math.min(claimed, atLowestRate) : atLowestRate)
  const seconds = wholeSeconds(length)
  return { seconds, secondsMax: Math.max(seconds, wholeSeconds(Math.min(secondsMax, atLowestRate))) }
}

/** Rounded up, but not for what adding many small numbers leaves. */
const wholeSeconds = (seconds: number): number => Math.max(1, Math.ceil(seconds - 1e-6))

const text = (bytes: Buffer, at: number, length: number): string => bytes.toString('latin1', at, at + length)

/** ID3v2 in front of it, as often as it is there. */
function withoutTags(bytes: Buffer): Buffer {
  let at = 0
  for (let tags = 0; tags < TAGS_MAX && at + 10 <= bytes.length && text(bytes, at, 3) === 'ID3'; tags++) {
    const size = ((bytes[at + 6]! & 127) << 21) | ((bytes[at + 7]! & 127) << 14) | ((bytes[at + 8]! & 127) << 7)
    at += 10 + size + (bytes[at + 9]! & 127) + (bytes[at + 5]! & 16 ? 10 : 0)
  }
  return bytes.subarray(Math.min(at, bytes.length))
}

// WAV

/** Codes of formats whose samples have a fixed size: integers, floats, A-law and µ-law. */
const PLAIN_WAVE: ReadonlySet<number> = new Set([1, 3, 6, 7])
const EXTENSIBLE = 0xfffe

function measureWav(bytes: Buffer): Measured | undefined {
  let secondBytes = 0
  for (let [at, chunks] = [12, 0]; chunks < CHUNKS_MAX && at + 8 <= bytes.length; chunks++) {
    const [name, size] = [text(bytes, at, 4), bytes.readUInt32LE(at + 4)]
    const start = at + 8
    if (name === 'fmt ' && start + 16 <= bytes.length) {
      const code = bytes.readUInt16LE(start)
      const own = code === EXTENSIBLE && start + 26 <= bytes.length ? bytes.readUInt16LE(start + 24) : code
      if (!PLAIN_WAVE.has(own)) return undefined
      const [channels, rate] = [bytes.readUInt16LE(start + 2), bytes.readUInt32LE(start + 4)]
      secondBytes = channels * rate * Math.ceil(bytes.readUInt16LE(start + 14) / 8)
    }
    // Whatever size it claims: a decoder may read on to the end.
    if (name === 'data') return secondBytes > 0 ? { counted: (bytes.length - start) / secondBytes } : undefined
    at = start + size + (size & 1)
  }
  return undefined
}

// MP3 and AAC in ADTS: each frame says how long it is in bytes and in samples

interface Frame {
  readonly bytes: number
  readonly seconds: number
}

type ReadFrame = (bytes: Buffer, at: number) => Frame | undefined

function measureFrames(bytes: Buffer, read: ReadFrame): Measured | undefined {
  let [at, seconds, strayBytes] = [0, 0, 0]
  for (let frames = 0; at + 7 <= bytes.length; ) {
    if (frames > FRAMES_MAX || strayBytes > STRAY_AT_ONCE + at * STRAY_MAX) return undefined
    const frame = read(bytes, at)
    if (frame !== undefined) {
      frames++
      seconds += frame.seconds
      at += frame.bytes
      continue
    }
    // A decoder looks for the next frame, too.
    const next = bytes.indexOf(0xff, at + 1)
    const found = next < 0 ? bytes.length : next
    const tag = tagBytes(bytes, at)
    if (tag === 0) strayBytes += found - at
    at = tag === 0 ? found : at + tag
  }
  return { counted: seconds, strayBytes }
}

/** Of a tag behind the sound, or between two sounds; 0 where there is none. */
function tagBytes(bytes: Buffer, at: number): number {
  if (bytes[at] === 0x54 && text(bytes, at, 3) === 'TAG') return 128
  if (bytes[at] !== 0x41 || at + 32 > bytes.length || text(bytes, at, 8) !== 'APETAGEX') return 0
  return 32 + bytes.readUInt32LE(at + 12)
}

const kbits = {
  1: { 1: [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448], // layer I
    2: [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
    3: [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320] },
  2: { 1: [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
    2: [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
    3: [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160] },
} as const

const RATES = [44_100, 48_000, 32_000] as const

function mp3Frame(bytes: Buffer, at: number): Frame | undefined {
  if (bytes[at] !== 0xff || (bytes[at + 1]! & 0xe0) !== 0xe0) return undefined
  const version = (bytes[at + 1]! >> 3) & 3 // 0 is 2.5, 2 is 2, 3 is 1
  const layer = 4 - ((bytes[at + 1]! >> 1) & 3)
  const [rateAt, index] = [(bytes[at + 2]! >> 2) & 3, bytes[at + 2]! >> 4]
  if (version === 1 || layer === 4 || rateAt === 3 || index === 0 || index === 15) return undefined
  const rate = RATES[rateAt]! / (version === 3 ? 1 : version === 2 ? 2 : 4)
  const kbit = kbits[version === 3 ? 1 : 2][layer as 1 | 2 | 3][index - 1]!
  const padding = (bytes[at + 2]! >> 1) & 1
  const samples = layer === 1 ? 384 : layer === 3 && version !== 3 ? 576 : 1_152
  const size = layer === 1
    ? (Math.floor((12 * kbit * 1_000) / rate) + padding) * 4
    : Math.floor((samples * kbit * 125) / rate) + padding
  return { bytes: size, seconds: samples / rate }
}

const AAC_RATES = [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350]
const AAC_SAMPLES = 1_024

function adtsFrame(bytes: Buffer, at: number): Frame | undefined {
  if (bytes[at] !== 0xff || (bytes[at + 1]! & 0xf6) !== 0xf0) return undefined
  const rate = AAC_RATES[(bytes[at + 2]! >> 2) & 15]
  const size = ((bytes[at + 3]! & 3) << 11) | (bytes[at + 4]! << 3) | (bytes[at + 5]! >> 5)
  if (rate === undefined || size < 7) return undefined
  return { bytes: size, seconds: (((bytes[at + 6]! & 3) + 1) * AAC_SAMPLES) / rate }
}

// FLAC: frames do not say how many bytes they have, but their heads have a checksum

function measureFlac(bytes: Buffer): Measured | undefined {
  if (bytes.length < 42) return undefined
  const rate = (bytes[18]! << 12) | (bytes[19]! << 4) | (bytes[20]! >> 4)
  if (rate === 0) return undefined
  let at = 4
  for (let isLast = false; !isLast && at + 4 <= bytes.length; at += 4 + bytes.readUIntBE(at + 1, 3)) {
    isLast = bytes[at]! >= 128
  }
  let [samples, heads] = [0, 0]
  for (at = bytes.indexOf(0xff, at); at >= 0 && at + 6 <= bytes.length; at = bytes.indexOf(0xff, at + 1)) {
    if ((bytes[at + 1]! & 0xfe) !== 0xf8) continue
    if (++heads > HEADS_MAX) return undefined
    samples += flacSamples(bytes, at)
  }
  return { counted: samples / rate }
}

/** Of the frame whose head is here; 0 for what is none. */
function flacSamples(bytes: Buffer, at: number): number {
  const [size, rate] = [bytes[at + 2]! >> 4, bytes[at + 2]! & 15]
  const isHead = size !== 0 && rate !== 15 && bytes[at + 3]! >> 4 <= 10 && (bytes[at + 3]! & 1) === 0
  if (!isHead) return 0
  const number = bytes[at + 4]!
  const numberBytes = number < 0x80 ? 1 : Math.clz32(~(number << 24))
  let end = at + 4 + numberBytes
  const sizeAt = end
  end += size === 6 ? 1 : size === 7 ? 2 : 0
  end += rate === 12 ? 1 : rate === 13 || rate === 14 ? 2 : 0
  if (end >= bytes.length || crc8(bytes, at, end) !== bytes[end]) return 0
  if (size === 1) return 192
  if (size <= 5) return 576 << (size - 2)
  if (size === 6) return bytes[sizeAt]! + 1
  return size === 7 ? bytes.readUInt16BE(sizeAt) + 1 : 256 << (size - 8)
}

function crc8(bytes: Buffer, from: number, to: number): number {
  let crc = 0
  for (let at = from; at < to; at++) crc = CRCS[crc ^ bytes[at]!]!
  return crc
}

const CRCS = Uint8Array.from({ length: 256 }, (_none, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = crc & 128 ? (crc << 1) ^ 7 : crc << 1
  return crc
})

// Opus: the first bytes of a packet say how long it is

const OPUS_MS = [
  ...[10, 20, 40, 60, 10, 20, 40, 60, 10, 20, 40, 60, 10, 20, 10, 20],
  ...[2.5, 5, 10, 20, 2.5, 5, 10, 20, 2.5, 5, 10, 20, 2.5, 5, 10, 20],
]
const PACKET_MS_MAX = 120

function opusMs(head: number, count: number): number {
  const frames = (head & 3) === 0 ? 1 : (head & 3) < 3 ? 2 : count & 63
  return Math.min(OPUS_MS[head >> 3]! * frames, PACKET_MS_MAX)
}

// Ogg: pages of packets, of one stream or several

interface OggStream {
  kind: 'opus' | 'vorbis' | 'other'
  rate: number
  /** Of Vorbis: samples of a short block and of a long one. */
  blocks: readonly [number, number]
  headers: number
  packets: number
  /** By its packets. */
  seconds: number
  /** The first and the last that it claims. */
  granules: [number, number] | undefined
  /** The last packet goes on in the next page. */
  goesOn: boolean
}

/** A packet of an unknown codec is taken for so long. */
const PACKET_SECONDS = 0.02

function measureOgg(bytes: Buffer): Measured | undefined {
  const streams = new Map<number, OggStream>()
  let packets = 0
  for (let at = 0; at >= 0 && at + 27 <= bytes.length; ) {
    const segments = bytes[at + 26]!
    const body = at + 27 + segments
    if (text(bytes, at, 4) !== 'OggS' || body > bytes.length) {
      at = bytes.indexOf('OggS', at + 1, 'latin1')
      continue
    }
    at = readPage(bytes, at, { streams, segments, body })
    packets += segments
    if (streams.size > TRACKS_MAX || packets > FRAMES_MAX) return undefined
  }
  let [counted, claimed, secondsMax] = [0, 0, 0]
  // One after another, or beside each other: a decoder may play them all.
  for (const { kind, rate, blocks, packets, seconds, granules: [first, last] = [0, 0] } of streams.values()) {
    counted += kind === 'other' ? packets * PACKET_SECONDS : seconds
    if (rate > 0) claimed += (last - first) / rate
    if (kind === 'vorbis' && rate > 0) secondsMax += (packets * blocks[1]) / 2 / rate
  }
  return { counted, claimed, secondsMax }
}

interface Page {
  readonly streams: Map<number, OggStream>
  readonly segments: number
  readonly body: number
}

/** Where the next page should begin. */
function readPage(bytes: Buffer, at: number, { streams, segments, body }: Page): number {
  const serial = bytes.readUInt32LE(at + 14)
  let stream = streams.get(serial)
  if (stream === undefined) {
    stream = openStream(bytes, body)
    streams.set(serial, stream)
  }
  const granule = bytes.readUInt32LE(at + 6) + bytes.readUInt32LE(at + 10) * 2 ** 32
  // That of a page on which no packet ends is a number of its own.
  if (granule < 2 ** 60) {
    stream.granules ??= [granule, granule]
    stream.granules[1] = Math.max(stream.granules[1], granule)
  }
  let position = body
  for (let index = 0; index < segments; index++) {
    const size = bytes[at + 27 + index]!
    if (!stream.goesOn) readPacket(bytes, position, stream)
    stream.goesOn = size === 255
    position += size
  }
  return position
}

function openStream(bytes: Buffer, at: number): OggStream {
  const base = { packets: 0, seconds: 0, granules: undefined, goesOn: false, blocks: [0, 0] as const }
  if (text(bytes, at, 8) === 'OpusHead') return { ...base, kind: 'opus', rate: 48_000, headers: 2 }
  if (text(bytes, at, 7) === '\x01vorbis' && at + 29 <= bytes.length) {
    const sizes = bytes[at + 28]!
    const blocks = [1 << (sizes & 15), 1 << (sizes >> 4)] as const
    return { ...base, kind: 'vorbis', rate: bytes.readUInt32LE(at + 12), blocks, headers: 3 }
  }
  const isSpeex = text(bytes, at, 5) === 'Speex' && at + 40 <= bytes.length
  const isFlac = text(bytes, at, 5) === '\x7fFLAC' && at + 30 <= bytes.length
  const flacRate = isFlac ? (bytes[at + 27]! << 12) | (bytes[at + 28]! << 4) | (bytes[at + 29]! >> 4) : 0
  return { ...base, kind: 'other', rate: isSpeex ? bytes.readUInt32LE(at + 36) : flacRate, headers: 2 }
}

function readPacket(bytes: Buffer, at: number, stream: OggStream): void {
  if (stream.headers > 0) {
    stream.headers--
    return
  }
  stream.packets++
  if (at >= bytes.length) return
  if (stream.kind === 'opus') stream.seconds += opusMs(bytes[at]!, bytes[at + 1] ?? 0) / 1_000
  // Of the two kinds of block the second is the long one, in every encoder that we know.
  const [short, long] = stream.blocks
  if (stream.kind === 'vorbis' && stream.rate > 0) stream.seconds += (bytes[at]! & 2 ? long : short) / 2 / stream.rate
}

// Matroska and WebM: elements in elements. Those that only hold others are entered, whatever size they claim.

const HOLDING: ReadonlySet<number> = new Set([0x18538067, 0x1f43b675, 0xa0, 0x1654ae6b, 0xae, 0xe1, 0x1549a966])
const [TRACK_ENTRY, TRACK_NUMBER, CODEC, RATE] = [0xae, 0xd7, 0x86, 0xb5] as const
const [SCALE, DURATION, CLUSTER_TIME, SIMPLE_BLOCK, BLOCK] = [0x2ad7b1, 0x4489, 0xe7, 0xa3, 0xa1] as const

interface Track {
  number: number
  codec: string
  rate: number
}

function measureMatroska(bytes: Buffer): Measured | undefined {
  let [scale, claimed, clusterTime, firstTime, lastTime, stray] = [1_000_000, 0, 0, Infinity, 0, 0]
  const tracks: Track[] = []
  const seconds = new Map<number, number>()
  for (let [at, elements] = [0, 0]; at < bytes.length; elements++) {
    if (elements > ELEMENTS_MAX || tracks.length > TRACKS_MAX) return undefined
    const id = readId(bytes, at)
    const size = id && readSize(bytes, at + id.length)
    if (id === undefined || size === undefined) {
      stray++
      at++
      continue
    }
    const start = at + id.length + size.length
    if (id.value === TRACK_ENTRY) tracks.push({ number: tracks.length + 1, codec: '', rate: 48_000 })
    if (HOLDING.has(id.value)) {
      at = start
      continue
    }
    const end = Math.min(bytes.length, start + size.value)
    const track = tracks.at(-1)
    if (id.value === SCALE) scale = readUnsigned(bytes, start, end) || scale
    if (id.value === DURATION) claimed = readFloat(bytes, start, end)
    if (id.value === TRACK_NUMBER && track) track.number = readUnsigned(bytes, start, end)
    if (id.value === CODEC && track) track.codec = text(bytes, start, Math.min(32, end - start))
    if (id.value === RATE && track) track.rate = readFloat(bytes, start, end) || track.rate
    if (id.value === CLUSTER_TIME) clusterTime = readUnsigned(bytes, start, end)
    if ((id.value === SIMPLE_BLOCK || id.value === BLOCK) && start + 4 < end) {
      const number = readSize(bytes, start)
      const head = start + (number?.length ?? 1)
      if (head + 3 < end) {
        const time = clusterTime + bytes.readInt16BE(head)
        firstTime = Math.min(firstTime, time)
        lastTime = Math.max(lastTime, time)
        const owner = tracks.find(one => one.number === number?.value)
        const more = owner === undefined ? 0 : blockSeconds(bytes, head, owner)
        if (owner !== undefined) seconds.set(owner.number, (seconds.get(owner.number) ?? 0) + more)
      }
    }
    at = end
  }
  const counted = Math.max(0, ...seconds.values())
  return { counted, claimed: (Math.max(claimed, lastTime - firstTime) * scale) / 1e9, strayBytes: stray }
}

/** Of the frames in a block. `head` is its time, before its flags. */
function blockSeconds(bytes: Buffer, head: number, { codec, rate }: Track): number {
  if (!codec.startsWith('A_')) return 0
  const isLaced = (bytes[head + 2]! & 6) !== 0
  const frames = isLaced ? bytes[head + 3]! + 1 : 1
  if (codec !== 'A_OPUS') return codec.startsWith('A_AAC') ? (frames * AAC_SAMPLES) / rate : frames * PACKET_SECONDS
  // Where each of several frames begins is not looked for: they are alike, or as long as can be.
  return (isLaced ? frames * PACKET_SECONDS * 1_000 : opusMs(bytes[head + 3]!, bytes[head + 4] ?? 0)) / 1_000
}

interface Vint {
  readonly value: number
  readonly length: number
}

function readId(bytes: Buffer, at: number): Vint | undefined {
  const length = Math.clz32(bytes[at]!) - 23
  if (length > 4 || at + length > bytes.length) return undefined
  return { value: bytes.readUIntBE(at, length), length }
}

function readSize(bytes: Buffer, at: number): Vint | undefined {
  if (at >= bytes.length) return undefined
  const length = Math.clz32(bytes[at]!) - 23
  if (length > 8 || at + length > bytes.length) return undefined
  let value = bytes[at]! & ((1 << (8 - length)) - 1)
  for (let index = 1; index < length; index++) value = value * 256 + bytes[at + index]!
  return { value, length }
}

function readUnsigned(bytes: Buffer, start: number, end: number): number {
  let value = 0
  for (let at = start; at < Math.min(end, start + 8); at++) value = value * 256 + bytes[at]!
  return value
}

function readFloat(bytes: Buffer, start: number, end: number): number {
  const value = end - start === 4 ? bytes.readFloatBE(start) : end - start === 8 ? bytes.readDoubleBE(start) : 0
  return value > 0 && value < 1e12 ? value : 0
}

// MP4: boxes in boxes

const BOXES: ReadonlySet<string> = new Set(['moov', 'trak', 'mdia', 'minf', 'stbl', 'moof', 'traf', 'mvex'])

interface Mp4Track {
  readonly isSound: boolean
  /** In seconds; 0 where that is not known. */
  each: number
  samples: number
  seconds: number
}

function measureMp4(bytes: Buffer): Measured | undefined {
  let claimed = 0
  let fragments = 0
  const tracks: Mp4Track[] = []
  let scale = 0
  for (let [at, boxes] = [0, 0]; at + 8 <= bytes.length; boxes++) {
    if (boxes > BOXES_MAX || tracks.length > TRACKS_MAX) return undefined
    const [size, name] = [bytes.readUInt32BE(at), text(bytes, at + 4, 4)]
    const isLong = size === 1 && at + 16 <= bytes.length
    const start = at + (isLong ? 16 : 8)
    const long = isLong ? bytes.readUInt32BE(at + 8) * 2 ** 32 + bytes.readUInt32BE(at + 12) : size
    const end = size === 0 ? bytes.length : Math.min(bytes.length, at + Math.max(8, long))
    if (BOXES.has(name)) {
      at = start
      continue
    }
    const box = bytes.subarray(start, end)
    const track = tracks.at(-1)
    if (name === 'mvhd') claimed = Math.max(claimed, headSeconds(box).seconds)
    if (name === 'mdhd') {
      const head = headSeconds(box)
      scale = head.scale
      tracks.push({ isSound: true, each: 0, samples: 0, seconds: head.seconds })
    }
    if (name === 'hdlr' && track && text(box, 8, 4) !== 'soun') tracks[tracks.length - 1] = { ...track, isSound: false }
    if (name === 'stsd' && track) readEntry(box, track)
    if (name === 'stts' && track && scale > 0) track.seconds = Math.max(track.seconds, timesSum(box) / scale)
    if (name === 'stsz' && track && box.length >= 12) track.samples += box.readUInt32BE(8)
    if (name === 'trun' && box.length >= 8) fragments += box.readUInt32BE(4)
    at = end
  }
  const sounds = tracks.filter(({ isSound }) => isSound)
  const counted = sounds.map(({ each, samples }) => each * (samples + fragments))
  return { counted: Math.max(0, ...counted), claimed: Math.max(claimed, ...sounds.map(({ seconds }) => seconds)) }
}

function headSeconds(box: Buffer): { readonly seconds: number; readonly scale: number } {
  if (box.length < 20 || (box[0] === 1 && box.length < 32)) return { seconds: 0, scale: 0 }
  const [scale, high, low] = box[0] === 1
    ? [box.readUInt32BE(20), box.readUInt32BE(24), box.readUInt32BE(28)]
    : [box.readUInt32BE(12), 0, box.readUInt32BE(16)]
  const isUnknown = low === 0xffffffff
  return { scale, seconds: scale === 0 || isUnknown ? 0 : (high * 2 ** 32 + low) / scale }
}

const ALAC_SAMPLES = 4_096

/** The first description of its samples: which codec, and how long each is. */
function readEntry(box: Buffer, track: Mp4Track): void {
  if (box.length < 8 + 36) return
  const entry = box.subarray(8)
  const [codec, rate] = [text(entry, 4, 4), entry.readUInt16BE(32)]
  if (codec === 'Opus') track.each = PACKET_SECONDS
  if (codec === 'alac' && rate > 0) track.each = ALAC_SAMPLES / rate
  if (codec === 'mp4a') track.each = AAC_SAMPLES / (toldRate(entry) ?? (rate || AAC_RATES[3]!))
}

/** The rate that a decoder of AAC is told, whatever stands elsewhere. */
function toldRate(entry: Buffer): number | undefined {
  const esds = entry.indexOf('esds', 36, 'latin1')
  if (esds < 0) return undefined
  // Descriptors in descriptors: of the stream, of its decoder, and what is told to that.
  const stream = inDescriptor(entry, esds + 8, 0x03)
  const decoder = inDescriptor(entry, stream + 3, 0x04)
  const config = inDescriptor(entry, decoder + 13, 0x05)
  if (!(config + 1 < entry.length)) return undefined
  return AAC_RATES[((entry[config]! & 7) << 1) | (entry[config + 1]! >> 7)]
}

/** Where the content of a descriptor begins, whose length may be written in up to four bytes; NaN if it is another. */
function inDescriptor(bytes: Buffer, at: number, tag: number): number {
  if (bytes[at] !== tag) return Number.NaN
  let length = at + 1
  while (length < at + 4 && bytes[length]! >= 128) length++
  return length + 1
}

function timesSum(box: Buffer): number {
  let sum = 0
  for (let at = 8; at + 8 <= box.length; at += 8) sum += box.readUInt32BE(at) * box.readUInt32BE(at + 4)
  return sum
}

// AMR: a frame is twenty milliseconds, and its first byte says how many bytes it has

const AMR_BYTES = [13, 14, 16, 18, 20, 21, 27, 32, 6, 1, 1, 1, 1, 1, 1, 1]
const AMR_WB_BYTES = [18, 24, 33, 37, 41, 47, 51, 59, 61, 6, 1, 1, 1, 1, 1, 1]

function measureAmr(bytes: Buffer): Measured | undefined {
  const isWide = text(bytes, 0, 9) === '#!AMR-WB\n'
  if (!isWide && text(bytes, 0, 6) !== '#!AMR\n') return undefined
  const sizes = isWide ? AMR_WB_BYTES : AMR_BYTES
  let frames = 0
  for (let at = isWide ? 9 : 6; at < bytes.length; at += sizes[(bytes[at]! >> 3) & 15]!) {
    if (++frames > FRAMES_MAX) return undefined
  }
  return { counted: frames * 0.02 }
}
