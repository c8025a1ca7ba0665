// Frames that are metered without being parsed: the meter and the bytes are the same as if every frame were parsed,
// however the stream is cut into pieces and whatever an upstream writes into its frames.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { Stop } from '../../base/stop.ts'
import type { IncomingResponse } from '../../http/client/request.ts'
import type { SseFrame } from '../../http/sse.ts'
import { frameData, hasBlankData, SseSplitter } from '../../http/sse.ts'
import type { FrameReading } from '../../protocols/neutral/call.ts'
import type { Protocol } from '../../protocols/protocol.ts'
import { protocols } from '../../protocols/protocols.ts'
import type { Watchdog } from '../attempt/watchdog.ts'
import type { Candidate, Exchange, StopReason } from '../exchange.ts'
import { newAttempt, newCallParts } from '../exchange.ts'
import { newMeter, noteFrame } from '../settle/usage-meter.ts'
import { Timings } from '../timings.ts'
import { RepeatedFrames } from './repeated-frames.ts'
import { AnswerReader } from './stream-reader.ts'

const chat = protocols['openai-chat']!
const messages = protocols['anthropic-messages']!
const responses = protocols['openai-responses']!

/** Reads the pieces as a call does, and counts how many frames were parsed. */
function readPieces(protocol: Protocol, pieces: readonly Buffer[]) {
  let parsed = 0
  let bytesMax = 0
  const memory = { read: (bytes: number) => (bytesMax = Math.max(bytesMax, bytes)) }
  const counting: Protocol = {
    ...protocol,
    readFrame(data, earlier) {
      parsed++
      return protocol.readFrame(data, earlier)
    },
  }
  const exchange = {
    attempt: newAttempt({ provider: { can: { streamUsage: true }, quirks: [] } } as unknown as Candidate),
    ...newCallParts(),
    lifetime: { stop: new Stop<StopReason>(), memory },
    timings: new Timings(() => 0),
    protocol: counting,
    call: { choices: 1 },
  } as unknown as Exchange
  const unused = {} as unknown
  const parts = { upstreamProtocol: counting, watch: unused as Watchdog }
  const reader = new AnswerReader(unused as IncomingResponse, exchange, parts)
  const written: Buffer[] = []
  for (const piece of pieces) for (const { bytes } of reader.take({ value: Buffer.from(piece) })) written.push(bytes)
  for (const { bytes } of reader.take({})) written.push(bytes)
  return { meter: exchange.attempt.meter, bytes: Buffer.concat(written).toString('latin1'), parsed, bytesMax }
}

/** The same, with every frame parsed. */
function parseAll(protocol: Protocol, whole: Buffer) {
  const meter = newMeter()
  const splitter = new SseSplitter(1 << 20)
  const frames: SseFrame[] = splitter.push(Buffer.from(whole))
  const written: Buffer[] = []
  let isWhole = false
  for (const frame of frames) {
    if (hasBlankData(frame) && frameData(frame) === undefined) continue
    const reading = protocol.readFrame(frameData(frame), meter.plausible)
    if (reading.kind === 'garbage' && isWhole) continue
    noteFrame(meter, reading, 1)
    if (reading.kind === 'content') isWhole = reading.finishes > 0
    written.push(frame)
    if (reading.kind === 'terminal') break
  }
  return { meter: { ...meter, notReadingSinceMs: 0 }, bytes: Buffer.concat(written).toString('latin1') }
}

function expectSame(protocol: Protocol, pieces: readonly Buffer[]): void {
  const { meter, bytes } = readPieces(protocol, pieces)
  expect({ meter: { ...meter, notReadingSinceMs: 0 }, bytes }).toEqual(parseAll(protocol, Buffer.concat(pieces)))
}

const event = (json: unknown): string => `data: ${JSON.stringify(json)}\n\n`
const named = (json: { type: string }): string => `event: ${json.type}\n${event(json)}`

const chunk = (delta: object, more: object = {}): string =>
  event({ id: 'c1', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: null }], ...more })

const block = (delta: object): string => named({ type: 'content_block_delta', index: 0, delta } as { type: string })

const words = ['The', ' river', ' bends', ' at']

const usage = { prompt_tokens: 7, completion_tokens: 5 }

/** Frames of the same shape as those around them, that mean something else. */
const hostile: Readonly<Record<string, string>> = {
  'a quote in the text': chunk({ content: 'say "usage" now' }),
  'a message instead of a delta': chunk({ content: 'x' }).replace('"delta"', '"message"'),
  'a line end in the text': chunk({ content: 'one\ntwo' }),
  'a backslash at the end of the text': chunk({ content: 'c:\\' }),
  'a usage report in the text': chunk({ content: ' {"usage":{"prompt_tokens":1,"completion_tokens":999}}' }),
  'a usage report behind a quote': chunk({ content: 'x' }).replace(
    '"x"',
    `"x"},"usage":${JSON.stringify(usage)},"y":{"z":"x"`,
  ),
  'the field twice': chunk({ content: 'x' }).replace(
    '"content":"x"',
    '"content":"much longer than that","content":"x"',
  ),
  'the field twice, the other order': chunk({ content: 'x' }).replace(
    '"content":"x"',
    '"content":"x","content":"much longer"',
  ),
  'a reason to finish': chunk({ content: 'x' }).replace('null', '"stop"'),
  'an error': event({ error: { message: 'x', code: 429 } }),
  'another id': chunk({ content: 'x' }).replace('c1', 'c2'),
  'no text': chunk({ content: '' }),
  'a list of parts': chunk({ content: [{ type: 'text', text: 'x' }] }),
  'reasoning': chunk({ reasoning_content: 'x' }),
  'a tool call': chunk({ tool_calls: [{ index: 0, function: { arguments: 'x' } }] }),
  'another service class': chunk({ content: 'x' }, { service_tier: 'flex' }),
  'a report with the text': chunk({ content: 'x' }, { usage }),
  'a bare line end in the text': chunk({ content: 'x' }).replace('"x"', '"x\n"'),
  'a blank line in the text': chunk({ content: 'x' }).replace('"x"', '"x\n\ny"'),
  'a control character in the text': chunk({ content: 'x' }).replace('"x"', '"x\u0001"'),
  'other line ends': chunk({ content: 'x' }).replace('\n\n', '\r\n\r\n'),
  'a comment': ': waiting\n\n',
  'a comment before its data': `: waiting\n${chunk({ content: 'x' })}`,
  'an empty field': 'data:\n\n',
  'two lines of data': chunk({ content: 'x' }).replace(',"choices"', ',\ndata: "choices"'),
  'no end of its text': chunk({ content: 'x' }).replace('"x"', '"x'),
  'text after its end': chunk({ content: 'x' }).replace('"x"', '"x"y"'),
}

const plain = words.map(content => chunk({ content }))

describe('frames that repeat', () => {
  const streams: readonly (readonly [string, Protocol, readonly string[]])[] = [
    ['Chat Completions', chat, words.map(content => chunk({ content }))],
    ['Chat Completions with a service class', chat, words.map(content => chunk({ content }, { service_tier: 'flex' }))],
    ['reasoning of Chat Completions', chat, words.map(reasoning => chunk({ reasoning_content: reasoning }))],
    ['Messages', messages, words.map(text => block({ type: 'text_delta', text }))],
    ['reasoning of Messages', messages, words.map(thinking => block({ type: 'thinking_delta', thinking }))],
    [
      'Responses',
      responses,
      words.map(delta => named({ type: 'response.output_text.delta', delta } as { type: string })),
    ],
  ]

  test.each(streams)('are not parsed: %s', (_name, protocol, frames) => {
    const pieces = [...frames, ...frames, ...frames].map(frame => Buffer.from(frame))
    expectSame(protocol, pieces)
    expectSame(protocol, [Buffer.concat(pieces)])
    // Two frames show what they have in common, and two probes show that nothing else is metered.
    expect(readPieces(protocol, pieces).parsed).toBe(4)
  })

  test('are not parsed in a piece with several of them, and are passed on in one', () => {
    const [first, second, ...others] = plain.map(frame => Buffer.from(frame)) as [Buffer, Buffer, ...Buffer[]]
    expect(readPieces(chat, [first, second, Buffer.concat(others)]).parsed).toBe(4)
  })

  test('count as memory until they are written', () => {
    const [first, second, ...others] = plain.map(frame => Buffer.from(frame)) as [Buffer, Buffer, ...Buffer[]]
    const large = Buffer.concat(Array.from({ length: 100 }, () => others).flat())
    expect(readPieces(chat, [first, second, large]).bytesMax).toBe(large.length)
  })

  test('are parsed where two texts of each differ', () => {
    const frames = words.map((content, index) => chunk({ content }, { obfuscation: 'x'.repeat(index) }))
    expectSame(
      chat,
      frames.map(frame => Buffer.from(frame)),
    )
    expect(
      readPieces(
        chat,
        frames.map(frame => Buffer.from(frame)),
      ).parsed,
    ).toBe(frames.length)
  })

  test('a stream without a pattern is not searched for one without end', () => {
    let reads = 0
    const repeated = new RepeatedFrames(frame => {
      reads++
      return { ...chat.readFrame(frameData(frame)), outputBytes: 1 }
    })
    const reading: FrameReading = { kind: 'content', outputBytes: 1, finishes: 0 }
    for (let index = 0; index < 1_000; index++) repeated.learn(Buffer.from(plain[index % plain.length]!), reading)
    expect(reads).toBeLessThanOrEqual(32)
  })
})

describe('the meter and the bytes are those of a parsed stream', () => {
  test.each(Object.entries(hostile))('with %s, cut at every byte', (_what, frame) => {
    const frames = [...plain, frame, ...plain.slice(0, 3)].map(one => Buffer.from(one))
    expectSame(chat, frames)
    expectSame(chat, [Buffer.concat(frames)])
    // The pattern is known from the frames before. The cut is in the frame, in the one before or in the one after.
    const [known, rest] = [frames.slice(0, plain.length - 1), Buffer.concat(frames.slice(plain.length - 1, -2))]
    for (let at = 1; at < rest.length; at++) expectSame(chat, [...known, rest.subarray(0, at), rest.subarray(at)])
    expectSame(chat, [...known, ...Array.from(rest, byte => Buffer.from([byte]))])
  })

  test('with bytes that are not UTF-8', () => {
    const broken = Buffer.from(chunk({ content: 'xyz' }))
    broken[broken.indexOf('xyz') + 2] = 0xe6
    expectSame(chat, [...plain.map(one => Buffer.from(one)), broken, broken])
  })

  test('for any order of such frames, any texts and any pieces', () => {
    const text = fc.oneof(
      fc.constantFrom(...words, '', '"', '\\', '江河', '\n', 'x'.repeat(5_000), '"}}]}', 'é', '\u2028', '[DONE]'),
      fc.string({ maxLength: 12 }),
    )
    const frames = fc.oneof(
      { weight: 8, arbitrary: text.map(content => chunk({ content })) },
      { weight: 2, arbitrary: text.map(reasoning => chunk({ reasoning_content: reasoning })) },
      { weight: 1, arbitrary: text.map(content => chunk({ content }, { service_tier: 'flex' })) },
      { weight: 1, arbitrary: text.map(tier => chunk({ content: 'x' }, { service_tier: tier })) },
      {
        weight: 1,
        arbitrary: text.map(reason => chunk({ content: 'x' }).replace('null', () => JSON.stringify(reason))),
      },
      { weight: 2, arbitrary: fc.constantFrom(...Object.values(hostile)) },
    )
    const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 12 })
    fc.assert(
      fc.property(fc.array(frames, { minLength: 3, maxLength: 24 }), cuts, (stream, shares) => {
        const whole = Buffer.from(stream.join(''))
        const ends = shares.map(share => Math.floor(share * whole.length)).sort((a, b) => a - b)
        const pieces = [...ends, whole.length].map((end, index) => whole.subarray(ends[index - 1] ?? 0, end))
        expectSame(chat, pieces)
        expectSame(
          chat,
          stream.map(frame => Buffer.from(frame)),
        )
      }),
      { numRuns: 150 },
    )
  })
})
