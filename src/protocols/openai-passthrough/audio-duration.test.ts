// How long sounds last, whatever their heads claim. Each is made here, byte by byte, as an encoder would write it.

import { describe, expect, test } from 'bun:test'
import { AudioWork, measureAudioSeconds } from './audio-duration.ts'

const u8 = (...values: readonly number[]): Buffer => Buffer.from(values)
const ascii = (text: string): Buffer => Buffer.from(text, 'latin1')
const be16 = (value: number): Buffer => u8(value >> 8, value & 255)
const be32 = (value: number): Buffer => Buffer.concat([be16(Math.floor(value / 65_536)), be16(value & 65_535)])
const le16 = (value: number): Buffer => be16(value).reverse()
const le32 = (value: number): Buffer => be32(value).reverse()
const join = (...parts: readonly Uint8Array[]): Buffer => Buffer.concat(parts)
const many = (count: number, make: (at: number) => Uint8Array): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_none, at) => make(at)))
const zeros = (count: number): Buffer => Buffer.alloc(count)
/** Bytes that hold no 0xff and so no frame. */
const noise = (count: number): Buffer => Buffer.from(Array.from({ length: count }, (_none, at) => (at * 37) % 251))

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
  return many(frames, at => {
    const index = kbitAt(at)
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

/** Frames of 4,096 samples, numbered as they come or as they are told to be. */
function flac(frames: number, { rate = 16_000, claimed = 0, number = (at: number): number => at } = {}): Buffer {
  const last = (rate & 15) << 4
  const rates = u8(rate >> 12, (rate >> 4) & 255, last, 0)
  const info = join(be16(4_096), be16(4_096), zeros(6), rates, be32(claimed), zeros(16))
  return join(
    ascii('fLaC'),
    u8(0x80, 0, 0, 34),
    info,
    many(frames, at => {
      const head = join(u8(0xff, 0xf8, 0xc0 | 5, 0x08), u8(number(at) & 127))
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

/** SILK, 20 ms, one frame, about 6 kbit/s. */
const opusPacket = join(u8(0x48), noise(14))

const oggOpus = (pages: number, granule = (at: number): number => (at + 1) * 48_000): Buffer =>
  join(
    opusHeads(),
    many(pages, at => page(Array<Buffer>(50).fill(opusPacket), { granule: granule(at) })),
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
  readonly timeOf?: (at: number) => number
}

/** As browsers record it: clusters of a second each, of no size that is known. */
function webm({ codec = 'A_OPUS', duration, clusters = 60, timeOf = at => at * 1_000 }: Webm = {}): Buffer {
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
  const sound = element([0xe1], element([0xb5], rate))
  const track = element([0xae], join(element([0xd7], u8(1)), element([0x86], ascii(codec)), sound))
  const tracks = element([0x16, 0x54, 0xae, 0x6b], track)
  const body = many(clusters, at => {
    const blocks = many(50, block => element([0xa3], join(u8(0x81), be16(block * 20), u8(0x80), opusPacket)))
    return unknownSize([0x1f, 0x43, 0xb6, 0x75], join(element([0xe7], be32(timeOf(at))), blocks))
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
  const about = join(u8(0x40, 0x15, 5, 5, 5), be32(0x05050505), be32(0))
  const decoder = join(u8(0x04, 0x80, 0x80, 13 + config.length), about, config)
  const esds = box('esds', be32(0), u8(0x03, 3 + decoder.length), be16(1), u8(0), decoder)
  const entry = join(zeros(6), be16(1), zeros(8), be16(1), be16(16), zeros(4), be16(entryRate), be16(0), esds)
  const table = box(
    'stbl',
    box('stsd', be32(0), be32(1), box(codec, entry)),
    box('stts', be32(0), be32(1), be32(samples), be32(claimed === 0 ? 0 : 1)),
    box('stsz', be32(0), be32(0), be32(samples)),
  )
  const sound = box('hdlr', be32(0), be32(0), ascii('soun'), zeros(12))
  const track = box('trak', box('mdia', box('mdhd', head), sound, box('minf', table)))
  const film = box('trak', box('mdia', box('mdhd', head), box('hdlr', be32(0), be32(0), ascii('vide'), zeros(12))))
  const runs = many(fragments, () => box('moof', box('traf', box('trun', be32(0), be32(50)))))
  return join(box('ftyp', ascii('M4A ')), box('mdat', zeros(5_000)), box('moov', box('mvhd', head), film, track), runs)
}

// Files whose packets are given one by one

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
  readonly own?: Buffer
  readonly encodings?: Buffer
  /** Of each block, from its flags on. */
  readonly blocks: readonly Buffer[]
}

function mkv({ codec, rate = 8_000, channels = 1, bits = 8, own, encodings = zeros(0), blocks }: Mkv): Buffer {
  const form = join(element([0xb5], float64(rate)), element([0x9f], u8(channels)), element([0x62, 0x64], u8(bits)))
  const about = [element([0xd7], u8(1)), element([0x86], ascii(codec)), element([0xe1], form)]
  const track = element([0xae], join(...about, element([0x63, 0xa2], own ?? zeros(0)), encodings))
  const film = join(
    element([0x16, 0x54, 0xae, 0x6b], track),
    element(
      [0x1f, 0x43, 0xb6, 0x75],
      join(element([0xe7], u8(0)), ...blocks.map(block => element([0xa3], join(u8(0x81), be16(0), block)))),
    ),
  )
  return join(element([0x1a, 0x45, 0xdf, 0xa3], ascii('\x42\x82\x84webm')), unknownSize([0x18, 0x53, 0x80, 0x67], film))
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
  /** Behind the common part of the description of its samples. */
  readonly rest?: Buffer
  /** Samples of one size, which the table names once. */
  readonly each?: number
  readonly edits?: number
}

/** One chunk of samples. The heads claim one second. */
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
  const sound = box('hdlr', be32(0), be32(0), ascii('soun'), zeros(12))
  const list = many(edits ?? 0, () => join(be32(10_000), be32(0), be32(0x10000)))
  const cuts = edits === undefined ? zeros(0) : box('edts', box('elst', be32(0), be32(edits), list))
  const track = box(
    'trak',
    box('tkhd', zeros(12), be32(1), zeros(68)),
    cuts,
    box('mdia', box('mdhd', head), sound, box('minf', table)),
  )
  return join(start, data, box('moov', box('mvhd', head), track))
}

/** A frame of 4,096 samples of silence, whose head says that it has 8 kHz, or the rate of the file. */
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

/** Two frames of 60 ms. */
const longOpus = join(u8(0x59), noise(60))

/** With a block of 256 bytes for each channel, as encoders write it. */
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

/** A film in fragments, each with a second of sound in AAC and 25 pictures. */
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
  const about = join(zeros(6), be16(1), zeros(8), be16(1), be16(16), zeros(4), be16(16_000), be16(0))
  const tracks = [track(1, 'vide', zeros(0)), track(2, 'soun', box('stsd', be32(0), be32(1), box('mp4a', about)))]
  const run = (id: number, samples: number): Buffer =>
    box('traf', box('tfhd', be32(0), be32(id)), box('trun', be32(0), be32(samples)))
  return join(
    box('ftyp', ascii('iso5')),
    box('moov', box('mvhd', head), ...tracks),
    many(count, () => join(box('moof', run(1, 25)), box('moof', run(2, 15.625 * 2)), box('moof', run(1, 25)))),
  )
}

const seconds = (sound: Buffer): number => measureAudioSeconds(sound)

describe('the length of a sound is that of', () => {
  test.each<readonly [string, Buffer, number]>([
    ['WAV', wav(zeros(160_000)), 10],
    ['WAV in stereo and 24 bits', wav(zeros(480_000), { channels: 2, bits: 24 }), 10],
    ['WAV of µ-law', wav(zeros(80_000), { code: 7, bits: 8 }), 10],
    ['WAV that is extensible', wav(zeros(160_000), { code: 0xfffe }), 10],
    ['WAV with a chunk before its data', wav(zeros(160_000), { before: join(ascii('LIST'), le32(5), zeros(6)) }), 10],
    ['MP3 at 128 kbit/s', mp3(383), 11],
    ['MP3 with tags', join(ascii('ID3'), u8(4, 0, 0, 0, 0, 1, 0), zeros(128), mp3(383), ascii('TAG'), zeros(125)), 11],
    ['MP3 of a variable rate', mp3(383, { kbitAt: at => 1 + (at % 10) }), 11],
    ['MP3 at 8 kbit/s', mp3(383, { kbitAt: () => 1, version: 2 }), 11],
    ['AAC', adts(157, 8), 11],
    ['FLAC', flac(40), 11],
    ['Opus in Ogg', oggOpus(60), 60],
    ['two of them in a chain', join(oggOpus(60), join(opusHeads(2), page([opusPacket], { serial: 2 }))), 61],
    ['Vorbis in Ogg', oggVorbis(431, { granule: 440_000 }), 11],
    ['WebM as a browser records it', webm(), 60],
    ['Matroska with its duration', webm({ codec: 'A_VORBIS', duration: 65_000 }), 65],
    ['Matroska without', webm({ codec: 'A_VORBIS' }), 60],
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
  ])('%s', (_name, sound, expected) => {
    expect(seconds(sound)).toBeWithin(expected - 1, expected + 1)
  })
})

describe('what a head claims does not make a sound shorter:', () => {
  test.each<readonly [string, Buffer, number]>([
    ['a WAV whose data are longer than they claim', wav(zeros(160_000), { claimed: 100 }), 10],
    ['a WAV whose data claim nothing', wav(zeros(160_000), { claimed: 0 }), 10],
    ['a WAV with another rate of bytes', wav(zeros(160_000), { secondBytes: 10_000_000 }), 10],
    ['a FLAC of fewer samples than it has', flac(40, { claimed: 1 }), 10],
    ['a FLAC whose frames are all the first', flac(40, { number: () => 0 }), 10],
    ['an Opus in Ogg whose granules stand still', oggOpus(60, () => 1), 60],
    ['a Vorbis without granules', oggVorbis(431), 10],
    ['a WebM of a second', webm({ duration: 1_000 }), 60],
    ['a WebM whose time stands still', webm({ timeOf: () => 0 }), 60],
    ['an M4A of a second', mp4({ samples: 1_570, claimed: 1 }), 100],
    ['an M4A of another rate than its decoder is told', mp4({ samples: 1_570, claimed: 1, entryRate: 65_000 }), 100],
    ['an MP4 in fragments that claims a second', mp4({ fragments: 40, claimed: 1 }), 128],
  ])('%s', (_name, sound, expected) => expect(seconds(sound)).toBeWithin(expected, expected + 2))
})

describe('each codec is counted by its own bytes, in every file that may hold it:', () => {
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
    ['a WAV with a second format', wav(zeros(4_800_000), { bits: 8, before: fmtChunk(192_000, 8) }), 600],
    [
      'a WAV whose second format is the lower one',
      wav(zeros(4_800_000), { bits: 32, rate: 192_000, before: fmtChunk(2_000, 1) }),
      600,
    ],
    ['a WAV of µ-law with samples of 8,191 bytes', wav(zeros(4_800_000), { code: 7, bits: 65_528 }), 600],
    ['a WAV of IMA ADPCM', adpcm(17, 1_584), (1_584 * 505) / 8_000],
    ['a WAV of IMA ADPCM in stereo', adpcm(17, 1_584, 2), (1_584 * 505) / 8_000],
    ['a WAV of MS ADPCM', adpcm(2, 1_600), (1_600 * 500) / 8_000],
    ['a WAV of plain samples that are frames of MP3', wav(join(...mp3Frames), { rate: 192_000 }), (400 * 576) / 22_050],
    ['a MOV of µ-law', mov([zeros(4_800_000)], { name: 'ulaw', each: 1 }), 600],
    ['a MOV of 16 bits', mov([zeros(3_200_000)], { name: 'sowt', each: 2 }), 200],
    ['a MOV that plays its sound three times', mov([zeros(80_000)], { name: 'ulaw', each: 1, edits: 3 }), 30],
    ['FLAC in Ogg', oggFlac(500), 1_000 * frame],
    ['FLAC in Matroska', mkv({ codec: 'A_FLAC', own: flacOwn, blocks: flacBlocks }), 1_000 * frame],
    [
      'FLAC in MP4',
      mov(Array<Buffer>(1_000).fill(flacFrame(0)), {
        name: 'fLaC',
        rest: box('dfLa', be32(0), u8(0x80, 0, 0, 34), flacInfo(8_000)),
      }),
      1_000 * frame,
    ],
    [
      'FLAC with a greater rate in its head',
      flacFile(
        655_350,
        many(1_000, () => flacFrame()),
      ),
      1_000 * frame,
    ],
    [
      'FLAC with a greater rate in its frames',
      flacFile(
        8_000,
        many(1_000, () => flacFrame(3)),
      ),
      1_000 * frame,
    ],
    ['Opus of 120 ms in MP4', mov(Array<Buffer>(200).fill(longOpus), { name: 'Opus' }), 24],
    ['Opus of 120 ms in Matroska', mkv({ codec: 'A_OPUS', blocks: Array<Buffer>(200).fill(plainBlock(longOpus)) }), 24],
    [
      'Opus, laced as Xiph does',
      mkv({ codec: 'A_OPUS', blocks: Array<Buffer>(100).fill(laced(2, u8(61))) }),
      opusTwice,
    ],
    ['Opus, laced evenly', mkv({ codec: 'A_OPUS', blocks: Array<Buffer>(100).fill(laced(4, zeros(0))) }), opusTwice],
    [
      'Opus, laced as EBML does',
      mkv({ codec: 'A_OPUS', blocks: Array<Buffer>(100).fill(laced(6, u8(0x80 | 61))) }),
      opusTwice,
    ],
    ['a film in fragments', fragmented(60), 60 * 31 * 0.064],
    ['MP3 in MP4', mov(mp3Frames, { name: 'mp4a', rate: 22_050, rest: esds(0x6b) }), (400 * 576) / 22_050],
    [
      'MP3 in MP4, several frames in a sample',
      mov([join(...mp3Frames)], { name: 'mp4a', rate: 22_050, rest: esds(0x6b) }),
      (400 * 576) / 22_050,
    ],
  ])('%s', (_name, sound, truth) => {
    expect(seconds(sound)).toBeWithin(Math.floor(truth), Math.ceil(truth * 1.02) + 2)
    expect(seconds(sound)).toBeGreaterThanOrEqual(truth - 1e-6)
  })

  test('a FLAC with half a million false heads behind it', () => {
    const sound = join(
      flacFile(
        8_000,
        many(3_516, () => flacFrame()),
      ),
      Buffer.alloc(1_000_000, u8(0xff, 0xf8)),
    )
    expect(seconds(sound)).toBeWithin(1_800, 1_802)
  })

  test('a file that hides frames behind what seems to be something else is charged for them', () => {
    const lots = Array<Buffer>(2_000).fill(plainBlock(longOpus))
    const encoded = mkv({ codec: 'A_OPUS', encodings: stripped, blocks: lots })
    expect(seconds(encoded)).toBeGreaterThanOrEqual(Math.floor(encoded.length / 750))
    const tag = join(ascii('APETAGEX'), le32(2_000), le32(1_000_000), zeros(16))
    expect(seconds(join(mp3(1), tag, mp3(383)))).toBeGreaterThanOrEqual(10)
    const inside = page([longOpus])
    const outer = page([join(u8(0), inside, zeros(100))])
    expect(
      seconds(
        join(
          opusHeads(),
          many(100, () => outer),
        ),
      ),
    ).toBeGreaterThanOrEqual(12)
    const foreign = element([0x4a, 0xbc], mkv({ codec: 'A_PCM/INT/LIT', blocks: [plainBlock(zeros(750_000))] }))
    expect(seconds(join(webm({ clusters: 1 }), foreign))).toBeGreaterThanOrEqual(1_000)
    const data = mov([zeros(8_000), zeros(0)], { name: 'ulaw' })
    expect(seconds(join(data, box('mdat', zeros(750_000))))).toBeGreaterThanOrEqual(1_000)
  })
})

test('a codec that is not known is as long as its own bytes could be', () => {
  const film = mkv({ codec: 'A_DTS', blocks: [plainBlock(zeros(750_000))] })
  expect(seconds(film)).toBeWithin(1_000, 1_002)
  expect(seconds(mov([zeros(750_000)], { name: 'dtsc' }))).toBeWithin(1_000, 1_002)
})

describe('what cannot be read is as long as it could be at 6 kbit/s:', () => {
  const bound = (sound: Buffer): number => Math.ceil(sound.length / 750)

  test.each<readonly [string, Buffer]>([
    ['noise', noise(75_000)],
    ['nothing but 0xff', Buffer.alloc(75_000, 0xff)],
    ['a WAV of a codec', wav(zeros(75_000), { code: 0x31 })],
    ['a WAV without its format', join(ascii('RIFF'), le32(4), ascii('WAVE'), ascii('data'), le32(9), zeros(7_500))],
    ['an MP3 with as much noise in it', join(mp3(50), noise(20_000), mp3(50))],
    ['an MP3 of one frame, and noise', join(mp3(1), noise(75_000))],
    ['an Ogg of no packets', opusHeads()],
    ['an MP4 without a track', join(box('ftyp', ascii('M4A ')), box('mdat', zeros(75_000)))],
    ['a WebM without a block', webm({ clusters: 0 })],
    ['another codec in MP4', mp4({ codec: 'dtsc', samples: 10, claimed: 6 })],
    ['nothing', zeros(0)],
  ])('%s', (_name, sound) => {
    expect(seconds(sound)).toBe(Math.max(1, bound(sound)))
  })
})

describe('a sound that takes more work than any recording lasts as long as the shortest packets could:', () => {
  const tracks = (count: number, blocks: Buffer): Buffer => {
    const track = element([0xae], join(element([0xd7], u8(1)), element([0x86], ascii('A_OPUS'))))
    return join(
      element([0x1a, 0x45, 0xdf, 0xa3], zeros(4)),
      unknownSize([0x18, 0x53, 0x80, 0x67], zeros(0)),
      many(count, () => track),
      blocks,
    )
  }
  /** 256 packets of one byte, each of two frames of 60 ms. */
  const laced = element([0xa3], join(u8(0x81, 0, 0, 0x84, 255), Buffer.alloc(256, 0x59)))
  const all = (count: number, one: Buffer): Buffer => Buffer.alloc(count * one.length, one)
  /** Chunks that all begin at the same place and reach to the end. */
  const overlapping = (name: string, data: Buffer): Buffer => {
    const film = mov([data], { name, each: data.length })
    const at = film.indexOf('stsc')
    film.writeUInt32BE(1, at + 16)
    const stco = film.indexOf('stco')
    const table = box(
      'stco',
      be32(0),
      be32(1_000),
      many(1_000, () => film.subarray(stco + 12, stco + 16)),
    )
    const sizes = film.indexOf('stsz')
    film.writeUInt32BE(1_000, sizes + 12)
    return join(film.subarray(0, stco - 4), table)
  }
  const rows: readonly (readonly [string, Buffer])[] = [
    ['a WAV of chunks', join(ascii('RIFF'), le32(4), ascii('WAVE'), all(20_000, join(ascii('junk'), le32(0))))],
    ['an MP4 of tracks', join(box('ftyp', ascii('M4A ')), all(200, box('trak', box('mdhd', zeros(24)))))],
    ['an MP4 of boxes', join(box('ftyp', ascii('M4A ')), all(50_000, box('free')))],
    ['an MP4 of more samples than bytes', mov([Buffer.alloc(100_000, 0x59)], { name: 'Opus', each: 1 })],
    ['an MP4 whose samples of FLAC overlap', overlapping('fLaC', zeros(300_000))],
    ['an MP4 whose samples of MP3 overlap', overlapping('.mp3', zeros(300_000))],
    [
      'an Ogg of streams',
      many(200, serial => page([join(ascii('OpusHead'), zeros(11)), zeros(8), opusPacket], { serial })),
    ],
    ['a Matroska of nothing, with sound behind it', tracks(1, join(all(200_000, u8(0xec, 0x80)), all(100, laced)))],
    ['a Matroska of tracks that share their blocks', tracks(60, all(100, laced))],
    ['a Matroska of the shortest packets', tracks(1, all(1_000, laced))],
  ]

  test.each(rows)('%s', (_name, sound) => {
    const work = new AudioWork()
    expect(measureAudioSeconds(sound, work)).toBe(Math.ceil(sound.length / 4))
    // It may be exceeded by one step, which is no longer than the sound.
    expect(work.done).toBeLessThan(200_000 + 6 * sound.length)
  })
})

describe('where packets do not tell how long they are, the longest counts:', () => {
  /** Bits as Vorbis packs them, of values and how many bits each has. */
  function packed(...fields: readonly (readonly [value: number, bits: number])[]): Buffer {
    const bits = fields.flatMap(([value, count]) => Array.from({ length: count }, (_none, at) => (value >>> at) & 1))
    return Buffer.from(
      Array.from({ length: Math.ceil(bits.length / 8) }, (_none, at) =>
        bits.slice(at * 8, at * 8 + 8).reduce((sum, bit, place) => sum + (bit << place), 0),
      ),
    )
  }
  /** One codebook, floor, residue and mapping, and modes with long blocks or short ones. */
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
      own: join(u8(2, id.length, 7), id, ascii('\x03vorbis'), modes),
      blocks: Array<Buffer>(1_000).fill(plainBlock(join(u8(mode << 1), noise(40)))),
    })
  const [short, long] = [(1_000 * 128) / 8_000, (1_000 * 1_024) / 8_000]

  test.each<readonly [string, Buffer, number, number]>([
    ['the second mode is long', setup([false, true]), 1, long],
    ['the first mode is short', setup([false, true]), 0, short],
    ['the first mode is long', setup([true, false]), 0, long],
    ['the third mode of four is long', setup([false, false, true, false]), 2, long],
    ['there is but one mode, which is long', setup([true]), 0, long],
    ['the modes cannot be read', ascii('\x05vorbis'), 0, long],
  ])('Vorbis where %s', (_name, modes, mode, truth) => {
    for (const sound of [ogg(modes, mode), matroska(modes, mode)]) {
      expect(seconds(sound)).toBeWithin(truth, truth + 2)
    }
  })

  test('several frames of AAC in one packet', () => {
    const packet = noise(75_000)
    for (const sound of [
      mov([packet], { name: 'mp4a', rest: esds(0x40) }),
      mov([packet], { name: 'mp4a', rest: esds(0x40), each: packet.length }),
      mkv({ codec: 'A_AAC', blocks: [plainBlock(packet)] }),
    ])
      expect(seconds(sound)).toBeWithin(100, 102)
  })

  test('a codec that may have longer frames than AAC and does not say so', () => {
    const usac = mkv({ codec: 'A_AAC', own: u8(0xf9, 0x48), blocks: [plainBlock(noise(75_000))] })
    expect(seconds(usac)).toBeWithin(100, 102)
  })

  test('packets without their first bytes', () => {
    const blocks = Array<Buffer>(2_000).fill(plainBlock(u8(1)))
    const encodings = (content: Buffer): Buffer => element([0x6d, 0x80], element([0x62, 0x40], content))
    const algorithm = element([0x42, 0x54], u8(3))
    const name = (codec: string): Buffer => element([0x86], ascii(codec))
    for (const sound of [
      encodings(element([0x50, 0x34], join(algorithm, element([0x42, 0x55], u8(0x59, 0))))),
      // Without a name the algorithm is another.
      encodings(element([0x50, 0x34], element([0x42, 0x55], u8(0x59)))),
      join(encodings(element([0x50, 0x34], algorithm)), name('S_TEXT')),
    ])
      expect(seconds(mkv({ codec: 'A_OPUS', encodings: sound, blocks }))).toBeGreaterThanOrEqual(240)
  })
})

test('any bytes at all, and any that are cut off, have a length', () => {
  const others = [
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
  const sounds = [wav(zeros(900)), mp3(9), adts(9, 8), flac(3), ...others]
  for (const sound of sounds) {
    for (let at = 0; at < Math.min(sound.length, 700); at++) {
      const changed = Buffer.from(sound)
      changed[at] = (changed[at]! * 7 + 129) & 255
      for (const some of [sound.subarray(0, at), changed]) {
        const found = seconds(some)
        expect(Number.isSafeInteger(found) && found >= 1).toBe(true)
      }
    }
  }
})
