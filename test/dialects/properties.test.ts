// Properties of every stream and every body, whatever their content: for each pair of dialects, and for each codec alone.

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { frameData, SseSplitter } from '../../src/http/sse.ts'
import type { Answer, AnswerEvent, AnswerPart } from '../../src/protocols/neutral/answer.ts'
import { collectAnswer, toEvents } from '../../src/protocols/neutral/answer-collector.ts'
import { protocols } from '../../src/protocols/protocols.ts'
import { anyEvents } from '../support/answers.ts'
import { assertCompleteStream } from '../support/complete-stream.ts'
import { expectCheap } from '../support/cpu.ts'
import { Readings } from '../support/readings.ts'
import type { Json } from './next-request.ts'
import { nextRequests } from './next-request.ts'
import { openTranslation, translateStream } from './test-translation.ts'
import type { Dialect } from './upstreams.ts'
import { dialects } from './upstreams.ts'

const answerOf = (dialect: Dialect, form: 'json' | 'sse'): Buffer =>
  readFileSync(join(import.meta.dir, 'golden', 'upstream', `${dialect}.${form}`))
const pairs = dialects.flatMap(from => dialects.map(to => [from, to] as const))

/** The stream that an upstream of this dialect sends for these events. */
function streamOf(dialect: Dialect, events: readonly AnswerEvent[]): Buffer {
  const writer = protocols[dialect].codec.openEventWriter(openTranslation(dialect, dialect).translation.target)
  return Buffer.from(events.map(event => writer.write(event)).join('') + writer.end())
}

/** The events that a client of this dialect reads from a stream. */
function readBack(dialect: Dialect, sse: string): readonly AnswerEvent[] {
  const { codec, readFrame } = protocols[dialect]
  const reader = codec.openEventReader(openTranslation(dialect, dialect).translation.source)
  const splitter = new SseSplitter(1 << 20)
  const events: AnswerEvent[] = []
  for (const frame of splitter.push(Buffer.from(sse))) {
    const { json, kind } = readFrame(frameData(frame))
    expect(['error', 'garbage']).not.toContain(kind)
    if (json !== undefined) events.push(...reader.read(json))
  }
  expect(splitter.end()).toBeUndefined()
  return [...events, ...reader.end()]
}

function cutAt(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [0, ...cuts.map(cut => cut % bytes.length).sort((a, b) => a - b), bytes.length]
  return places.slice(1).map((end, at) => bytes.subarray(places[at], end))
}

const { record, array, oneof, constant } = fc
const text = fc.string({ minLength: 1, maxLength: 20, unit: 'grapheme' })
const count = fc.nat(1_000)
const word = fc.stringMatching(/^[a-z_]{1,12}$/)

/** Answers that every dialect can express. */
const plainAnswer: fc.Arbitrary<Answer> = record({
  thoughts: fc.option(text),
  content: fc.option(text),
  calls: array(record({ name: word, args: fc.dictionary(word, oneof(word, fc.integer(), fc.boolean())) })),
  usage: record({ input: fc.integer({ min: 1, max: 999 }), cacheRead: count, output: count, reasoning: count }),
}).map(({ thoughts, content, calls, usage }) => {
  const parts: AnswerPart[] = [
    ...(thoughts === null ? [] : [{ kind: 'reasoning' as const, text: thoughts }]),
    ...(content === null ? [] : [{ kind: 'text' as const, text: content }]),
    ...calls.map(({ name, args }, at) => ({
      kind: 'call' as const,
      id: `call_${at}`,
      name,
      arguments: JSON.stringify(args),
    })),
  ]
  return { choices: [{ parts, finish: calls.length > 0 ? 'calls' : 'stop' }], usage }
})

/** The content of an answer, without ids and state that a dialect adds, and without empty parts. */
function meaning({ choices, usage }: Answer) {
  const { parts, finish } = choices[0]!
  const of = (kind: 'text' | 'reasoning'): string => parts.map(part => (part.kind === kind ? part.text : '')).join('')
  const calls = parts.flatMap(part => (part.kind === 'call' ? [[part.id, part.name, JSON.parse(part.arguments)]] : []))
  const { input = 0, cacheRead = 0, output = 0, reasoning = 0 } = usage ?? { input: 0, output: 0 }
  return { text: of('text'), thoughts: of('reasoning'), calls, finish, usage: [input, cacheRead, output, reasoning] }
}

describe.each(pairs)('a stream from %s to %s', (from, to) => {
  test('is the same for any split of its bytes', () => {
    const bytes = answerOf(from, 'sse')
    const once = translateStream(from, openTranslation(from, to), [bytes])
    expect(
      translateStream(
        from,
        openTranslation(from, to),
        Array.from(bytes, byte => Buffer.of(byte)),
      ),
    ).toBe(once)
    const cuts = array(fc.nat(), { maxLength: 30 })
    fc.assert(
      fc.property(cuts, at => translateStream(from, openTranslation(from, to), cutAt(bytes, at)) === once),
      { numRuns: 20 },
    )
  })

  test('is valid for any valid stream', () => {
    fc.assert(
      fc.property(anyEvents(1), events => {
        const translated = translateStream(from, openTranslation(from, to), [streamOf(from, events)])
        assertCompleteStream(readBack(to, translated))
      }),
      { numRuns: 30 },
    )
  })

  test('has the same content', () => {
    fc.assert(
      fc.property(plainAnswer, answer => {
        const translated = translateStream(from, openTranslation(from, to), [streamOf(from, toEvents(answer))])
        expect(meaning(collectAnswer(readBack(to, translated)))).toEqual(meaning(answer))
      }),
      { numRuns: 30 },
    )
  })
})

/** JSON with some values replaced. */
function mutated(json: unknown): fc.Arbitrary<unknown> {
  const paths: string[][] = []
  const walk = (value: unknown, path: string[]): void => {
    if (path.length > 0) paths.push(path)
    if (typeof value !== 'object' || value === null) return
    for (const [name, inner] of Object.entries(value)) walk(inner, [...path, name])
  }
  walk(json, [])
  const odd = oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom(null, -1, 1e300, '', [], {}, [null], true))
  const changes = array(record({ path: fc.constantFrom(...paths), value: odd }), { minLength: 1, maxLength: 3 })
  return changes.map(list => {
    const copy = structuredClone(json) as Json
    for (const { path, value } of list) put(copy, path, structuredClone(value))
    return copy
  })
}

function put(json: Json, path: readonly string[], value: unknown): void {
  let at: Json = json
  for (const name of path.slice(0, -1)) {
    const next = at[name]
    if (typeof next !== 'object' || next === null) return
    at = next as Json
  }
  at[path.at(-1)!] = value
}

const requestHead = {
  path: '/v1beta/models/p/m:generateContent',
  query: () => null,
  header: () => undefined,
}

/** Counts what could be written in the other dialects. */
function readRequest(dialect: Dialect, body: Buffer, written: Readings): void {
  const { readCall, codec } = protocols[dialect]
  new Readings().take(() => {
    const conversation = codec.readConversation(readCall(body, requestHead))
    for (const to of dialects) written.take(() => writeFor(to, conversation))
  })
}

function writeFor(
  to: Dialect,
  conversation: Parameters<(typeof protocols)[Dialect]['codec']['writeConversation']>[0],
): string {
  const { translation } = openTranslation(to, to)
  return protocols[to].codec.writeConversation(conversation, {
    model: 'm',
    traits: {},
    outputTokensMax: 4_096,
    cap: undefined,
    capField: 'max_tokens',
    askUsage: true,
    origin: 'o',
    media: new Map(),
    notes: translation.source.notes,
  })
}

/** Counts the answers that could be written again. */
function readAnswer(dialect: Dialect, body: Buffer, written: Readings): void {
  const { readAnswer: read, readFrame, codec } = protocols[dialect]
  const { source, target } = openTranslation(dialect, dialect).translation
  const reading = read(body)
  if (reading !== undefined && reading.error === undefined) {
    written.take(() => codec.writeWholeAnswer(codec.readWholeAnswer(JSON.parse(body.toString()), source), target))
  }
  const { json, kind } = readFrame(body.toString())
  if (kind === 'error' || kind === 'garbage' || json === undefined) return
  new Readings().take(() => {
    const reader = codec.openEventReader(source)
    assertCompleteStream([...reader.read(json), ...reader.end()])
  })
}

/** The data of each event of a golden stream. */
function frames(dialect: Dialect): unknown[] {
  const splitter = new SseSplitter(1 << 20)
  const data = splitter.push(answerOf(dialect, 'sse')).map(frame => frameData(frame))
  return data.flatMap(json => (json === undefined || json === '[DONE]' ? [] : [JSON.parse(json)]))
}

describe.each(dialects.map(dialect => [dialect]))('the codec of %s', dialect => {
  const answer = JSON.parse(answerOf(dialect, 'json').toString()) as Json
  const bytes = (json: unknown): Buffer => Buffer.from(JSON.stringify(json))

  test('throws nothing but a refusal for any request', () => {
    const request = { model: 'p/m', ...nextRequests[dialect](answer) }
    const written = new Readings()
    fc.assert(
      fc.property(fc.jsonValue(), json => readRequest(dialect, bytes(json), written)),
      { numRuns: 100 },
    )
    fc.assert(
      fc.property(mutated(request), json => readRequest(dialect, bytes(json), written)),
      { numRuns: 200 },
    )
    expect(written.read).toBeGreaterThan(0)
  })

  test('throws nothing but a refusal for any answer', () => {
    const written = new Readings()
    fc.assert(
      fc.property(fc.jsonValue(), json => readAnswer(dialect, bytes(json), written)),
      { numRuns: 100 },
    )
    fc.assert(
      fc.property(mutated(answer), json => readAnswer(dialect, bytes(json), written)),
      { numRuns: 200 },
    )
    expect(written.read).toBeGreaterThan(0)
  })

  test('throws nothing but a refusal for any event, and reads valid events', () => {
    const changed = (json: unknown) => oneof({ weight: 5, arbitrary: constant(json) }, mutated(json))
    const stream = fc.tuple(...frames(dialect).map(changed))
    const readings = new Readings()
    fc.assert(
      fc.property(stream, list => {
        readings.take(() => {
          const { codec, readFrame } = protocols[dialect]
          const reader = codec.openEventReader(openTranslation(dialect, dialect).translation.source)
          const events: AnswerEvent[] = []
          for (const frame of list) {
            const { json, kind } = readFrame(JSON.stringify(frame))
            if (kind !== 'error' && kind !== 'garbage' && json !== undefined) events.push(...reader.read(json))
          }
          assertCompleteStream([...events, ...reader.end()])
        })
      }),
      { numRuns: 150 },
    )
    expect(readings.read).toBeGreaterThan(0)
  })

  test('refuses an answer that is nested too deeply', () => {
    const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}${' '.repeat(5_000)}`
    const body = (levels: number) => Buffer.from(`{"x":${nested(levels)},${JSON.stringify(answer).slice(1)}`)
    expect(protocols[dialect].readAnswer(body(10))).toBeDefined()
    expect(protocols[dialect].readAnswer(body(1_000))).toBeUndefined()
    expect(protocols[dialect].readFrame(body(1_000).toString()).kind).toBe('garbage')
  })

  const size = 64 * 1024
  const noises: Readonly<Record<string, () => Buffer>> = {
    'random bytes': () => Buffer.from(crypto.getRandomValues(new Uint8Array(size))),
    'open lists': () => Buffer.alloc(size, '['),
    'open objects': () => Buffer.alloc(size, '{"a":'),
    'one long text': () => bytes({ model: 'p/m', messages: 'x'.repeat(size), contents: 'x', input: 'x' }),
    'spaces': () => Buffer.alloc(size, ' '),
    'many turns': () => {
      const many = <T>(one: T): T[] => Array.from({ length: size / 64 }, () => one)
      const messages = many({ role: 'user', content: 'hello' })
      const contents = many({ parts: [{ text: 'a' }] })
      return bytes({ model: 'p/m', max_tokens: 5, messages, input: messages, contents })
    },
  }

  test.each(Object.keys(noises))('reads 64 KiB of noise in a moment: %s', async kind => {
    const noise = noises[kind]!()
    await expectCheap(1_000, () => {
      readRequest(dialect, noise, new Readings())
      readAnswer(dialect, noise, new Readings())
    })
  })
})
