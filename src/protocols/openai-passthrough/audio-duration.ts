// Measures how long an audio file lasts, because transcription is billed by the second.
//
// The length in a header comes from the caller, so it is not trusted. Frames and packets are counted as a decoder reads
// them. A claimed length counts only if it is greater, and only up to what the bytes could last at the lowest bit rate of
// speech. If two places in a file contradict each other, the one that makes the audio longer counts. The lowest bit rate
// of speech also decides for a codec whose packets have no length, for a format that is not in this table, and for a file
// with too many bytes outside of frames. Packets that are compressed again, or lack their first bytes, count with the
// greatest length that their codec allows.
//
// | format           | counted                                                       | claimed                  |
// |------------------|---------------------------------------------------------------|--------------------------|
// | WAV (RIFF, RF64) | all bytes after the head of the data: plain samples, ADPCM    | nothing                  |
// | MP3, AAC (ADTS)  | frames, of a constant or a variable rate                      | nothing                  |
// | FLAC             | frames, each at the lower of its own rate and the file's rate | nothing                  |
// | Ogg              | packets of Opus, Vorbis and Speex, frames of FLAC             | granules                 |
// | WebM, Matroska   | packets of Opus, Vorbis and AAC, frames of FLAC and MP3, PCM  | duration, the last time  |
// | MP4, M4A, MOV    | samples of AAC, ALAC, Opus and AMR, frames of FLAC, MP3, PCM  | durations, sums of times |
// | AMR, AMR-WB      | frames                                                        | nothing                  |
//
// The work is counted, and bounded by the size of the file. A file that takes more work, or has more chunks or tracks,
// than any recording is not read to its end: its length is then the greatest that this many bytes could have.

/** Bytes of one second of audio at the lowest bit rate of speech. */
const SECOND_BYTES_MIN = 750

/** The greatest share of bytes outside of frames; with more, the file is not what it seems to be. */
const STRAY_SHARE_MAX = 0.1
/** Fewer bytes outside of all samples are ignored. */
const OUTSIDE_BYTES_MIN = 64 * 1024

const TAGS_MAX = 16
const CHUNKS_MAX = 10_000
const TRACKS_MAX = 64

/** The most seconds that one byte can have: Vorbis at 8 kHz can have packets of two bytes with half a second each. */
const BYTE_SECONDS_MAX = 0.25

/** Units of work: 1 for a byte that is read, then for a number in a table, for an element, and for a box. */
const [STEP_LIGHT, STEP, STEP_HEAVY] = [4, 16, 64] as const
/** Even a silent recording has at least seven bytes for each packet in Matroska, and two in Ogg. */
const WORK_PER_BYTE = 5
const WORK_MIN = 200_000

/** Counts the work for one file, and throws when there is too much of it. */
export class AudioWork {
  done = 0
  #most = 0

  begin(bytes: number): void {
    this.done = 0
    this.#most = WORK_MIN + WORK_PER_BYTE * bytes
  }

  add(count: number): void {
    this.done += count
    if (this.done > this.#most) throw new TooMuchWork()
  }
}

class TooMuchWork extends Error {}

/** The work for the file that is being read. Files are read one at a time and synchronously. */
let work = new AudioWork()

interface Measurement {
  readonly counted: number
  readonly claimed?: number
  /** Bytes that are neither a frame nor a tag. */
  readonly strayBytes?: number
  /** Some of the file could not be read, so that its size counts as well. */
  readonly isUnreadable?: boolean
}

type Measure = (bytes: Buffer) => Measurement | undefined

/** How each format begins after its ID3 tags, and how it is measured. The first match is used. */
const formats: readonly (readonly [begins: (bytes: Buffer) => boolean, measure: Measure])[] = [
  [bytes => /^(RIFF|RF64|BW64)$/.test(readText(bytes, 0, 4)) && readText(bytes, 8, 4) === 'WAVE', measureWav],
  [bytes => readText(bytes, 0, 4) === 'fLaC', measureFlac],
  [bytes => readText(bytes, 0, 4) === 'OggS', measureOgg],
  [bytes => bytes.length >= 4 && bytes.readUInt32BE(0) === 0x1a45dfa3, measureMatroska],
  [bytes => /^(ftyp|moov|mdat|free|skip|wide|styp|moof)$/.test(readText(bytes, 4, 4)), measureMp4],
  [bytes => readText(bytes, 0, 5) === '#!AMR', measureAmr],
  [bytes => bytes[0] === 0xff && (bytes[1]! & 0xf6) === 0xf0, bytes => measureFrames(bytes, adtsFrame)],
  [bytes => bytes[0] === 0xff && (bytes[1]! & 0xe0) === 0xe0, bytes => measureFrames(bytes, mp3Frame)],
]

/** The length of an audio file in whole seconds. */
export function measureAudioSeconds(bytes: Buffer, counting = new AudioWork()): number {
  const atLowestRate = Math.ceil(bytes.length / SECOND_BYTES_MIN)
  const sound = withoutTags(bytes)
  work = counting
  work.begin(bytes.length)
  let measurement: Measurement | undefined
  try {
    measurement = formats.find(([begins]) => begins(sound))?.[1](sound)
  } catch (fault) {
    if (!(fault instanceof TooMuchWork)) throw fault
    return wholeSeconds(bytes.length * BYTE_SECONDS_MAX)
  }
  const { counted = 0, claimed = 0, strayBytes = 0, isUnreadable = false } = measurement ?? {}
  const isKnown = counted + claimed > 0 && strayBytes <= sound.length * STRAY_SHARE_MAX && !isUnreadable
  return wholeSeconds(Math.max(counted, isKnown ? Math.min(claimed, atLowestRate) : atLowestRate))
}

/** Rounds up, but ignores rounding errors from adding many small numbers. */
const wholeSeconds = (seconds: number): number => Math.max(1, Math.ceil(seconds - 1e-6))

const readText = (bytes: Buffer, at: number, length: number): string => bytes.toString('latin1', at, at + length)

/** Removes all ID3v2 tags at the start. */
function withoutTags(bytes: Buffer): Buffer {
  let at = 0
  for (let tags = 0; tags < TAGS_MAX && at + 10 <= bytes.length && readText(bytes, at, 3) === 'ID3'; tags++) {
    const size = ((bytes[at + 6]! & 127) << 21) | ((bytes[at + 7]! & 127) << 14) | ((bytes[at + 8]! & 127) << 7)
    at += 10 + size + (bytes[at + 9]! & 127) + (bytes[at + 5]! & 16 ? 10 : 0)
  }
  return bytes.subarray(Math.min(at, bytes.length))
}

// WAV

const [EXTENSIBLE, MS_ADPCM, IMA_ADPCM, WAVE_MP3] = [0xfffe, 2, 17, 0x55] as const
/** No recording has higher values; a header with higher values is not trusted. */
const [RATE_MAX, CHANNELS_MAX] = [768_000, 64] as const

function measureWav(bytes: Buffer): Measurement | undefined {
  // Some decoders use the first format chunk, some the last. The one that makes the audio longer counts.
  const formatsAt: number[] = []
  for (let [at, chunks] = [12, 0]; at + 8 <= bytes.length; chunks++) {
    if (chunks > CHUNKS_MAX) throw new TooMuchWork()
    const [name, size] = [readText(bytes, at, 4), bytes.readUInt32LE(at + 4)]
    const start = at + 8
    // An XMA2 chunk replaces the format chunk.
    if (name === 'XMA2') return undefined
    if (name === 'fmt ' && start + 16 <= bytes.length) formatsAt.push(start)
    // The size of the data chunk is ignored: a decoder may read to the end of the file.
    if (name === 'data') return measureWave(bytes, bytes.subarray(start), formatsAt)
    at = start + size + (size & 1)
  }
  return undefined
}

function measureWave(bytes: Buffer, data: Buffer, formatsAt: readonly number[]): Measurement {
  const secondBytes = formatsAt.map(at => waveSecondBytes(bytes, at))
  const isMp3 = secondBytes.includes('mp3')
  const found: Measurement = isMp3 || mayBeFramed(data) ? framesOf(data) : { counted: 0 }
  const frames = isMp3 || (found.strayBytes ?? 0) < data.length * STRAY_SHARE_MAX ? found : { counted: 0 }
  const plain = secondBytes.filter(count => count !== 'mp3')
  const slowest = Math.min(...plain)
  const counted = Math.max(frames.counted, plain.length > 0 && slowest > 0 ? data.length / slowest : 0)
  return { ...frames, counted, isUnreadable: formatsAt.length === 0 || plain.includes(0) }
}

/** Some decoders look for frames even if the header says that the data are plain samples. */
const mayBeFramed = (data: Buffer): boolean => framesOf(data.subarray(0, 8_192)).strayBytes! < 4_096

/** Measures as MP3 and as AAC, and uses the one with fewer stray bytes. */
function framesOf(data: Buffer): Measurement {
  const [mp3, adts] = [measureFrames(data, mp3Frame), measureFrames(data, adtsFrame)]
  return mp3.strayBytes! <= adts.strayBytes! ? mp3 : adts
}

/** Bytes of one second in the format at `start`; 0 if the format is not known. */
function waveSecondBytes(bytes: Buffer, start: number): number | 'mp3' {
  const [code, channels] = [bytes.readUInt16LE(start), bytes.readUInt16LE(start + 2)]
  const [rate, align, bits] = [4, 12, 14].map(at =>
    at === 4 ? bytes.readUInt32LE(start + at) : bytes.readUInt16LE(start + at),
  ) as [number, number, number]
  if (channels === 0 || channels > CHANNELS_MAX || rate > RATE_MAX) return 0
  const isExtensible = code === EXTENSIBLE && start + 26 <= bytes.length
  const own = isExtensible ? bytes.readUInt16LE(start + 24) : code
  // Decoders differ in which of the two sample sizes they use.
  const valid = isExtensible ? bytes.readUInt16LE(start + 18) : 0
  const sampleBytes = Math.ceil((valid > 0 ? Math.min(bits, valid) : bits) / 8)
  if (own === 6 || own === 7) return channels * rate
  if (own === 1 || own === 3) return sampleBytes <= 8 ? channels * rate * sampleBytes : 0
  if (own === WAVE_MP3) return 'mp3'
  // Each block begins with a header that holds one or two samples; each following sample has four bits.
  const samples =
    own === IMA_ADPCM
      ? ((align - 4 * channels) * 2) / channels + 1
      : own === MS_ADPCM
        ? ((align - 7 * channels) * 2) / channels + 2
        : 0
  return bits === 4 && samples >= 1 ? (rate * align) / samples : 0
}

// MP3 and AAC in ADTS: the header of each frame holds its length in bytes and in samples

interface Frame {
  readonly bytes: number
  readonly seconds: number
}

type ReadFrame = (bytes: Buffer, at: number) => Frame | undefined

function measureFrames(bytes: Buffer, read: ReadFrame, firstByte = 0xff): Measurement {
  let [at, seconds, strayBytes] = [0, 0, 0]
  work.add(bytes.length)
  while (at + 7 <= bytes.length) {
    // In a file of 0xff bytes this loop runs once for each byte.
    work.add(1)
    const frame = read(bytes, at)
    if (frame !== undefined) {
      seconds += frame.seconds
      at += frame.bytes
      continue
    }
    if (isLastTag(bytes, at)) break
    // Like a decoder, look for the next frame.
    let found = at + 1
    while (found < bytes.length && bytes[found] !== firstByte) found++
    strayBytes += found - at
    at = found
  }
  return { counted: seconds, strayBytes }
}

/** Whether a tag at `at` is the last thing in the file, except for an ID3v1 tag. A tag in the middle could hide frames. */
function isLastTag(bytes: Buffer, at: number): boolean {
  const left = bytes.length - at
  if (bytes[at] === 0x54 && readText(bytes, at, 3) === 'TAG') return left <= 128
  if (bytes[at] !== 0x41 || left < 32 || readText(bytes, at, 8) !== 'APETAGEX') return false
  const behind = left - 32 - bytes.readUInt32LE(at + 12)
  return behind === 0 || behind === 128
}

const kbits = {
  1: {
    1: [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448], // layer I
    2: [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
    3: [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  },
  2: {
    1: [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
    2: [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
    3: [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
  },
} as const

const RATES = [44_100, 48_000, 32_000] as const

function mp3Frame(bytes: Buffer, at: number): Frame | undefined {
  if (bytes[at] !== 0xff || (bytes[at + 1]! & 0xe0) !== 0xe0) return undefined
  const version = (bytes[at + 1]! >> 3) & 3 // 0 is 2.5, 2 is 2, 3 is 1
  const layer = 4 - ((bytes[at + 1]! >> 1) & 3)
  const rateAt = (bytes[at + 2]! >> 2) & 3
  const index = bytes[at + 2]! >> 4
  if (version === 1 || layer === 4 || rateAt === 3 || index === 0 || index === 15) return undefined
  const rate = RATES[rateAt]! / (version === 3 ? 1 : version === 2 ? 2 : 4)
  const kbit = kbits[version === 3 ? 1 : 2][layer as 1 | 2 | 3][index - 1]!
  const padding = (bytes[at + 2]! >> 1) & 1
  const samples = layer === 1 ? 384 : layer === 3 && version !== 3 ? 576 : 1_152
  const size =
    layer === 1
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

const AC3_KBITS = [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640]
const AC3_RATES = [48_000, 44_100, 32_000]
const AC3_BLOCK = 256

/** AC-3, and E-AC-3 from version 11 on. */
function ac3Frame(bytes: Buffer, at: number): Frame | undefined {
  if (bytes[at] !== 0x0b || bytes[at + 1] !== 0x77 || at + 6 > bytes.length) return undefined
  const [version, code, rate] = [bytes[at + 5]! >> 3, bytes[at + 4]! & 63, AC3_RATES[bytes[at + 4]! >> 6]]
  if (version > 10) {
    const size = ((((bytes[at + 2]! & 7) << 8) | bytes[at + 3]!) + 1) * 2
    const blocks = rate === undefined ? 6 : [1, 2, 3, 6][code >> 4]!
    const own = rate ?? (AC3_RATES[code >> 4] ?? AC3_RATES[2]!) / 2
    // This frame holds more channels of the frame before it.
    const isMore = bytes[at + 2]! >> 6 === 1
    return { bytes: size, seconds: isMore ? 0 : (AC3_BLOCK * blocks) / own }
  }
  const kbit = AC3_KBITS[code >> 1]
  if (rate === undefined || kbit === undefined) return undefined
  const words = Math.floor((kbit * 96_000) / rate) + (rate === 44_100 ? code & 1 : 0)
  return { bytes: words * 2, seconds: (AC3_BLOCK * 6 * 2 ** Math.max(0, version - 8)) / rate }
}

// FLAC: the header of a frame does not hold the frame's size, but it has a checksum

function measureFlac(bytes: Buffer): Measurement | undefined {
  let rate = 0
  for (let [at, isLast] = [4, false]; !isLast && at + 21 <= bytes.length; at += 4 + bytes.readUIntBE(at + 1, 3)) {
    work.add(STEP_LIGHT)
    isLast = bytes[at]! >= 128
    if ((bytes[at]! & 127) === 0) rate = lowerRate(rate, flacRate(bytes, at + 4))
  }
  // Anything after the first metadata block may be a frame, whatever lengths the other blocks claim.
  return { counted: flacSeconds(bytes, 42, bytes.length, rate) }
}

/** The lower of two rates; 0 means that a rate is not known. */
const lowerRate = (first: number, other: number): number =>
  first === 0 || other === 0 ? first + other : Math.min(first, other)

/** The rate in the STREAMINFO block at `at`; 0 if the block is cut off. */
const flacRate = (bytes: Buffer, at: number): number =>
  at + 13 > bytes.length ? 0 : (bytes[at + 10]! << 12) | (bytes[at + 11]! << 4) | (bytes[at + 12]! >> 4)

/** The length of all frames whose headers are between `start` and `end`, each at the lower of its own and the file's rate. */
function flacSeconds(bytes: Buffer, start: number, end: number, rate: number): number {
  let seconds = 0
  work.add(end - start)
  for (let at = start; at + 6 <= end; at++) {
    if (bytes[at] !== 0xff || (bytes[at + 1]! & 0xfe) !== 0xf8) continue
    work.add(STEP_LIGHT)
    seconds += flacFrameSeconds(bytes, at, rate)
  }
  return seconds
}

const FLAC_RATES = [0, 88_200, 176_400, 192_000, 8_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000]

/** The length of the frame at `at`; 0 if there is none. */
function flacFrameSeconds(bytes: Buffer, at: number, fileRate: number): number {
  const [size, rate] = [bytes[at + 2]! >> 4, bytes[at + 2]! & 15]
  const isHead = size !== 0 && rate !== 15 && bytes[at + 3]! >> 4 <= 10 && (bytes[at + 3]! & 1) === 0
  if (!isHead) return 0
  const number = bytes[at + 4]!
  const sizeAt = at + 4 + (number < 0x80 ? 1 : Math.clz32(~(number << 24)))
  for (let more = at + 5; more < sizeAt; more++) if ((bytes[more]! & 0xc0) !== 0x80) return 0
  const rateAt = sizeAt + (size === 6 ? 1 : size === 7 ? 2 : 0)
  const end = rateAt + (rate === 12 ? 1 : rate > 12 ? 2 : 0)
  if (end >= bytes.length || crc8(bytes, at, end) !== bytes[end]) return 0
  const own =
    rate < 12
      ? FLAC_RATES[rate]!
      : rate === 12
        ? bytes[rateAt]! * 1_000
        : bytes.readUInt16BE(rateAt) * (rate === 14 ? 10 : 1)
  return flacSamples(bytes, size, sizeAt) / (lowerRate(own, fileRate) || FLAC_RATES[4]!)
}

function flacSamples(bytes: Buffer, size: number, sizeAt: number): number {
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

// Opus: the first bytes of a packet hold its length

const OPUS_MS = [
  10, 20, 40, 60, 10, 20, 40, 60, 10, 20, 40, 60, 10, 20, 10, 20, 2.5, 5, 10, 20, 2.5, 5, 10, 20, 2.5, 5, 10, 20, 2.5,
  5, 10, 20,
]
const PACKET_MS_MAX = 120

/** The most bytes of one Opus frame. */
const OPUS_BYTES_MAX = 1_275

function opusSeconds(bytes: Buffer, start: number, end: number): number {
  if (end <= start) return 0
  const head = bytes[start]!
  const frames = (head & 3) === 0 ? 1 : (head & 3) < 3 ? 2 : (bytes[start + 1] ?? 0) & 63
  const seconds = Math.min(OPUS_MS[head >> 3]! * frames, PACKET_MS_MAX) / 1_000
  // More bytes than the frames can have: this is no Opus packet, or it holds other packets.
  return end - start > (frames + 1) * (OPUS_BYTES_MAX + 2)
    ? Math.max(seconds, secondsAtLowestRate(end - start))
    : seconds
}

const secondsAtLowestRate = (count: number): number => count / SECOND_BYTES_MIN

// Packets of any codec, in Matroska and MP4

interface Codec {
  readonly kind: 'opus' | 'flac' | 'mpeg' | 'ac3' | 'vorbis' | 'frames' | 'plain' | 'amr' | 'other'
  /** The lowest rate in any header; 0 if no header has one. */
  readonly rate: number
  /** For frames, the samples of each; for plain samples, the bytes of all channels; for AMR, 1 means wideband. */
  readonly size: number
  /** AAC only: a packet with more bytes holds several frames. */
  readonly bytesMax?: number
  readonly vorbis?: Vorbis
}

const OTHER: Codec = { kind: 'other', rate: 0, size: 0 }

/** Whether packets of a codec need not be read: they all have the same length, or their size determines it. */
const isCountable = ({ kind }: Codec): boolean => kind === 'frames' || kind === 'plain' || kind === 'other'

function packetSeconds(bytes: Buffer, start: number, end: number, codec: Codec): number {
  const { kind, rate, size, vorbis } = codec
  const lowest = secondsAtLowestRate(Math.max(0, end - start))
  if (kind === 'opus') return opusSeconds(bytes, start, end)
  if (kind === 'flac') return flacSeconds(bytes, start, end, rate) || lowest
  if (kind === 'mpeg' || kind === 'ac3') {
    const part = bytes.subarray(start, end)
    const frames = kind === 'mpeg' ? measureFrames(part, mp3Frame) : measureFrames(part, ac3Frame, 0x0b)
    const { counted, strayBytes = 0 } = frames
    return strayBytes > (end - start) * STRAY_SHARE_MAX || counted === 0 ? Math.max(counted, lowest) : counted
  }
  if (kind === 'amr') return amrFrames(bytes, { start, end, isWide: size === 1 }) * AMR_SECONDS
  if (rate <= 0) return lowest
  if (vorbis !== undefined) return vorbisSeconds(bytes[start]!, vorbis)
  if (kind === 'plain' && size > 0) return (end - start) / (rate * size)
  return kind === 'frames' ? frameSeconds(end - start, codec) : lowest
}

/** The length of a packet whose frames have no size in their headers: one frame, unless the packet is too large for one. */
const frameSeconds = (count: number, { rate, size, bytesMax = Infinity }: Codec): number =>
  Math.max(size / (rate || AAC_RATES[3]!), count > bytesMax ? secondsAtLowestRate(count) : 0)

/** The greatest length of a packet of this codec, whatever its size. */
function packetSecondsMax({ kind, rate, size, vorbis }: Codec): number {
  if (vorbis !== undefined) return vorbis.long / 2 / (vorbis.rate || 8_000)
  if (kind === 'flac') return 65_536 / (rate || 8_000)
  if (kind === 'frames') return size / (rate || 8_000)
  return kind === 'plain' || kind === 'other' ? 0 : 0.144
}

/** Plain samples; an unknown codec if the header has values that no recording has. */
function plainCodec(rate: number, channels: number, sampleBytes: number): Codec {
  const isKnown = rate > 0 && rate <= RATE_MAX && channels <= CHANNELS_MAX && sampleBytes >= 1 && sampleBytes <= 8
  return isKnown ? { kind: 'plain', rate, size: Math.max(1, channels) * sampleBytes } : OTHER
}

// Ogg: pages of packets, from one stream or several

interface OggStream {
  kind: 'opus' | 'vorbis' | 'speex' | 'flac' | 'other'
  rate: number
  vorbis: Vorbis | undefined
  /** Vorbis only: the part of the last header that has been read. */
  setup: Buffer | undefined
  /** Speex only: seconds of one packet. */
  each: number
  headers: number
  packets: number
  /** The sum over its packets. */
  seconds: number
  bytes: number
  /** FLAC only: all data in order. */
  content: Buffer[]
  /** The first and the greatest granule position that its pages claim. */
  granules: [number, number] | undefined
  /** The last packet continues in the next page. */
  goesOn: boolean
}

function measureOgg(bytes: Buffer): Measurement | undefined {
  const streams: OggStream[] = []
  const current = new Map<number, OggStream>()
  let strayBytes = 0
  for (let at = 0; at + 27 <= bytes.length; ) {
    work.add(STEP)
    const segments = bytes[at + 26]!
    const body = at + 27 + segments
    if (!isPage(bytes, at) || body > bytes.length) {
      const next = nextPage(bytes, at + 1, bytes.length)
      strayBytes += next - at
      at = next
      continue
    }
    const end = readPage(bytes, at, { streams, current, segments, body })
    // A decoder that finds a page damaged looks for the next page inside of it.
    at = nextPage(bytes, body, end)
    if (streams.length > TRACKS_MAX) throw new TooMuchWork()
  }
  let [counted, claimed] = [0, 0]
  // Streams follow each other or are parallel; a decoder may play all of them, so all count.
  for (const stream of streams) {
    const { rate, granules: [first, last] = [0, 0] } = stream
    counted += oggSeconds(stream)
    if (rate > 0) claimed += (last - first) / rate
  }
  return { counted, claimed, strayBytes }
}

const isPage = (bytes: Buffer, at: number): boolean =>
  at + 5 <= bytes.length && bytes.readUInt32BE(at) === 0x4f676753 && bytes[at + 4] === 0

/** Where the next page before `end` begins; `end` if there is none. */
function nextPage(bytes: Buffer, from: number, end: number): number {
  let at = from
  while (at < end && !(bytes[at] === 0x4f && isPage(bytes, at))) at++
  work.add(Math.max(0, at - from))
  return Math.max(at, Math.min(from, end))
}

function oggSeconds({ kind, rate, packets, each, seconds, bytes, content }: OggStream): number {
  if (kind === 'opus' || (kind === 'vorbis' && rate > 0)) return seconds
  if (kind === 'speex') return packets * each
  const all = Buffer.concat(content)
  return (kind === 'flac' && flacSeconds(all, 0, all.length, rate)) || (packets > 0 ? secondsAtLowestRate(bytes) : 0)
}

interface Page {
  readonly streams: OggStream[]
  readonly current: Map<number, OggStream>
  readonly segments: number
  readonly body: number
}

/** Reads a page and returns where the next one should begin. */
function readPage(bytes: Buffer, at: number, { streams, current, segments, body }: Page): number {
  const serial = bytes.readUInt32LE(at + 14)
  let stream = current.get(serial)
  const isFirst = (bytes[at + 5]! & 2) !== 0
  if (stream === undefined || (isFirst && stream.packets > 0)) {
    stream = openStream(bytes, body)
    current.set(serial, stream)
    streams.push(stream)
  }
  const granule = bytes.readUInt32LE(at + 6) + bytes.readUInt32LE(at + 10) * 2 ** 32
  // A page on which no packet ends has a special value here.
  if (granule < 2 ** 60) {
    stream.granules ??= [granule, granule]
    stream.granules[1] = Math.max(stream.granules[1], granule)
  }
  let position = body
  work.add(segments * STEP_LIGHT)
  for (let index = 0; index < segments; index++) {
    const size = bytes[at + 27 + index]!
    if (!stream.goesOn) readPacket(bytes, position, stream)
    stream.goesOn = size === 255
    if (stream.setup !== undefined) readSetup(bytes.subarray(position, position + size), stream)
    position += size
  }
  const end = Math.min(position, bytes.length)
  stream.bytes += end - body
  if (stream.kind === 'flac') {
    // Overlapping pages hold the same bytes several times.
    work.add(end - body)
    stream.content.push(bytes.subarray(body, end))
  }
  return position
}

function openStream(bytes: Buffer, at: number): OggStream {
  const base = {
    packets: 0,
    seconds: 0,
    bytes: 0,
    content: [],
    granules: undefined,
    goesOn: false,
    each: 0,
    vorbis: undefined,
    setup: undefined,
  }
  if (readText(bytes, at, 8) === 'OpusHead') return { ...base, kind: 'opus', rate: 48_000, headers: 2 }
  const vorbis = readVorbis(bytes, at)
  if (vorbis !== undefined) return { ...base, kind: 'vorbis', rate: vorbis.rate, vorbis, headers: 3 }
  if (readText(bytes, at, 5) === 'Speex' && at + 68 <= bytes.length) {
    const [rate, mode] = [bytes.readUInt32LE(at + 36), Math.min(2, bytes.readUInt32LE(at + 40))]
    const each = Math.max(0.02, (160 << mode) / (rate || 8_000)) * Math.max(1, bytes.readUInt32LE(at + 64) & 255)
    return { ...base, kind: 'speex', rate, each, headers: 2 }
  }
  const isFlac = readText(bytes, at, 5) === '\x7fFLAC' && at + 30 <= bytes.length
  if (isFlac) return { ...base, kind: 'flac', rate: flacRate(bytes, at + 17), headers: 1 }
  return { ...base, kind: 'other', rate: 0, headers: 0 }
}

function readPacket(bytes: Buffer, at: number, stream: OggStream): void {
  if (stream.headers > 0) {
    stream.headers--
    if (stream.headers === 0 && stream.kind === 'vorbis') stream.setup = Buffer.alloc(0)
    return
  }
  stream.packets++
  if (at >= bytes.length) return
  if (stream.kind === 'opus') stream.seconds += opusSeconds(bytes, at, at + 2)
  if (stream.vorbis !== undefined && stream.rate > 0) stream.seconds += vorbisSeconds(bytes[at]!, stream.vorbis)
}

/** Reads more of the last Vorbis header. */
function readSetup(more: Buffer, stream: OggStream): void {
  const { vorbis, setup, goesOn } = stream
  if (vorbis === undefined || setup === undefined) return
  const all = setup.length > SETUP_BYTES_MAX ? setup : Buffer.concat([setup, more])
  stream.setup = goesOn ? all : undefined
  if (!goesOn) stream.vorbis = { ...vorbis, isLong: readModes(all, vorbis.channels) }
}

// Vorbis: the first byte of a packet holds its mode, and the last header says which modes have long blocks

interface Vorbis {
  readonly rate: number
  readonly channels: number
  /** Samples of a short block and of a long one. */
  readonly short: number
  readonly long: number
  /** Whether each mode has long blocks; undefined if the header cannot be read, so that each block may be a long one. */
  readonly isLong?: readonly boolean[] | undefined
}

/** Reads the first Vorbis header; undefined if there is none at `at`. */
function readVorbis(bytes: Buffer, at: number): Vorbis | undefined {
  if (readText(bytes, at, 7) !== '\x01vorbis' || at + 29 > bytes.length) return undefined
  const [first, other] = [1 << (bytes[at + 28]! & 15), 1 << (bytes[at + 28]! >> 4)]
  const blocks = { short: Math.min(first, other), long: Math.max(first, other) }
  return { rate: bytes.readUInt32LE(at + 12), channels: bytes[at + 11]!, ...blocks }
}

function vorbisSeconds(first: number, { rate, short, long, isLong }: Vorbis): number {
  const mode = isLong === undefined ? 0 : (first >> 1) & ((1 << bitsOf(isLong.length - 1)) - 1)
  return (isLong?.[mode] === false ? short : long) / 2 / rate
}

/** How many bits a number needs. */
const bitsOf = (value: number): number => 32 - Math.clz32(value)

/** Encoders write a few kilobytes. */
const SETUP_BYTES_MAX = 64 * 1024

/** Reads bits as Vorbis packs them: the lowest bit of a byte first. Beyond the end all bits are 0. */
class VorbisBits {
  readonly #bytes: Buffer
  #at: number

  constructor(bytes: Buffer, from: number) {
    this.#bytes = bytes
    this.#at = from * 8
  }

  get isOver(): boolean {
    return this.#at > this.#bytes.length * 8
  }

  read(count: number): number {
    let value = 0
    for (let bit = 0; bit < count; bit++, this.#at++) {
      value += (((this.#bytes[this.#at >> 3] ?? 0) >> (this.#at & 7)) & 1) * 2 ** bit
    }
    return value
  }

  skip(count: number): void {
    this.#at += count
  }

  /** Calls `look` this many times, or until the end. */
  times(count: number, look: () => void): void {
    for (let index = 0; index < count && !this.isOver; index++) look()
  }
}

/** Reads which modes have long blocks. Undefined for a header that no encoder writes. */
function readModes(setup: Buffer, channels: number): readonly boolean[] | undefined {
  if (readText(setup, 0, 7) !== '\x05vorbis' || setup.length > SETUP_BYTES_MAX) return undefined
  work.add(setup.length * STEP_LIGHT)
  const bits = new VorbisBits(setup, 7)
  bits.times(bits.read(8) + 1, () => skipCodebook(bits))
  bits.times(bits.read(6) + 1, () => bits.skip(16))
  bits.times(bits.read(6) + 1, () => skipFloor(bits))
  bits.times(bits.read(6) + 1, () => skipResidue(bits))
  bits.times(bits.read(6) + 1, () => skipMapping(bits, channels))
  const isLong: boolean[] = []
  let isPlain = true
  bits.times(bits.read(6) + 1, () => {
    isLong.push(bits.read(1) === 1)
    if (bits.read(32) !== 0) isPlain = false
    bits.skip(8)
  })
  const isWhole = bits.read(1) === 1 && !bits.isOver
  return isWhole && isPlain ? isLong : undefined
}

function skipCodebook(bits: VorbisBits): void {
  bits.skip(24)
  const [dimensions, entries] = [bits.read(16), bits.read(24)]
  if (bits.read(1) === 1) {
    bits.skip(5)
    for (let entry = 0; entry < entries && !bits.isOver; ) entry += bits.read(bitsOf(entries - entry))
  } else {
    const isSparse = bits.read(1) === 1
    if (isSparse) bits.times(entries, () => bits.skip(bits.read(1) * 5))
    else bits.skip(entries * 5)
  }
  const lookup = bits.read(4)
  if (lookup === 0) return
  bits.skip(64)
  const valueBits = bits.read(4) + 1
  bits.skip(1)
  bits.skip(valueBits * (lookup === 1 ? wholeRoot(entries, dimensions) : entries * dimensions))
}

/** The greatest integer whose power does not exceed the value. */
function wholeRoot(value: number, power: number): number {
  let root = Math.floor(value ** (1 / Math.max(1, power)))
  while ((root + 1) ** power <= value) root++
  while (root > 0 && root ** power > value) root--
  return root
}

function skipFloor(bits: VorbisBits): void {
  if (bits.read(16) === 0) {
    bits.skip(8 + 16 + 16 + 6 + 8)
    bits.skip((bits.read(4) + 1) * 8)
    return
  }
  const classes: number[] = []
  bits.times(bits.read(5), () => classes.push(bits.read(4)))
  const dimensions: number[] = []
  bits.times(Math.max(-1, ...classes) + 1, () => {
    dimensions.push(bits.read(3) + 1)
    const subclasses = bits.read(2)
    bits.skip((subclasses > 0 ? 8 : 0) + 8 * 2 ** subclasses)
  })
  bits.skip(2)
  const rangeBits = bits.read(4)
  for (const index of classes) bits.skip((dimensions[index] ?? 0) * rangeBits)
}

function skipResidue(bits: VorbisBits): void {
  bits.skip(16 + 24 + 24 + 24)
  const count = bits.read(6) + 1
  bits.skip(8)
  let books = 0
  bits.times(count, () => {
    const low = bits.read(3)
    const all = low + (bits.read(1) === 1 ? bits.read(5) * 8 : 0)
    for (let bit = 0; bit < 8; bit++) books += (all >> bit) & 1
  })
  bits.skip(books * 8)
}

function skipMapping(bits: VorbisBits, channels: number): void {
  bits.skip(16)
  const submaps = bits.read(1) === 1 ? bits.read(4) + 1 : 1
  if (bits.read(1) === 1) bits.skip((bits.read(8) + 1) * 2 * bitsOf(channels - 1))
  bits.skip(2)
  if (submaps > 1) bits.skip(channels * 4)
  bits.skip(submaps * 24)
}

// Matroska and WebM: elements inside elements. Elements that only hold others are entered, whatever size they claim.

const ENCODINGS = 0x6d80
const CONTAINER_ELEMENTS: ReadonlySet<number> = new Set([
  0x18538067,
  0x1f43b675,
  0xa0,
  0x1654ae6b,
  0xae,
  0xe1,
  0x1549a966,
  ENCODINGS,
])
const [TRACK_ENTRY, TRACK_NUMBER, CODEC, RATE, CHANNELS, BITS] = [0xae, 0xd7, 0x86, 0xb5, 0x9f, 0x6264] as const
const PRIVATE = 0x63a2
const [SCALE, DURATION, CLUSTER_TIME, SIMPLE_BLOCK, BLOCK] = [0x2ad7b1, 0x4489, 0xe7, 0xa3, 0xa1] as const
const TRACK_PARTS: ReadonlySet<number> = new Set([TRACK_NUMBER, CODEC, RATE, CHANNELS, BITS, PRIVATE])
/** Large elements of ordinary recordings: cues, tags, attachments, chapters, the seek head, padding, codec data. */
const KNOWN_LARGE_ELEMENTS: ReadonlySet<number> = new Set([
  0x1c53bb6b,
  0x1254c367,
  0x1941a469,
  0x1043a770,
  0x114d9b74,
  0xec,
  PRIVATE,
])
/** Unknown elements with fewer bytes are ignored. */
const ELEMENT_BYTES_MIN = 4_096

interface Track {
  number: number
  name: string
  rate: number
  channels: number
  bits: number
  private: Buffer
  /** The blocks are compressed, lack their first bytes, or are encrypted, so that they cannot be read. */
  isEncoded: boolean
  codec: Codec | undefined
  seconds: number
}

const newTrack = (number: number): Track => ({
  number,
  name: '',
  rate: 0,
  channels: 1,
  bits: 0,
  private: Buffer.alloc(0),
  isEncoded: false,
  codec: undefined,
  seconds: 0,
})

function measureMatroska(bytes: Buffer): Measurement | undefined {
  let [scale, claimed, clusterTime, firstTime, lastTime, strayBytes] = [1_000_000, 0, 0, Infinity, 0, 0]
  const tracks: Track[] = []
  for (let at = 0; at < bytes.length; ) {
    const idBytes = vintBytes(bytes, at)
    const sizeAt = at + idBytes
    const sizeBytes = idBytes <= 4 ? vintBytes(bytes, sizeAt) : 0
    const start = sizeAt + sizeBytes
    if (idBytes > 4 || sizeBytes > 8 || start > bytes.length) {
      work.add(1)
      strayBytes++
      at++
      continue
    }
    work.add(STEP)
    if (tracks.length > TRACKS_MAX) throw new TooMuchWork()
    const id = readUnsigned(bytes, at, sizeAt)
    const size = readVint(bytes, sizeAt, sizeBytes)
    if (id === TRACK_ENTRY) tracks.push(newTrack(tracks.length + 1))
    if (id === ENCODINGS && tracks.length > 0) tracks.at(-1)!.isEncoded = true
    if (CONTAINER_ELEMENTS.has(id)) {
      at = start
      continue
    }
    const end = Math.min(bytes.length, start + size)
    const track = tracks.at(-1)
    if (id === SCALE) scale = readUnsigned(bytes, start, end) || scale
    if (id === DURATION) claimed = readFloat(bytes, start, end)
    if (track && TRACK_PARTS.has(id)) readTrack(track, id, bytes.subarray(start, end))
    if (id === CLUSTER_TIME) clusterTime = readUnsigned(bytes, start, end)
    const isBlock = id === SIMPLE_BLOCK || id === BLOCK
    if (isBlock && start + 4 < end) {
      const numberBytes = Math.min(vintBytes(bytes, start), 8)
      const number = readVint(bytes, start, numberBytes)
      const head = start + numberBytes
      const time = head + 3 < end ? clusterTime + bytes.readInt16BE(head) : clusterTime
      firstTime = Math.min(firstTime, time)
      lastTime = Math.max(lastTime, time)
      let isOwned = false
      work.add(tracks.length)
      for (const owner of tracks) {
        if (owner.number !== number) continue
        isOwned = true
        if (head + 3 < end) readBlock(bytes, head, end, owner)
      }
      // The description of its track may come later in the file.
      if (!isOwned) strayBytes += end - start
    }
    // A decoder may find audio in a large unknown element, or in one that is cut off.
    const isOdd = start + size > bytes.length || (end - start > ELEMENT_BYTES_MIN && !KNOWN_LARGE_ELEMENTS.has(id))
    if (!isBlock && isOdd) strayBytes += end - start
    at = end
  }
  const counted = Math.max(0, ...tracks.map(({ seconds }) => seconds))
  const isUnreadable = tracks.some(track => track.isEncoded && isSound(track))
  return { counted, claimed: (Math.max(claimed, lastTime - firstTime) * scale) / 1e9, strayBytes, isUnreadable }
}

function readTrack(track: Track, id: number, content: Buffer): void {
  if (id === TRACK_NUMBER) track.number = readUnsigned(content, 0, content.length)
  // A track that was declared as audio stays audio, even if a later element says otherwise.
  if (id === CODEC && !isSound(track))
    track.name = readText(content, 0, Math.min(32, content.length)).replace(/\0+$/, '')
  if (id === RATE) track.rate = readFloat(content, 0, content.length) || track.rate
  if (id === CHANNELS) track.channels = readUnsigned(content, 0, content.length)
  if (id === BITS) track.bits = readUnsigned(content, 0, content.length)
  if (id === PRIVATE) track.private = content
}

const isSound = ({ name }: Track): boolean => name.startsWith('A_')

/** The codec of a track, once its description is read completely. */
function trackCodec({ name, rate: entryFormat, channels, bits, private: own }: Track): Codec {
  // The default rate of a track without a rate.
  const rate = entryFormat || 8_000
  if (name === 'A_OPUS') return { kind: 'opus', rate, size: 0 }
  if (name === 'A_FLAC') {
    return {
      kind: 'flac',
      rate: lowerRate(entryFormat, flacRate(own, readText(own, 0, 4) === 'fLaC' ? 8 : 0)),
      size: 0,
    }
  }
  if (name === 'A_AC3' || name === 'A_EAC3') return { kind: 'ac3', rate, size: 0 }
  if (name === 'A_MS/ACM' && own.length >= 16) {
    const secondBytes = waveSecondBytes(own, 0)
    if (secondBytes === 'mp3') return { kind: 'mpeg', rate, size: 0 }
    return secondBytes > 0 ? { kind: 'plain', rate: secondBytes, size: 1 } : OTHER
  }
  if (name.startsWith('A_MPEG/')) return { kind: 'mpeg', rate, size: 0 }
  if (name.startsWith('A_AAC')) return aacCodec(own, 0, { rate, channels })
  if (name.startsWith('A_PCM/')) return plainCodec(rate, channels, Math.ceil((bits || 8) / 8))
  const vorbisAt = name === 'A_VORBIS' ? own.subarray(0, 1_024).indexOf('\x01vorbis', 0, 'latin1') : -1
  const vorbis = vorbisAt < 0 ? undefined : readVorbis(own, vorbisAt)
  if (vorbis === undefined) return OTHER
  const isLong = readModes(own.subarray(lastHeaderAt(own)), vorbis.channels)
  return { kind: 'vorbis', rate: vorbis.rate, size: 0, vorbis: { ...vorbis, isLong } }
}

/** Where the last of the three Vorbis headers begins: the lengths of the first two come before them. */
function lastHeaderAt(own: Buffer): number {
  let [at, before] = [1, 0]
  for (let header = 0; header < 2; header++) {
    for (; own[at] === 255; at++) before += 255
    before += own[at++] ?? 0
  }
  return own[0] === 2 ? at + before : own.length
}

/** Adds the length of the frames in a block. `head` is where its time is, before its flags. */
function readBlock(bytes: Buffer, head: number, end: number, track: Track): void {
  if (!isSound(track)) return
  track.codec ??= trackCodec(track)
  const frames = (bytes[head + 2]! & 6) === 0 ? [head + 3, end] : lacedFrames(bytes, head + 2, end)
  work.add((frames.length - 1) * STEP)
  for (let index = 1; index < frames.length; index++) {
    const [from, to] = [frames[index - 1]!, frames[index]!]
    const minSeconds = track.isEncoded ? packetSecondsMax(track.codec) : 0
    track.seconds += Math.max(minSeconds, packetSeconds(bytes, from, to, track.codec))
  }
}

/** Where each frame of a block begins, and where the last one ends. `at` is where the flags are. */
function lacedFrames(bytes: Buffer, at: number, end: number): readonly number[] {
  const lacing = bytes[at]! & 6
  const count = (bytes[at + 1] ?? 0) + 1
  let next = at + 2
  // No decoder reads a block with more frames than bytes.
  if (end - next < count) return [Math.min(next, end), end]
  const sizes: number[] = []
  for (let index = 1; index < count && lacing !== 4; index++) {
    if (lacing === 2) {
      let size = 0
      for (; bytes[next] === 255 && next < end; next++) size += 255
      sizes.push(size + (bytes[next++] ?? 0))
      continue
    }
    const length = Math.min(vintBytes(bytes, next), 8)
    const size = readVint(bytes, next, length)
    next += length
    sizes.push(index === 1 ? size : sizes.at(-1)! + size - (2 ** (7 * length - 1) - 1))
  }
  if (lacing === 4) sizes.push(...Array<number>(count - 1).fill(Math.floor(Math.max(0, end - next) / count)))
  const starts = [Math.min(next, end)]
  for (const size of sizes) starts.push(Math.min(end, starts.at(-1)! + Math.max(0, size)))
  return [...starts, end]
}

/** The size in bytes of the variable-length number at `at`; more than 8 if there is none. */
const vintBytes = (bytes: Buffer, at: number): number => Math.clz32(bytes[at] ?? 0) - 23

/** Reads a variable-length number without the bit that marks its size. */
const readVint = (bytes: Buffer, at: number, length: number): number =>
  ((bytes[at] ?? 0) & (255 >> length)) * 256 ** (length - 1) + readUnsigned(bytes, at + 1, at + length)

function readUnsigned(bytes: Buffer, start: number, end: number): number {
  const last = Math.min(end, start + 8)
  let value = 0
  for (let at = start; at < last; at++) value = value * 256 + (bytes[at] ?? 0)
  return value
}

function readFloat(bytes: Buffer, start: number, end: number): number {
  const value = end - start === 4 ? bytes.readFloatBE(start) : end - start === 8 ? bytes.readDoubleBE(start) : 0
  return value > 0 && value < 1e12 ? value : 0
}

// MP4: boxes inside boxes

const CONTAINER_BOXES: ReadonlySet<string> = new Set([
  'moov',
  'trak',
  'edts',
  'mdia',
  'minf',
  'stbl',
  'moof',
  'traf',
  'mvex',
])

interface Mp4Track {
  id: number
  isSound: boolean
  codec: Codec
  scale: number
  /** The length that its headers claim, in seconds. */
  claimed: number
  /** Tables: the sizes of samples, where chunks begin, and how many samples each chunk has. */
  sizes: Buffer
  offsets: Buffer
  offsetBytes: number
  chunks: Buffer
  /** The seconds that the edit list plays. */
  edits: number
  editCount: number
  hasOddSizes: boolean
}

/** A run of samples that lie one after the other. */
interface Run {
  readonly track: number
  readonly at: number | undefined
  readonly count: number
  /** The size of each sample, if all have the same. */
  readonly each?: number
  readonly sizeOf: (index: number) => number
}

interface Mp4 {
  readonly bytes: Buffer
  readonly tracks: Mp4Track[]
  readonly runs: Run[]
  readonly defaultSizes: Map<number, number>
  claimed: number
  scale: number
  /** Where the last fragment begins, and the defaults of its samples. */
  moofAt: number
  fragment: { readonly track: number; readonly base: number; readonly size: number }
  dataBytes: number
}

function measureMp4(bytes: Buffer): Measurement | undefined {
  const fragment = { track: 0, base: 0, size: 0 }
  const heads = { claimed: 0, scale: 0, moofAt: 0, dataBytes: 0 }
  const file: Mp4 = { bytes, tracks: [], runs: [], defaultSizes: new Map(), fragment, ...heads }
  for (let at = 0; at + 8 <= bytes.length; ) {
    work.add(STEP_HEAVY)
    if (file.tracks.length > TRACKS_MAX) throw new TooMuchWork()
    const [size, name] = [bytes.readUInt32BE(at), readText(bytes, at + 4, 4)]
    const isLong = size === 1 && at + 16 <= bytes.length
    const start = at + (isLong ? 16 : 8)
    const long = isLong ? bytes.readUInt32BE(at + 8) * 2 ** 32 + bytes.readUInt32BE(at + 12) : size
    const end = size === 0 ? bytes.length : Math.min(bytes.length, at + Math.max(8, long))
    if (name === 'moof') file.moofAt = at
    if (name === 'traf') file.fragment = { track: 0, base: file.moofAt, size: 0 }
    if (name === 'trak') file.tracks.push(newMp4Track())
    if (name === 'mdat') file.dataBytes += end - start
    if (!CONTAINER_BOXES.has(name)) readBox(name, bytes.subarray(start, end), file)
    at = CONTAINER_BOXES.has(name) ? start : end
  }
  return measureTracks(file)
}

const newMp4Track = (): Mp4Track => ({
  id: 0,
  isSound: true,
  codec: OTHER,
  scale: 0,
  claimed: 0,
  edits: 0,
  editCount: 0,
  hasOddSizes: false,
  sizes: Buffer.alloc(0),
  offsets: Buffer.alloc(0),
  offsetBytes: 4,
  chunks: Buffer.alloc(0),
})

function readBox(name: string, box: Buffer, file: Mp4): void {
  if (name === 'mvhd') {
    const head = headSeconds(box)
    file.claimed = Math.max(file.claimed, head.seconds)
    file.scale = head.scale
  }
  if (name === 'mdhd' && file.tracks.length === 0) file.tracks.push(newMp4Track())
  const track = file.tracks.at(-1)
  if (track !== undefined) readTrackBox(name, box, file, track)
  if (name === 'trex' && box.length >= 20) file.defaultSizes.set(box.readUInt32BE(4), box.readUInt32BE(16))
  if (name === 'tfhd' && box.length >= 8) file.fragment = readFragment(box, file)
  if (name === 'trun' && box.length >= 8) file.runs.push(readRun(box, file))
}

function readTrackBox(name: string, box: Buffer, file: Mp4, track: Mp4Track): void {
  if (name === 'tkhd' && box.length >= 24) track.id = box.readUInt32BE(box[0] === 1 ? 20 : 12)
  if (name === 'mdhd') {
    const head = headSeconds(box)
    track.scale = head.scale
    track.claimed = Math.max(track.claimed, head.seconds)
  }
  // A second `hdlr` box, deeper inside, describes the data and not the track.
  if (name === 'hdlr' && readText(box, 4, 4) !== 'dhlr') track.isSound = readText(box, 8, 4) === 'soun'
  if (name === 'stsd') track.codec = readEntries(box)
  if (name === 'stts' && track.scale > 0) track.claimed = Math.max(track.claimed, timesSum(box) / track.scale)
  if (name === 'stsz' && box.length >= 12) track.sizes = box
  if (name === 'stz2') track.hasOddSizes = true
  if (name === 'stsc') track.chunks = box.subarray(8)
  if (name === 'stco' || name === 'co64') track.offsets = box.subarray(8)
  if (name === 'stco' || name === 'co64') track.offsetBytes = name === 'stco' ? 4 : 8
  if (name === 'elst') readEdits(box, file.scale, track)
}

/** An edit list may play the same part several times. */
function readEdits(box: Buffer, scale: number, track: Mp4Track): void {
  const each = box[0] === 1 ? 20 : 12
  work.add(box.length)
  for (let at = 8; at + each <= box.length && scale > 0; at += each) {
    track.editCount++
    track.edits += (box[0] === 1 ? Number(box.readBigUInt64BE(at)) : box.readUInt32BE(at)) / scale
  }
}

function readFragment(box: Buffer, { moofAt, defaultSizes }: Mp4): Mp4['fragment'] {
  const [flags, track] = [box.readUInt32BE(0), box.readUInt32BE(4)]
  let at = 8
  const base = flags & 1 && at + 8 <= box.length ? Number(box.readBigUInt64BE(at)) : moofAt
  at += (flags & 1 ? 8 : 0) + (flags & 2 ? 4 : 0) + (flags & 8 ? 4 : 0)
  const size = flags & 16 && at + 4 <= box.length ? box.readUInt32BE(at) : (defaultSizes.get(track) ?? 0)
  return { track, base, size }
}

function readRun(box: Buffer, { fragment: { track, base, size } }: Mp4): Run {
  const [flags, count] = [box.readUInt32BE(0), box.readUInt32BE(4)]
  const offset = flags & 1 && box.length >= 12 ? box.readInt32BE(8) : undefined
  const table = 8 + (flags & 1 ? 4 : 0) + (flags & 4 ? 4 : 0)
  const fields = [0x100, 0x200, 0x400, 0x800].filter(flag => flags & flag).length
  const sizeOf = (index: number): number => {
    const at = table + index * fields * 4 + (flags & 0x100 ? 4 : 0)
    return (flags & 0x200) === 0 ? size : at + 4 <= box.length ? box.readUInt32BE(at) : 0
  }
  const isSame = (flags & 0x200) === 0
  return { track, at: offset === undefined ? undefined : base + offset, count, sizeOf, ...(isSame && { each: size }) }
}

interface SampleTotals {
  seconds: number
  bytes: number
  isUnreadable: boolean
}

function measureTracks(file: Mp4): Measurement {
  const { tracks, runs, bytes, dataBytes } = file
  const sounds = tracks.filter(({ isSound }) => isSound)
  const ids = new Set(tracks.map(({ id }) => id))
  const isKnown = tracks.some(({ id }) => id !== 0)
  let [counted, claimed, soundBytes, isUnreadable] = [0, file.claimed, 0, false]
  for (const track of sounds) {
    const totals: SampleTotals = { seconds: 0, bytes: 0, isUnreadable: track.hasOddSizes }
    walkTables(bytes, track, totals)
    work.add(runs.length * STEP_HEAVY)
    for (const run of runs) {
      const isOwn = run.track === track.id || !isKnown || !ids.has(run.track)
      if (isOwn) walkSamples(bytes, run, track.codec, totals)
    }
    const seconds = Math.max(totals.seconds, Math.min(track.edits, totals.seconds * track.editCount))
    counted = Math.max(counted, seconds)
    claimed = Math.max(claimed, track.claimed)
    soundBytes += totals.bytes
    isUnreadable ||= totals.isUnreadable
  }
  // A file with audio tracks only must not have much data outside of all samples.
  const isHidden = sounds.length === tracks.length && dataBytes > soundBytes * 2 + OUTSIDE_BYTES_MIN
  // Data of an unknown codec in a file without sample sizes.
  const isOther = sounds.some(({ codec }) => codec.kind === 'other') && soundBytes === 0
  return { counted, claimed, isUnreadable: isUnreadable || isHidden || isOther }
}

function walkTables(bytes: Buffer, track: Mp4Track, totals: SampleTotals): void {
  const { sizes, codec } = track
  if (sizes.length < 12) return
  const [each, count] = [sizes.readUInt32BE(4), sizes.readUInt32BE(8)]
  const sizeOf = (index: number): number =>
    each > 0 ? each : 16 + index * 4 <= sizes.length ? sizes.readUInt32BE(12 + index * 4) : 0
  const all: Run = { track: 0, at: undefined, count, sizeOf, ...(each > 0 && { each }) }
  if (isCountable(codec)) return walkSamples(bytes, all, codec, totals)
  let first = 0
  for (const [at, samples] of chunksOf(track)) {
    if (first >= count) break
    const [from, own] = [first, Math.min(samples, count - first)]
    const part = { track: 0, at, count: own, sizeOf: (index: number) => sizeOf(from + index) }
    walkSamples(bytes, part, codec, totals)
    first += own
  }
  if (first < count) totals.isUnreadable = true
}

/** Lists where each chunk begins, and how many samples it has. */
function* chunksOf({ offsets, offsetBytes, chunks }: Mp4Track): Generator<readonly [number, number]> {
  let [row, samples] = [0, 0]
  for (let index = 0; (index + 1) * offsetBytes <= offsets.length; index++) {
    work.add(STEP)
    for (; row + 12 <= chunks.length && chunks.readUInt32BE(row) <= index + 1; row += 12) {
      samples = chunks.readUInt32BE(row + 4)
    }
    const at = index * offsetBytes
    yield [offsetBytes === 4 ? offsets.readUInt32BE(at) : Number(offsets.readBigUInt64BE(at)), samples]
  }
}

function walkSamples(bytes: Buffer, run: Run, codec: Codec, totals: SampleTotals): void {
  const { count, sizeOf } = run
  if (isCountable(codec)) return countSamples(bytes, run, codec, totals)
  if (run.at === undefined) totals.isUnreadable ||= count > 0
  let at = run.at ?? bytes.length
  for (let index = 0; index < count; index++) {
    if (at < 0 || at >= bytes.length) {
      totals.isUnreadable = true
      return
    }
    work.add(STEP)
    const end = Math.min(bytes.length, at + sizeOf(index))
    totals.seconds += packetSeconds(bytes, at, end, codec)
    totals.bytes += end - at
    at = end
  }
}

/** Counts samples by their sizes only. A plain sample has at least the bytes of its channels, whatever the table claims. */
function countSamples(bytes: Buffer, { count, each, sizeOf }: Run, codec: Codec, totals: SampleTotals): void {
  const least = codec.kind === 'plain' ? codec.size : 0
  let [all, seconds] = [0, 0]
  if (each === undefined) {
    for (let index = 0; index < count; index++) {
      work.add(STEP_LIGHT)
      const size = Math.max(least, sizeOf(index))
      all += size
      if (codec.kind === 'frames') seconds += frameSeconds(size, codec)
    }
  } else {
    all = count * Math.max(least, each)
    if (codec.kind === 'frames') seconds = count * frameSeconds(each, codec)
  }
  all = Math.min(bytes.length, all)
  totals.bytes += all
  totals.seconds += codec.kind === 'frames' ? seconds : packetSeconds(bytes, 0, all, codec)
}

function headSeconds(box: Buffer): { readonly seconds: number; readonly scale: number } {
  if (box.length < 20 || (box[0] === 1 && box.length < 32)) return { seconds: 0, scale: 0 }
  const [scale, high, low] =
    box[0] === 1
      ? [box.readUInt32BE(20), box.readUInt32BE(24), box.readUInt32BE(28)]
      : [box.readUInt32BE(12), 0, box.readUInt32BE(16)]
  const isUnknown = low === 0xffffffff
  return { scale, seconds: scale === 0 || isUnknown ? 0 : (high * 2 ** 32 + low) / scale }
}

const ALAC_SAMPLES = 4_096

/** Reads the sample descriptions of a track. Of several, the values that make the audio longer count. */
function readEntries(box: Buffer): Codec {
  let codec: Codec | undefined
  for (let [at, entries] = [8, 0]; at + 36 <= box.length && entries < TRACKS_MAX; entries++) {
    const size = box.readUInt32BE(at)
    const found = readEntry(box.subarray(at, size < 36 ? box.length : at + size))
    if (codec === undefined) codec = found
    else if (codec.kind !== found.kind) return OTHER
    const longer = codec.kind === 'plain' ? Math.min(codec.size, found.size) : Math.max(codec.size, found.size)
    const bytesMax = Math.min(codec.bytesMax ?? Infinity, found.bytesMax ?? Infinity)
    codec = { ...codec, rate: lowerRate(codec.rate, found.rate), size: longer, bytesMax }
    at += size < 36 ? box.length : size
  }
  return codec ?? OTHER
}

/** The bytes of a plain sample, from the bits in its header. */
const plainSamples: Readonly<Record<string, (bits: number) => number>> = {
  ulaw: () => 1,
  alaw: () => 1,
  'raw ': bits => (bits === 16 ? 2 : 1),
  NONE: bits => (bits === 16 ? 2 : 1),
  twos: bits => ([8, 24, 32].includes(bits) ? bits / 8 : 2),
  sowt: bits => ([8, 24, 32].includes(bits) ? bits / 8 : 2),
  in24: () => 3,
  in32: () => 4,
  fl32: () => 4,
  fl64: () => 8,
  lpcm: bits => Math.ceil(bits / 8),
}

function readEntry(entry: Buffer): Codec {
  if (entry.length < 36) return OTHER
  const name = readText(entry, 4, 4)
  const isSecond = entry.readUInt16BE(16) === 2 && entry.length >= 72
  const [channels, bits] = isSecond
    ? [entry.readUInt32BE(48), entry.readUInt32BE(56)]
    : [entry.readUInt16BE(24), entry.readUInt16BE(26)]
  const rate = isSecond ? readFloat(entry, 40, 48) : entry.readUInt16BE(32)
  const plain = plainSamples[name]
  if (plain !== undefined) return plainCodec(rate, channels, plain(bits))
  if (name === 'Opus') return { kind: 'opus', rate, size: 0 }
  if (name === 'ac-3' || name === 'ec-3') return { kind: 'ac3', rate, size: 0 }
  if (name === '.mp3' || name === 'ms\0U') return { kind: 'mpeg', rate, size: 0 }
  if (name === 'samr' || name === 'sawb') return { kind: 'amr', rate: 0, size: name === 'sawb' ? 1 : 0 }
  if (name === 'fLaC') {
    const head = entry.indexOf('dfLa', 36, 'latin1')
    return { kind: 'flac', rate: head < 0 ? rate : flacRate(entry, head + 12), size: 0 }
  }
  if (name === 'alac') {
    const head = entry.indexOf('alac', 36, 'latin1')
    const [samples, own] =
      head < 0 || head + 32 > entry.length ? [0, 0] : [entry.readUInt32BE(head + 8), entry.readUInt32BE(head + 28)]
    return { kind: 'frames', rate: own || rate, size: samples || ALAC_SAMPLES }
  }
  return name === 'mp4a' ? readAudio(entry, { rate, channels }) : OTHER
}

/** AAC and MP3: the decoder configuration counts more than the sample description. */
function readAudio(entry: Buffer, entryFormat: EntryFormat): Codec {
  const { rate } = entryFormat
  let decoderCodec: Codec | undefined
  for (let esds = entry.indexOf('esds', 36, 'latin1'); esds >= 0; esds = entry.indexOf('esds', esds + 4, 'latin1')) {
    // Descriptors inside descriptors: of the stream, of its decoder, and of the decoder's configuration.
    const stream = inDescriptor(entry, esds + 8, 0x03)
    const decoder = inDescriptor(entry, stream + 3, 0x04)
    const kind = entry[decoder]
    if (kind === 0x69 || kind === 0x6b) return { kind: 'mpeg', rate, size: 0 }
    if (kind !== undefined && kind !== 0x40 && (kind < 0x66 || kind > 0x68)) return OTHER
    const found = aacCodec(entry, inDescriptor(entry, decoder + 13, 0x05), { ...entryFormat, rate: 0 })
    if (decoderCodec !== undefined && decoderCodec.kind !== found.kind) return OTHER
    decoderCodec = { ...found, rate: lowerRate(decoderCodec?.rate ?? 0, found.rate) }
  }
  const codec = decoderCodec ?? aacCodec(entry, entry.length, entryFormat)
  return { ...codec, rate: codec.rate || rate || AAC_RATES[3]! }
}

/** What the sample description says, besides the decoder configuration. */
interface EntryFormat {
  readonly rate: number
  readonly channels: number
}

/** The most bytes of one AAC frame for each channel, for at most two channels: encoders use no more. */
const AAC_BYTES_MAX = 768
/** Unified Speech and Audio Coding: its frames may be four times as long, and this configuration does not show it. */
const USAC = 42

function aacCodec(bytes: Buffer, at: number, { rate, channels }: EntryFormat): Codec {
  const own = aacConfig(bytes, at)
  if (own?.kind === USAC) return OTHER
  const bytesMax = AAC_BYTES_MAX * Math.min(2, Math.max(1, channels))
  return { kind: 'frames', rate: lowerRate(rate, own?.rate ?? 0), size: AAC_SAMPLES, bytesMax }
}

/** Reads the configuration of an AAC decoder: a kind of 5 or 11 bits, then an index of the rate, or the rate itself. */
function aacConfig(bytes: Buffer, at: number): { readonly kind: number; readonly rate: number } | undefined {
  if (!(at + 1 < bytes.length)) return undefined
  const bitsAt = (from: number, count: number): number => {
    let value = 0
    for (let bit = from; bit < from + count; bit++) {
      value = value * 2 + (((bytes[at + (bit >> 3)] ?? 0) >> (7 - (bit & 7))) & 1)
    }
    return value
  }
  const start = bitsAt(0, 5) === 31 ? 11 : 5
  const index = bitsAt(start, 4)
  const kind = start === 11 ? 32 + bitsAt(5, 6) : bitsAt(0, 5)
  return { kind, rate: index === 15 ? bitsAt(start + 4, 24) : (AAC_RATES[index] ?? 0) }
}

/** Where the content of a descriptor begins; its length has up to four bytes. NaN for a descriptor of another kind. */
function inDescriptor(bytes: Buffer, at: number, tag: number): number {
  if (bytes[at] !== tag) return Number.NaN
  let length = at + 1
  while (length < at + 4 && bytes[length]! >= 128) length++
  return length + 1
}

function timesSum(box: Buffer): number {
  let sum = 0
  work.add(box.length)
  for (let at = 8; at + 8 <= box.length; at += 8) sum += box.readUInt32BE(at) * box.readUInt32BE(at + 4)
  return sum
}

// AMR: a frame lasts twenty milliseconds, and its first byte determines its size

const AMR_BYTES = [13, 14, 16, 18, 20, 21, 27, 32, 6, 1, 1, 1, 1, 1, 1, 1]
const AMR_WB_BYTES = [18, 24, 33, 37, 41, 47, 51, 59, 61, 6, 1, 1, 1, 1, 1, 1]

const AMR_SECONDS = 0.02

function measureAmr(bytes: Buffer): Measurement | undefined {
  const isWide = readText(bytes, 0, 9) === '#!AMR-WB\n'
  if (!isWide && readText(bytes, 0, 6) !== '#!AMR\n') return undefined
  return { counted: amrFrames(bytes, { start: isWide ? 9 : 6, end: bytes.length, isWide }) * AMR_SECONDS }
}

interface AmrPart {
  readonly start: number
  readonly end: number
  readonly isWide: boolean
}

function amrFrames(bytes: Buffer, { start, end, isWide }: AmrPart): number {
  const sizes = isWide ? AMR_WB_BYTES : AMR_BYTES
  let frames = 0
  work.add(Math.max(0, end - start))
  for (let at = start; at < end; at += sizes[(bytes[at]! >> 3) & 15]!) frames++
  return frames
}
