// Tests the measured length of audio files, whatever their headers claim. Each file is built here byte by byte, as an
// encoder would write it.

import { describe, expect, test } from 'bun:test'
import { AudioWork, measureAudioSeconds } from './audio-duration.ts'

const u8 = (...values: readonly number[]): Buffer => Buffer.from(values)
const ascii = (text: string): Buffer => Buffer.from(text, 'latin1')
const be16 = (value: number): Buffer => u8(value >> 8, value & 255)
const be32 = (value: number): Buffer => Buffer.concat([be16(Math.floor(value / 65_536)), be16(value & 65_535)])
const le16 = (value: number): Buffer => be16(value).reverse()
const le32 = (value: number): Buffer => be32(value).reverse()
const join = (...parts: readonly Uint8Array[]): Buffer => Buffer.concat(parts)
const many = (count: number, make: (index: number) => Uint8Array): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_none, index) => make(index)))
const zeros = (count: number): Buffer => Buffer.alloc(count)
/** Bytes without 0xff, so that they contain no frame. */
const noise = (count: number): Buffer =>
  Buffer.from(Array.from({ length: count }, (_none, index) => (index * 37) % 251))

interface Wave {
  readonly code?: number
  readonly rate?: number
  readonly channels?: number
  readonly bits?: number
  readonly claimed?: number
  readonly secondBytes?: number
  readonly before?: Buffer
}

function wav(data: Buffer, wave: Wave = {}): Buffer {
  const { code = 1, rate = 8_000, channels = 1, bits = 16, claimed = data.length, before = zeros(0) } = wave
  const secondBytes = wave.secondBytes ?? (rate * channels * bits) / 8
  const fmt = join(le16(code), le16(channels), le32(rate), le32(secondBytes), le16((channels * bits) / 8), le16(bits))
  const sub = join(le16(22), le16(bits), le32(0), le16(1), zeros(14))
  const head = code === 0xfffe ? join(fmt, sub) : fmt
  const chunks = join(ascii('fmt '), le32(head.length), head, before, ascii('data'), le32(claimed), data)
  return join(ascii('RIFF'), le32(chunks.length + 4), ascii('WAVE'), chunks)
}

/** MPEG 1 and 2, layer III. */
function mp3(frames: number, { kbitAt = (_at: number): number => 9, version = 3 } = {}): Buffer {
  const tables = { 3: [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160], 2: [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96] }
  return many(frames, frameIndex => {
    const index = kbitAt(frameIndex)
    const kbit = tables[version as 2 | 3][index]!
    const size = version === 3 ? Math.floor((144_000 * kbit) / 44_100) : Math.floor((72_000 * kbit) / 22_050)
    return join(u8(0xff, 0xe0 | (version << 3) | 3, index << 4, 0), noise(size - 4))
  })
}

const adts = (frames: number, rateAt: number): Buffer =>
  many(frames, () => {
    const size = 100
    const middle = [0x40 | (rateAt << 2), (1 << 6) | (size >> 11), (size >> 3) & 255, ((size & 7) << 5) | 31, 0xfc]
    return join(u8(0xff, 0xf1, ...middle), noise(size - 7))
  })

function crc8(bytes: Buffer): number {
  let crc = 0
  for (const byte of bytes)
    for (let bit = 7; bit >= 0; bit--) {
      crc = ((crc << 1) ^ (((crc >> 7) ^ (byte >> bit)) & 1 ? 7 : 0)) & 255
    }
  return crc
}

/** Frames of 4,096 samples, numbered in order or by `number`. */
function flac(frames: number, { rate = 16_000, claimed = 0, number = (index: number): number => index } = {}): Buffer {
  const last = (rate & 15) << 4
  const rates = u8(rate >> 12, (rate >> 4) & 255, last, 0)
  const info = join(be16(4_096), be16(4_096), zeros(6), rates, be32(claimed), zeros(16))
  return join(
    ascii('fLaC'),
    u8(0x80, 0, 0, 34),
    info,
    many(frames, index => {
      const head = join(u8(0xff, 0xf8, 0xc0 | 5, 0x08), u8(number(index) & 127))
      return join(head, u8(crc8(head)), noise(200))
    }),
  )
}

interface OggPage {
  readonly granule?: number
  readonly serial?: number
}

function page(packets: readonly Buffer[], { granule = 0, serial = 1 }: OggPage = {}): Buffer {
  const lacing = packets.flatMap(({ length }) => [...Array<number>(Math.floor(length / 255)).fill(255), length % 255])
  const head = join(ascii('OggS'), u8(0, 0), le32(granule), le32(0), le32(serial), le32(0), le32(0))
  return join(head, u8(lacing.length), u8(...lacing), ...packets)
}

const opusHeads = (serial = 1): Buffer =>
  join(page([join(ascii('OpusHead'), zeros(11))], { serial }), page([join(ascii('OpusTags'), zeros(8))], { serial }))

/** One SILK frame of 20 ms, at about 6 kbit/s. */
const opusPacket = join(u8(0x48), noise(14))

const oggOpus = (pages: number, granule = (index: number): number => (index + 1) * 48_000): Buffer =>
  join(
    opusHeads(),
    many(pages, index => page(Array<Buffer>(50).fill(opusPacket), { granule: granule(index) })),
  )

function oggVorbis(packets: number, { granule = 0, isLong = true } = {}): Buffer {
  const id = join(ascii('\x01vorbis'), le32(0), u8(1), le32(44_100), zeros(12), u8(0xb8), u8(1))
  const heads = join(page([id]), page([ascii('\x03vorbis'), ascii('\x05vorbis')]))
  return join(
    heads,
    many(packets, () => page([join(u8(isLong ? 2 : 0), noise(40))], { granule })),
  )
}

function element(id: readonly number[], content: Buffer): Buffer {
  const size = be32(content.length)
  size[0]! |= 0x10
  return join(u8(...id), size, content)
}

const unknownSize = (id: readonly number[], content: Buffer): Buffer =>
  join(u8(...id), u8(0x01, 255, 255, 255, 255, 255, 255, 255), content)

interface Webm {
  readonly codec?: string
  readonly duration?: number
  readonly clusters?: number
  readonly timeOf?: (index: number) => number
}

/** WebM as browsers record it: clusters of one second each, of unknown size. */
function webm({ codec = 'A_OPUS', duration, clusters = 60, timeOf = index => index * 1_000 }: Webm = {}): Buffer {
  const float = Buffer.alloc(8)
  float.writeDoubleBE(duration ?? 0)
  const info = element(
    [0x15, 0x49, 0xa9, 0x66],
    join(
      element([0x2a, 0xd7, 0xb1], u8(0x0f, 0x42, 0x40)),
      duration === undefined ? zeros(0) : element([0x44, 0x89], float),
    ),
  )
  const rate = Buffer.alloc(8)
  rate.writeDoubleBE(16_000)
  const audioElement = element([0xe1], element([0xb5], rate))
  const track = element([0xae], join(element([0xd7], u8(1)), element([0x86], ascii(codec)), audioElement))
  const tracks = element([0x16, 0x54, 0xae, 0x6b], track)
  const body = many(clusters, index => {
    const blocks = many(50, block => element([0xa3], join(u8(0x81), be16(block * 20), u8(0x80), opusPacket)))
    return unknownSize([0x1f, 0x43, 0xb6, 0x75], join(element([0xe7], be32(timeOf(index))), blocks))
  })
  const head = element([0x1a, 0x45, 0xdf, 0xa3], ascii('\x42\x82\x84webm'))
  return join(head, unknownSize([0x18, 0x53, 0x80, 0x67], join(info, tracks, body)))
}

const box = (name: string, ...content: readonly Buffer[]): Buffer => {
  const body = join(...content)
  return join(be32(body.length + 8), ascii(name), body)
}

interface Mp4 {
  readonly samples?: number
  readonly claimed?: number
  readonly entryRate?: number
  readonly rateAt?: number
  readonly codec?: string
  readonly fragments?: number
}

function mp4({ samples = 0, claimed = 0, entryRate = 16_000, rateAt = 8, codec = 'mp4a', fragments = 0 }: Mp4): Buffer {
  const head = join(be32(0), be32(0), be32(0), be32(1_000), be32(claimed * 1_000), zeros(4))
  const config = u8(0x05, 2, 0x10 | (rateAt >> 1), ((rateAt & 1) << 7) | 8)
  const decoderInfo = join(u8(0x40, 0x15, 5, 5, 5), be32(0x05050505), be32(0))
  const decoder = join(u8(0x04, 0x80, 0x80, 13 + config.length), decoderInfo, config)
  const esds = box('esds', be32(0), u8(0x03, 3 + decoder.length), be16(1), u8(0), decoder)
  const entry = join(zeros(6), be16(1), zeros(8), be16(1), be16(16), zeros(4), be16(entryRate), be16(0), esds)
  const table = box(
    'stbl',
    box('stsd', be32(0), be32(1), box(codec, entry)),
    box('stts', be32(0), be32(1), be32(samples), be32(claimed === 0 ? 0 : 1)),
    box('stsz', be32(0), be32(0), be32(samples)),
  )
  const handler = box('hdlr', be32(0), be32(0), ascii('soun'), zeros(12))
  const track = box('trak', box('mdia', box('mdhd', head), handler, box('minf', table)))
  const videoTrack = box(
    'trak',
    box('mdia', box('mdhd', head), box('hdlr', be32(0), be32(0), ascii('vide'), zeros(12))),
  )
  const runs = many(fragments, () => box('moof', box('traf', box('trun', be32(0), be32(50)))))
  return join(
    box('ftyp', ascii('M4A ')),
    box('mdat', zeros(5_000)),
    box('moov', box('mvhd', head), videoTrack, track),
    runs,
  )
}

// Files that are built from single packets.

const float64 = (value: number): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeDoubleBE(value)
  return bytes
}

interface Mkv {
  readonly codec: string
  readonly rate?: number
  readonly channels?: number
  readonly bits?: number
  readonly codecPrivate?: Buffer
  readonly encodings?: Buffer
  /** The bytes of each block, from its flags on. */
  readonly blocks: readonly Buffer[]
}

function mkv({ codec, rate = 8_000, channels = 1, bits = 8, codecPrivate, encodings = zeros(0), blocks }: Mkv): Buffer {
  const audioSettings = join(
    element([0xb5], float64(rate)),
    element([0x9f], u8(channels)),
    element([0x62, 0x64], u8(bits)),
  )
  const fields = [element([0xd7], u8(1)), element([0x86], ascii(codec)), element([0xe1], audioSettings)]
  const track = element([0xae], join(...fields, element([0x63, 0xa2], codecPrivate ?? zeros(0)), encodings))
  const content = join(
    element([0x16, 0x54, 0xae, 0x6b], track),
    element(
      [0x1f, 0x43, 0xb6, 0x75],
      join(element([0xe7], u8(0)), ...blocks.map(block => element([0xa3], join(u8(0x81), be16(0), block)))),
    ),
  )
  return join(
    element([0x1a, 0x45, 0xdf, 0xa3], ascii('\x42\x82\x84webm')),
    unknownSize([0x18, 0x53, 0x80, 0x67], content),
  )
}

const plainBlock = (data: Buffer): Buffer => join(u8(0x80), data)
const stripped = element(
  [0x6d, 0x80],
  element([0x62, 0x40], element([0x50, 0x34], join(element([0x42, 0x54], u8(3)), element([0x42, 0x55], u8(0x5b))))),
)

interface Mov {
  readonly name: string
  readonly rate?: number
  readonly bits?: number
  /** The bytes after the common part of the sample entry. */
  readonly rest?: Buffer
  /** The size of each sample, if all have the same size. */
  readonly each?: number
  readonly edits?: number
}

/** A MOV file with one chunk of samples. Its headers claim one second. */
function mov(samples: readonly Buffer[], { name, rate = 8_000, bits = 16, rest, each = 0, edits }: Mov): Buffer {
  const data = join(...samples)
  const start = join(box('ftyp', ascii('qt  ')), be32(data.length + 8), ascii('mdat'))
  const head = join(be32(0), be32(0), be32(0), be32(1_000), be32(1_000), zeros(4))
  const entry = join(zeros(6), be16(1), zeros(8), be16(1), be16(bits), zeros(4), be16(rate), be16(0), rest ?? zeros(0))
  const count = each > 0 ? data.length / each : samples.length
  const sizes = each > 0 ? zeros(0) : join(...samples.map(({ length }) => be32(length)))
  const table = box(
    'stbl',
    box('stsd', be32(0), be32(1), box(name, entry)),
    box('stts', be32(0), be32(1), be32(count), be32(0)),
    box('stsc', be32(0), be32(1), be32(1), be32(count), be32(1)),
    box('stsz', be32(0), be32(each), be32(count), sizes),
    box('stco', be32(0), be32(1), be32(start.length)),
  )
  const handler = box('hdlr', be32(0), be32(0), ascii('soun'), zeros(12))
  const list = many(edits ?? 0, () => join(be32(10_000), be32(0), be32(0x10000)))
  const cuts = edits === undefined ? zeros(0) : box('edts', box('elst', be32(0), be32(edits), list))
  const track = box(
    'trak',
    box('tkhd', zeros(12), be32(1), zeros(68)),
    cuts,
    box('mdia', box('mdhd', head), handler, box('minf', table)),
  )
  return join(start, data, box('moov', box('mvhd', head), track))
}

/** A frame of 4,096 samples of silence. Its header says 8 kHz by default; the rate code 0 means the rate of the file. */
const flacFrame = (rateCode = 4): Buffer => {
  const head = u8(0xff, 0xf8, 0xc0 | rateCode, 0x08, 0)
  return join(head, u8(crc8(head)), zeros(8))
}

const flacInfo = (rate: number): Buffer =>
  join(be16(4_096), be16(4_096), zeros(6), u8(rate >> 12, (rate >> 4) & 255, (rate & 15) << 4, 0), zeros(20))

const flacFile = (rate: number, frames: Buffer): Buffer =>
  join(ascii('fLaC'), u8(0x80, 0, 0, 34), flacInfo(rate), frames)

const oggFlac = (packets: number): Buffer =>
  join(
    page([join(ascii('\x7fFLAC'), u8(1, 0, 0, 1), ascii('fLaC'), u8(0x80, 0, 0, 34), flacInfo(8_000))]),
    many(packets, () => page([flacFrame(), flacFrame()])),
  )

/** An Opus packet of two frames of 60 ms. */
const longOpus = join(u8(0x59), noise(60))

/** ADPCM with blocks of 256 bytes for each channel, as encoders write it. */
function adpcm(code: number, blocks: number, channels = 1): Buffer {
  const align = 256 * channels
  const samples = code === 17 ? 505 : 500
  const fmt = join(le16(code), le16(channels), le32(8_000), le32(4_000), le16(align), le16(4), le16(2), le16(samples))
  const chunks = join(ascii('fmt '), le32(fmt.length), fmt, ascii('data'), le32(align * blocks), zeros(align * blocks))
  return join(ascii('RIFF'), le32(chunks.length + 4), ascii('WAVE'), chunks)
}

const fmtChunk = (rate: number, channels: number): Buffer =>
  join(
    ascii('fmt '),
    le32(16),
    join(le16(1), le16(channels), le32(rate), le32(rate * channels * 4), le16(channels * 4), le16(32)),
  )

const esds = (kind: number): Buffer => {
  const decoder = join(u8(0x04, 13), u8(kind, 0x15, 0, 0, 0), zeros(8))
  return box('esds', be32(0), u8(0x03, 3 + decoder.length), be16(1), u8(0), decoder)
}

/** A video in fragments, each with a second of AAC and 25 pictures. */
function fragmented(count: number): Buffer {
  const head = join(be32(0), be32(0), be32(0), be32(1_000), be32(0), zeros(4))
  const track = (id: number, kind: string, entry: Buffer): Buffer =>
    box(
      'trak',
      box('tkhd', zeros(12), be32(id), zeros(68)),
      box(
        'mdia',
        box('mdhd', head),
        box('hdlr', be32(0), be32(0), ascii(kind), zeros(12)),
        box('minf', box('stbl', entry)),
      ),
    )
  const sampleEntry = join(zeros(6), be16(1), zeros(8), be16(1), be16(16), zeros(4), be16(16_000), be16(0))
  const tracks = [track(1, 'vide', zeros(0)), track(2, 'soun', box('stsd', be32(0), be32(1), box('mp4a', sampleEntry)))]
  const run = (id: number, samples: number): Buffer =>
    box('traf', box('tfhd', be32(0), be32(id)), box('trun', be32(0), be32(samples)))
  return join(
    box('ftyp', ascii('iso5')),
    box('moov', box('mvhd', head), ...tracks),
    many(count, () => join(box('moof', run(1, 25)), box('moof', run(2, 15.625 * 2)), box('moof', run(1, 25)))),
  )
}

const measure = (file: Buffer): number => measureAudioSeconds(file)

describe('the length is measured:', () => {
  test.each<readonly [string, Buffer, number]>([
    ['WAV', wav(zeros(160_000)), 10],
    ['WAV in stereo and 24 bits', wav(zeros(480_000), { channels: 2, bits: 24 }), 10],
    ['WAV of µ-law', wav(zeros(80_000), { code: 7, bits: 8 }), 10],
    ['extensible WAV', wav(zeros(160_000), { code: 0xfffe }), 10],
    ['WAV with a chunk before its data', wav(zeros(160_000), { before: join(ascii('LIST'), le32(5), zeros(6)) }), 10],
    ['MP3 at 128 kbit/s', mp3(383), 11],
    ['MP3 with tags', join(ascii('ID3'), u8(4, 0, 0, 0, 0, 1, 0), zeros(128), mp3(383), ascii('TAG'), zeros(125)), 11],
    ['MP3 of a variable rate', mp3(383, { kbitAt: index => 1 + (index % 10) }), 11],
    ['MP3 at 8 kbit/s', mp3(383, { kbitAt: () => 1, version: 2 }), 11],
    ['AAC', adts(157, 8), 11],
    ['FLAC', flac(40), 11],
    ['Opus in Ogg', oggOpus(60), 60],
    [
      'two chained streams of Opus in Ogg',
      join(oggOpus(60), join(opusHeads(2), page([opusPacket], { serial: 2 }))),
      61,
    ],
    ['Vorbis in Ogg', oggVorbis(431, { granule: 440_000 }), 11],
    ['WebM as a browser records it', webm(), 60],
    ['Matroska with a duration', webm({ codec: 'A_VORBIS', duration: 65_000 }), 65],
    ['Matroska without a duration', webm({ codec: 'A_VORBIS' }), 60],
    ['M4A', mp4({ samples: 157, claimed: 10 }), 11],
    ['MP4 in fragments', mp4({ fragments: 4 }), 13],
    ['ALAC in M4A', mp4({ codec: 'alac', samples: 40, claimed: 5 }), 11],
    [
      'AMR',
      join(
        ascii('#!AMR\n'),
        many(500, () => join(u8(0x3c), noise(31))),
      ),
      10,
    ],
    [
      'AMR-WB',
      join(
        ascii('#!AMR-WB\n'),
        many(500, () => join(u8(0x04), noise(17))),
      ),
      10,
    ],
  ])('%s', (_name, file, expected) => {
    expect(measure(file)).toBeWithin(expected - 1, expected + 1)
  })
})

describe('the claim of a header does not make the length shorter:', () => {
  test.each<readonly [string, Buffer, number]>([
    ['a WAV with more data than its header claims', wav(zeros(160_000), { claimed: 100 }), 10],
    ['a WAV whose header claims no data', wav(zeros(160_000), { claimed: 0 }), 10],
    ['a WAV with a false byte rate', wav(zeros(160_000), { secondBytes: 10_000_000 }), 10],
    ['a FLAC whose header claims fewer samples', flac(40, { claimed: 1 }), 10],
    ['a FLAC whose frames all have the number 0', flac(40, { number: () => 0 }), 10],
    ['an Opus in Ogg whose granule position does not grow', oggOpus(60, () => 1), 60],
    ['a Vorbis without granule positions', oggVorbis(431), 10],
    ['a WebM whose header claims a second', webm({ duration: 1_000 }), 60],
    ['a WebM whose timestamps do not grow', webm({ timeOf: () => 0 }), 60],
    ['an M4A whose header claims a second', mp4({ samples: 1_570, claimed: 1 }), 100],
    ['an M4A with another rate than its decoder config', mp4({ samples: 1_570, claimed: 1, entryRate: 65_000 }), 100],
    ['an MP4 in fragments that claims a second', mp4({ fragments: 40, claimed: 1 }), 128],
  ])('%s', (_name, file, expected) => expect(measure(file)).toBeWithin(expected, expected + 2))
})

describe('each codec is measured by its own packets, in every container that may have it:', () => {
  const frame = 4_096 / 8_000
  const flacOwn = join(ascii('fLaC'), u8(0x80, 0, 0, 34), flacInfo(8_000))
  const laced = (flags: number, sizes: Buffer): Buffer => join(u8(0x80 | flags, 1), sizes, longOpus, longOpus)
  const flacBlocks = Array<Buffer>(1_000).fill(plainBlock(flacFrame()))
  const opusTwice = 100 * 0.24
  const mp3Frames = Array.from({ length: 400 }, () => mp3(1, { kbitAt: () => 4, version: 2 }))

  test.each<readonly [string, Buffer, number]>([
    ['PCM in one block of WebM', mkv({ codec: 'A_PCM/INT/LIT', blocks: [plainBlock(zeros(4_800_000))] }), 600],
    [
      'PCM in WebM of 16 bits in stereo',
      mkv({ codec: 'A_PCM/INT/LIT', channels: 2, bits: 16, blocks: [plainBlock(zeros(3_200_000))] }),
      100,
    ],
    ['a WAV with a second format chunk', wav(zeros(4_800_000), { bits: 8, before: fmtChunk(192_000, 8) }), 600],
    [
      'a WAV whose second format chunk has the lower rate',
      wav(zeros(4_800_000), { bits: 32, rate: 192_000, before: fmtChunk(2_000, 1) }),
      600,
    ],
    ['a WAV of µ-law with samples of 8,191 bytes', wav(zeros(4_800_000), { code: 7, bits: 65_528 }), 600],
    ['a WAV of IMA ADPCM', adpcm(17, 1_584), (1_584 * 505) / 8_000],
    ['a WAV of IMA ADPCM in stereo', adpcm(17, 1_584, 2), (1_584 * 505) / 8_000],
    ['a WAV of MS ADPCM', adpcm(2, 1_600), (1_600 * 500) / 8_000],
    ['a WAV whose plain samples are MP3 frames', wav(join(...mp3Frames), { rate: 192_000 }), (400 * 576) / 22_050],
    ['a MOV of µ-law', mov([zeros(4_800_000)], { name: 'ulaw', each: 1 }), 600],
    ['a MOV of 16 bits', mov([zeros(3_200_000)], { name: 'sowt', each: 2 }), 200],
    ['a MOV that plays its sound three times', mov([zeros(80_000)], { name: 'ulaw', each: 1, edits: 3 }), 30],
    ['FLAC in Ogg', oggFlac(500), 1_000 * frame],
    ['FLAC in Matroska', mkv({ codec: 'A_FLAC', codecPrivate: flacOwn, blocks: flacBlocks }), 1_000 * frame],
    [
      'FLAC in MP4',
      mov(Array<Buffer>(1_000).fill(flacFrame(0)), {
        name: 'fLaC',
        rest: box('dfLa', be32(0), u8(0x80, 0, 0, 34), flacInfo(8_000)),
      }),
      1_000 * frame,
    ],
    [
      'FLAC with a higher rate in its header',
      flacFile(
        655_350,
        many(1_000, () => flacFrame()),
      ),
      1_000 * frame,
    ],
    [
      'FLAC with a higher rate in its frames',
      flacFile(
        8_000,
        many(1_000, () => flacFrame(3)),
      ),
      1_000 * frame,
    ],
    ['Opus of 120 ms in MP4', mov(Array<Buffer>(200).fill(longOpus), { name: 'Opus' }), 24],
    ['Opus of 120 ms in Matroska', mkv({ codec: 'A_OPUS', blocks: Array<Buffer>(200).fill(plainBlock(longOpus)) }), 24],
    ['Opus with Xiph lacing', mkv({ codec: 'A_OPUS', blocks: Array<Buffer>(100).fill(laced(2, u8(61))) }), opusTwice],
    [
      'Opus with fixed-size lacing',
      mkv({ codec: 'A_OPUS', blocks: Array<Buffer>(100).fill(laced(4, zeros(0))) }),
      opusTwice,
    ],
    [
      'Opus with EBML lacing',
      mkv({ codec: 'A_OPUS', blocks: Array<Buffer>(100).fill(laced(6, u8(0x80 | 61))) }),
      opusTwice,
    ],
    ['a video in fragments', fragmented(60), 60 * 31 * 0.064],
    ['MP3 in MP4', mov(mp3Frames, { name: 'mp4a', rate: 22_050, rest: esds(0x6b) }), (400 * 576) / 22_050],
    [
      'MP3 in MP4, several frames in a sample',
      mov([join(...mp3Frames)], { name: 'mp4a', rate: 22_050, rest: esds(0x6b) }),
      (400 * 576) / 22_050,
    ],
  ])('%s', (_name, file, expected) => {
    expect(measure(file)).toBeWithin(Math.floor(expected), Math.ceil(expected * 1.02) + 2)
    expect(measure(file)).toBeGreaterThanOrEqual(expected - 1e-6)
  })

  test('a FLAC with half a million false frame headers after it', () => {
    const file = join(
      flacFile(
        8_000,
        many(3_516, () => flacFrame()),
      ),
      Buffer.alloc(1_000_000, u8(0xff, 0xf8)),
    )
    expect(measure(file)).toBeWithin(1_800, 1_802)
  })

  test('frames that a file hides in other elements are counted', () => {
    const blocks = Array<Buffer>(2_000).fill(plainBlock(longOpus))
    const encoded = mkv({ codec: 'A_OPUS', encodings: stripped, blocks })
    expect(measure(encoded)).toBeGreaterThanOrEqual(Math.floor(encoded.length / 750))
    const tag = join(ascii('APETAGEX'), le32(2_000), le32(1_000_000), zeros(16))
    expect(measure(join(mp3(1), tag, mp3(383)))).toBeGreaterThanOrEqual(10)
    const innerPage = page([longOpus])
    const outer = page([join(u8(0), innerPage, zeros(100))])
    expect(
      measure(
        join(
          opusHeads(),
          many(100, () => outer),
        ),
      ),
    ).toBeGreaterThanOrEqual(12)
    const foreign = element([0x4a, 0xbc], mkv({ codec: 'A_PCM/INT/LIT', blocks: [plainBlock(zeros(750_000))] }))
    expect(measure(join(webm({ clusters: 1 }), foreign))).toBeGreaterThanOrEqual(1_000)
    const data = mov([zeros(8_000), zeros(0)], { name: 'ulaw' })
    expect(measure(join(data, box('mdat', zeros(750_000))))).toBeGreaterThanOrEqual(1_000)
  })
})

test('audio of an unknown codec has the length that its bytes could have at 6 kbit/s', () => {
  const file = mkv({ codec: 'A_DTS', blocks: [plainBlock(zeros(750_000))] })
  expect(measure(file)).toBeWithin(1_000, 1_002)
  expect(measure(mov([zeros(750_000)], { name: 'dtsc' }))).toBeWithin(1_000, 1_002)
})

describe('a file that cannot be read has the length that it could have at 6 kbit/s:', () => {
  const bound = (file: Buffer): number => Math.ceil(file.length / 750)

  test.each<readonly [string, Buffer]>([
    ['noise', noise(75_000)],
    ['nothing but 0xff', Buffer.alloc(75_000, 0xff)],
    ['a WAV of an unsupported codec', wav(zeros(75_000), { code: 0x31 })],
    ['a WAV without a format chunk', join(ascii('RIFF'), le32(4), ascii('WAVE'), ascii('data'), le32(9), zeros(7_500))],
    ['an MP3 with much noise in it', join(mp3(50), noise(20_000), mp3(50))],
    ['an MP3 of one frame followed by noise', join(mp3(1), noise(75_000))],
    ['an Ogg without packets', opusHeads()],
    ['an MP4 without a track', join(box('ftyp', ascii('M4A ')), box('mdat', zeros(75_000)))],
    ['a WebM without a block', webm({ clusters: 0 })],
    ['another codec in MP4', mp4({ codec: 'dtsc', samples: 10, claimed: 6 })],
    ['an empty file', zeros(0)],
  ])('%s', (_name, file) => {
    expect(measure(file)).toBe(Math.max(1, bound(file)))
  })
})

describe('a file that takes more work than any recording has the length that the shortest packets could have:', () => {
  const tracks = (count: number, blocks: Buffer): Buffer => {
    const track = element([0xae], join(element([0xd7], u8(1)), element([0x86], ascii('A_OPUS'))))
    return join(
      element([0x1a, 0x45, 0xdf, 0xa3], zeros(4)),
      unknownSize([0x18, 0x53, 0x80, 0x67], zeros(0)),
      many(count, () => track),
      blocks,
    )
  }
  /** A block of 256 Opus packets of one byte, each with two frames of 60 ms. */
  const laced = element([0xa3], join(u8(0x81, 0, 0, 0x84, 255), Buffer.alloc(256, 0x59)))
  const repeat = (count: number, piece: Buffer): Buffer => Buffer.alloc(count * piece.length, piece)
  /** A file whose chunks all begin at the same offset and reach to the end. */
  const overlapping = (name: string, data: Buffer): Buffer => {
    const file = mov([data], { name, each: data.length })
    const offset = file.indexOf('stsc')
    file.writeUInt32BE(1, offset + 16)
    const stco = file.indexOf('stco')
    const table = box(
      'stco',
      be32(0),
      be32(1_000),
      many(1_000, () => file.subarray(stco + 12, stco + 16)),
    )
    const sizes = file.indexOf('stsz')
    file.writeUInt32BE(1_000, sizes + 12)
    return join(file.subarray(0, stco - 4), table)
  }
  const rows: readonly (readonly [string, Buffer])[] = [
    ['a WAV of many chunks', join(ascii('RIFF'), le32(4), ascii('WAVE'), repeat(20_000, join(ascii('junk'), le32(0))))],
    ['an MP4 of many tracks', join(box('ftyp', ascii('M4A ')), repeat(200, box('trak', box('mdhd', zeros(24)))))],
    ['an MP4 of many boxes', join(box('ftyp', ascii('M4A ')), repeat(50_000, box('free')))],
    ['an MP4 of more samples than bytes', mov([Buffer.alloc(100_000, 0x59)], { name: 'Opus', each: 1 })],
    ['an MP4 whose samples of FLAC overlap', overlapping('fLaC', zeros(300_000))],
    ['an MP4 whose samples of MP3 overlap', overlapping('.mp3', zeros(300_000))],
    [
      'an Ogg of many streams',
      many(200, serial => page([join(ascii('OpusHead'), zeros(11)), zeros(8), opusPacket], { serial })),
    ],
    [
      'a Matroska of many empty elements, with audio after them',
      tracks(1, join(repeat(200_000, u8(0xec, 0x80)), repeat(100, laced))),
    ],
    ['a Matroska of tracks that share their blocks', tracks(60, repeat(100, laced))],
    ['a Matroska of the shortest packets', tracks(1, repeat(1_000, laced))],
  ]

  test.each(rows)('%s', (_name, file) => {
    const work = new AudioWork()
    expect(measureAudioSeconds(file, work)).toBe(Math.ceil(file.length / 4))
    // The limit may be exceeded by one step, which is no longer than the file.
    expect(work.done).toBeLessThan(200_000 + 6 * file.length)
  })
})

describe('packets of unknown length have the longest possible length:', () => {
  /** Packs values with their numbers of bits as Vorbis does. */
  function packed(...fields: readonly (readonly [value: number, bits: number])[]): Buffer {
    const bits = fields.flatMap(([value, count]) => Array.from({ length: count }, (_none, bit) => (value >>> bit) & 1))
    return Buffer.from(
      Array.from({ length: Math.ceil(bits.length / 8) }, (_none, byteIndex) =>
        bits.slice(byteIndex * 8, byteIndex * 8 + 8).reduce((sum, bit, shift) => sum + (bit << shift), 0),
      ),
    )
  }
  /** A Vorbis setup header with one codebook, floor, residue and mapping, and modes with long or short blocks. */
  const setup = (modes: readonly boolean[]): Buffer =>
    join(
      ascii('\x05vorbis'),
      packed(
        ...([
          [0, 8],
          [0x564342, 24],
          [1, 16],
          [2, 24],
          [0, 1],
          [0, 1],
          [0, 5],
          [0, 5],
          [0, 4],
        ] as const),
        ...([
          [0, 6],
          [0, 16],
        ] as const),
        ...([
          [0, 6],
          [1, 16],
          [1, 5],
          [0, 4],
          [0, 3],
          [0, 2],
          [0, 8],
          [0, 2],
          [4, 4],
          [3, 4],
        ] as const),
        ...([
          [0, 6],
          [2, 16],
          [0, 24],
          [8, 24],
          [7, 24],
          [0, 6],
          [0, 8],
          [1, 3],
          [0, 1],
          [0, 8],
        ] as const),
        ...([
          [0, 6],
          [0, 16],
          [0, 1],
          [0, 1],
          [0, 2],
          [0, 8],
          [0, 8],
          [0, 8],
        ] as const),
        [modes.length - 1, 6],
        ...modes.flatMap(
          isLong =>
            [
              [isLong ? 1 : 0, 1],
              [0, 16],
              [0, 16],
              [0, 8],
            ] as const,
        ),
        [1, 1],
      ),
    )
  const id = join(ascii('\x01vorbis'), le32(0), u8(1), le32(8_000), zeros(12), u8(0xb8), u8(1))
  const ogg = (modes: Buffer, mode: number): Buffer =>
    join(
      page([id]),
      page([ascii('\x03vorbis'), modes]),
      many(1_000, () => page([join(u8(mode << 1), noise(40))])),
    )
  const matroska = (modes: Buffer, mode: number): Buffer =>
    mkv({
      codec: 'A_VORBIS',
      codecPrivate: join(u8(2, id.length, 7), id, ascii('\x03vorbis'), modes),
      blocks: Array<Buffer>(1_000).fill(plainBlock(join(u8(mode << 1), noise(40)))),
    })
  const [short, long] = [(1_000 * 128) / 8_000, (1_000 * 1_024) / 8_000]

  test.each<readonly [string, Buffer, number, number]>([
    ['the second mode is long', setup([false, true]), 1, long],
    ['the first mode is short', setup([false, true]), 0, short],
    ['the first mode is long', setup([true, false]), 0, long],
    ['the third mode of four is long', setup([false, false, true, false]), 2, long],
    ['the only mode is long', setup([true]), 0, long],
    ['the modes cannot be read', ascii('\x05vorbis'), 0, long],
  ])('Vorbis where %s', (_name, modes, mode, expected) => {
    for (const file of [ogg(modes, mode), matroska(modes, mode)]) {
      expect(measure(file)).toBeWithin(expected, expected + 2)
    }
  })

  test('several frames of AAC in one packet', () => {
    const packet = noise(75_000)
    for (const file of [
      mov([packet], { name: 'mp4a', rest: esds(0x40) }),
      mov([packet], { name: 'mp4a', rest: esds(0x40), each: packet.length }),
      mkv({ codec: 'A_AAC', blocks: [plainBlock(packet)] }),
    ])
      expect(measure(file)).toBeWithin(100, 102)
  })

  test('USAC, which may have longer frames than AAC', () => {
    const usac = mkv({ codec: 'A_AAC', codecPrivate: u8(0xf9, 0x48), blocks: [plainBlock(noise(75_000))] })
    expect(measure(usac)).toBeWithin(100, 102)
  })

  test('packets without their first bytes', () => {
    const blocks = Array<Buffer>(2_000).fill(plainBlock(u8(1)))
    const encodings = (content: Buffer): Buffer => element([0x6d, 0x80], element([0x62, 0x40], content))
    const algorithm = element([0x42, 0x54], u8(3))
    const name = (codec: string): Buffer => element([0x86], ascii(codec))
    for (const headers of [
      encodings(element([0x50, 0x34], join(algorithm, element([0x42, 0x55], u8(0x59, 0))))),
      // Without the algorithm element the default algorithm is another one.
      encodings(element([0x50, 0x34], element([0x42, 0x55], u8(0x59)))),
      join(encodings(element([0x50, 0x34], algorithm)), name('S_TEXT')),
    ])
      expect(measure(mkv({ codec: 'A_OPUS', encodings: headers, blocks }))).toBeGreaterThanOrEqual(240)
  })
})

test('changed and cut-off files have a length of at least a second', () => {
  const more = [
    oggOpus(2),
    oggVorbis(9),
    webm({ clusters: 2 }),
    mp4({ samples: 9 }),
    oggFlac(3),
    mov([longOpus, longOpus], { name: 'Opus', edits: 2 }),
    fragmented(2),
    adpcm(17, 2),
    mkv({ codec: 'A_OPUS', encodings: stripped, blocks: [join(u8(6, 1, 0xbd), longOpus, longOpus)] }),
  ]
  const files = [wav(zeros(900)), mp3(9), adts(9, 8), flac(3), ...more]
  for (const file of files) {
    for (let position = 0; position < Math.min(file.length, 700); position++) {
      const changed = Buffer.from(file)
      changed[position] = (changed[position]! * 7 + 129) & 255
      for (const bytes of [file.subarray(0, position), changed]) {
        const found = measure(bytes)
        expect(Number.isSafeInteger(found) && found >= 1).toBe(true)
      }
    }
  }
})
