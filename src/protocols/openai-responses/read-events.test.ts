// Tests reading responses, whole and streamed, into neutral answers.

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { assertCompleteStream } from '../../../test/support/complete-stream.ts'
import { Readings } from '../../../test/support/readings.ts'
import type { Wire } from '../../../test/support/responses-wire.ts'
import { eventsOfSse, notes, source } from '../../../test/support/responses-wire.ts'
import { Refusal } from '../../base/errors.ts'
import type { Answer, AnswerEvent } from '../neutral/answer.ts'
import { collectAnswer } from '../neutral/answer-collector.ts'
import type { AnswerSource } from '../protocol.ts'
import { protocols } from '../protocols.ts'

const { codec } = protocols['openai-responses']
const golden = (name: string): string => readFileSync(`${import.meta.dir}/../../../test/golden/${name}`, 'utf8')

function read(events: readonly unknown[], from: AnswerSource = source()): readonly AnswerEvent[] {
  const reader = codec.openEventReader(from)
  const all = [...events.flatMap(event => reader.read(event)), ...reader.end()]
  assertCompleteStream(all)
  return all
}

const collect = (events: readonly unknown[], from?: AnswerSource): Answer => collectAnswer(read(events, from))

const expected: Answer = {
  id: 'resp_1',
  model: 'openai/gpt-x',
  createdS: 1_763_000_000,
  serviceClass: 'default',
  usage: { input: 40, cacheRead: 60, output: 30, reasoning: 10 },
  choices: [
    {
      finish: 'calls',
      parts: [
        {
          kind: 'reasoning',
          text: 'Let me think.',
          sealed: { origin: 'here', form: 'encrypted', value: 'gAAA', id: 'rs_1' },
        },
        { kind: 'text', text: 'Hello world' },
        { kind: 'call', id: 'call_a', name: 'get_weather', arguments: '{"city":"Paris"}' },
      ],
    },
  ],
}

describe('the golden answer', () => {
  const events = eventsOfSse(golden('responses.sse'))

  test('is read from a plain answer', () => {
    expect(codec.readWholeAnswer(JSON.parse(golden('responses.json')), source())).toEqual(expected)
  })

  test('is read from a stream', () => {
    expect(collect(events)).toEqual(expected)
  })

  test.each([
    ['without the events that begin parts', /content_part\.added|summary_part\.added/],
    ['without the events that end parts', /(text|part|arguments)\.done/],
    ['without deltas', /\.delta$/],
    ['without the events that end items', /output_item\.done/],
    ['from the last event alone', /^(?!response\.completed)/],
    ['without the first events', /created|in_progress/],
    ['without all events that begin or end something', /added|\.done$|created|in_progress/],
  ])('is the same %s', (_, omitted) => {
    const { choices, usage } = collect(events.filter(({ type }) => !omitted.test(String(type))))
    expect({ choices, usage }).toEqual({ choices: expected.choices, usage: expected.usage })
  })

  test('is the same with other ids in each event', () => {
    let count = 0
    const rotated = events.map(event => ({ ...event, ...(event.item_id !== undefined && { item_id: `x${count++}` }) }))
    expect(collect(rotated)).toEqual(expected)
  })

  test('is the same with repeated events', () => {
    const twice = (event: Wire): readonly Wire[] => (String(event.type).endsWith('.delta') ? [event] : [event, event])
    expect(collect(events.flatMap(twice))).toEqual(expected)
  })

  test('contains what has arrived if the stream breaks off', () => {
    const cut = events.slice(0, 11)
    expect(collect(cut).choices).toMatchObject([
      { finish: 'other', parts: [{ text: 'Let me think.' }, { kind: 'text', text: 'Hello' }] },
    ])
  })
})

describe('a stream that leaves something out', () => {
  const call = (id: string, args: string) => ({ type: 'function_call', id, call_id: id, name: 'f', arguments: args })
  const empty = { type: 'response.completed', response: { status: 'completed', output: [] } }
  const partsOf = (...events: readonly unknown[]) => collect([...events, empty]).choices[0]?.parts
  const at = { output_index: 0, content_index: 0, summary_index: 0 }

  test('is read if it has texts and arguments only in the events that end them', () => {
    const done = (type: string, rest: Wire): Wire => ({ ...at, type: `response.${type}.done`, ...rest })
    expect(partsOf(done('output_text', { text: 'Hi' }))).toEqual([{ kind: 'text', text: 'Hi' }])
    expect(partsOf(done('refusal', { refusal: 'no' }))).toEqual([{ kind: 'refusal', text: 'no' }])
    expect(partsOf(done('reasoning_text', { text: 'hm' }))).toEqual([{ kind: 'reasoning', raw: true, text: 'hm' }])
    const thoughts = ['a', 'b'].map((text, summary_index) => done('reasoning_summary_text', { text, summary_index }))
    expect(partsOf(...thoughts)).toEqual([{ kind: 'reasoning', text: 'a\n\nb' }])
    const added = { ...at, type: 'response.output_item.added', item: call('c', '') }
    expect(partsOf(added, done('function_call_arguments', { arguments: '{"x":1}' }))).toMatchObject([
      { kind: 'call', arguments: '{"x":1}' },
    ])
  })

  test('is read if it never says that an item is done', () => {
    const message = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hi' }] }
    const added = (item: Wire): Wire => ({ type: 'response.output_item.added', output_index: 0, item })
    expect(partsOf(added(message))).toEqual([{ kind: 'text', text: 'Hi' }])
    expect(partsOf(added(call('c', '{"x":1}')))).toMatchObject([{ kind: 'call', arguments: '{"x":1}' }])
    const search = added({ type: 'web_search_call', id: 'w' })
    expect(partsOf(search)).toMatchObject([{ kind: 'native', what: 'web_search_call' }])
  })

  test('has all items without their positions', () => {
    const events = ['a', 'b'].flatMap(id => [
      { type: 'response.output_item.added', item: call(id, '') },
      { type: 'response.function_call_arguments.delta', item_id: id, delta: '{}' },
      { type: 'response.output_item.done', item: call(id, '{}') },
    ])
    expect(partsOf(...events)).toMatchObject([
      { id: 'a', arguments: '{}' },
      { id: 'b', arguments: '{}' },
    ])
    expect(partsOf(events[2], events[5])).toMatchObject([{ id: 'a' }, { id: 'b' }])
  })

  test('has each item once if the last event counts the positions in another way', () => {
    const message = { type: 'message', id: 'm', role: 'assistant', content: [{ type: 'output_text', text: 'Hi' }] }
    const delta = { type: 'response.output_text.delta', output_index: 1, content_index: 0, item_id: 'm', delta: 'Hi' }
    expect(collect([delta, last([message])]).choices[0]?.parts).toEqual([{ kind: 'text', text: 'Hi' }])
    const other = { ...message, content: [{ type: 'output_text', text: 'Ho' }] }
    expect(collect([delta, last([message, other])]).choices[0]?.parts).toEqual([
      { kind: 'text', text: 'Hi' },
      { kind: 'text', text: 'Ho' },
    ])
  })

  test('reports audio, which belongs to no item', () => {
    const from = source()
    collect([{ type: 'response.audio.delta', delta: 'AAAA' }, empty], from)
    expect(from.notes.losses.codes).toEqual(['answer.event.response.audio.delta'])
  })
})

const last = (output: readonly unknown[], rest: Wire = {}): Wire => ({
  type: 'response.completed',
  response: { id: 'r', status: 'completed', output, ...rest },
})

const readBothWays = (output: readonly unknown[], rest: Wire = {}, from = source()): Answer => {
  const answer = codec.readWholeAnswer(last(output, rest).response, from)
  expect(collect([last(output, rest)], from)).toEqual(answer)
  return answer
}

test.each([
  ['a text instead of the list of parts', { type: 'message', content: 'x' }],
  ['texts instead of parts', { type: 'message', content: ['x'] }],
  ['no type', { role: 'assistant', content: [{ type: 'output_text', text: 'x' }] }],
])('a message with %s is read', (_, message) => {
  const reasoning = { type: 'reasoning', summary: 'hm' }
  expect(readBothWays([reasoning, message]).choices[0]!.parts).toEqual([
    { kind: 'reasoning', text: 'hm' },
    { kind: 'text', text: 'x' },
  ])
})

describe('an answer', () => {
  const text = { type: 'message', content: [{ type: 'output_text', text: 'x', annotations: [] }] }
  const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: '' }

  test.each([
    [[text], {}, 'stop'],
    [[text, call], {}, 'calls'],
    [[text], { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } }, 'length'],
    [[text], { status: 'incomplete', incomplete_details: { reason: 'content_filter' } }, 'filtered'],
    [[text], { status: 'incomplete', incomplete_details: { reason: 'steered' } }, 'other'],
    [[text], { status: 'incomplete', incomplete_details: null }, 'other'],
    [[text], { status: 'cancelled' }, 'other'],
    [[{ type: 'message', content: [{ type: 'refusal', refusal: 'no' }] }], {}, 'filtered'],
  ] as const)('%j with %j ends with %s', (output, rest, finish) => {
    expect(readBothWays(output, rest).choices[0]!.finish).toBe(finish)
  })

  test('P30: keeps refusals, citations, probabilities, images and native parts', () => {
    const annotations = [
      { type: 'url_citation', url: 'https://a.example', title: 't', start_index: 0, end_index: 1 },
      { type: 'file_citation', file_id: 'f', filename: 'a.pdf', index: 0 },
      5,
    ]
    const logprobs = [{ token: 'x', logprob: -1, bytes: [120], top_logprobs: [{ token: 'y', logprob: -2 }] }]
    const search = { type: 'web_search_call', id: 'ws_1', status: 'completed' }
    const output = [
      { type: 'message', content: [{ type: 'output_text', text: 'x', annotations, logprobs }] },
      { type: 'message', content: [{ type: 'refusal', refusal: 'no' }] },
      { type: 'image_generation_call', id: 'ig_1', result: 'AAAA', output_format: 'webp' },
      { type: 'custom_tool_call', call_id: 'c', name: 'g', input: 'free' },
      { type: 'reasoning', id: 'rs', summary: [{ text: 'one' }, { text: 'two' }], content: [{ text: 'raw' }] },
      search,
    ]
    expect(readBothWays(output).choices[0]!.parts).toEqual([
      {
        kind: 'text',
        text: 'x',
        citations: [{ url: 'https://a.example', title: 't', start: 0, end: 1 }, { title: 'a.pdf' }],
        logprobs: [{ token: 'x', logprob: -1, bytes: [120], top: [{ token: 'y', logprob: -2 }] }],
      },
      { kind: 'refusal', text: 'no' },
      { kind: 'image', source: { at: 'inline', base64: 'AAAA', mime: 'image/webp' } },
      { kind: 'call', id: 'c', name: 'g', arguments: 'free', custom: true },
      { kind: 'reasoning', text: 'raw', raw: true },
      { kind: 'reasoning', text: 'one\n\ntwo' },
      { kind: 'native', dialect: 'openai-responses', what: 'web_search_call', value: search },
    ])
  })

  test('has the caller’s tool names, and ids for calls without one', () => {
    const translationNotes = notes()
    translationNotes.renamed.set('a_b', 'a.b')
    translationNotes.wrapped = new Set(['shell'])
    const output = [
      { type: 'function_call', name: 'a_b', arguments: '{}' },
      { type: 'function_call', call_id: 'c', name: 'shell', arguments: '{"input":"ls\\n"}' },
    ]
    const parts = [
      { kind: 'call', id: 'call_minted0', name: 'a.b', arguments: '{}' },
      { kind: 'call', id: 'c', name: 'shell', arguments: 'ls\n', custom: true },
    ]
    const whole = codec.readWholeAnswer({ status: 'completed', output }, source({ notes: translationNotes }))
    expect(whole.choices[0]!.parts as unknown).toEqual(parts)
    const added = (item: unknown, index: number): Wire => ({
      type: 'response.output_item.added',
      output_index: index,
      item,
    })
    const pieces = ['{"inp', 'ut":"ls', '\\n"}'].map(delta => ({
      type: 'response.function_call_arguments.delta',
      output_index: 1,
      delta,
    }))
    const openingEvents = output.map((item, index) => added({ ...item, arguments: '' }, index))
    const streamed = collect([...openingEvents, ...pieces, last(output)], source({ notes: translationNotes }))
    expect<unknown>(streamed.choices[0]!.parts).toEqual(parts)
  })

  test('has no arguments that the model did not write, if a call in it is cut', () => {
    const early = { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } }
    const named = { type: 'function_call', call_id: 'c', name: 'f' }
    const part = { kind: 'call', id: 'c', name: 'f' }
    const wrapping = () => source({ notes: { ...notes(), wrapped: new Set(['f']) } })
    const partsOf = (item: Wire, from = source, rest: Wire = early): readonly unknown[] => {
      const items = [{ ...named, call_id: 'b', name: 'g', arguments: '{}', status: 'completed' }, item]
      const frames = items.flatMap((one, at): Wire[] => [
        {
          type: 'response.output_item.added',
          output_index: at,
          item: { ...one, arguments: '', status: 'in_progress' },
        },
        { type: 'response.output_item.done', output_index: at, item: one },
      ])
      const streamed = collect([...frames, last([], rest)], from()).choices[0]!.parts.slice(1)
      expect(readBothWays(items, rest, from()).choices[0]!.parts.slice(1)).toEqual(streamed)
      return streamed
    }
    // Some compatible servers give the item no status, or the wrong one.
    for (const status of ['incomplete', undefined, 'in_progress']) {
      for (const text of ['', '{"x":']) {
        expect(partsOf({ ...named, arguments: text, status })).toEqual([{ ...part, arguments: text, isCut: true }])
      }
      expect(partsOf({ ...named, arguments: '{"input":"ha', status }, wrapping)).toEqual([
        { ...part, arguments: '', custom: true, isCut: true },
      ])
      expect(partsOf({ ...named, arguments: '{"input":"half"}', status }, wrapping)).toEqual([
        { ...part, arguments: 'half', custom: true },
      ])
    }
    expect(partsOf({ ...named, arguments: '', status: 'completed' })).toEqual([{ ...part, arguments: '' }])
    expect(partsOf({ ...named, arguments: '' }, source, {})).toEqual([{ ...part, arguments: '' }])
    // A call that another item follows is complete, and so is one of a response that has no status.
    const text = { type: 'message', status: 'incomplete', content: [{ type: 'output_text', text: 'x' }] }
    const [first] = readBothWays([{ ...named, arguments: '' }, text], early).choices[0]!.parts
    expect<unknown>(first).toEqual({ ...part, arguments: '' })
    const noStatus = codec.readWholeAnswer({ output: [{ ...named, arguments: '' }] }, source())
    expect<unknown>(noStatus.choices[0]!.parts).toEqual([{ ...part, arguments: '' }])
  })

  test('ignores deltas after it is done', () => {
    const delta = { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'x' }
    const done = { type: 'response.content_part.done', output_index: 0, content_index: 0, part: text.content[0] }
    expect(collect([delta, done, delta, last([text])]).choices[0]!.parts).toEqual([{ kind: 'text', text: 'x' }])
  })

  test('has a blank line between the paragraphs of a summary', () => {
    const delta = (index: number, text: string): Wire => ({
      type: 'response.reasoning_summary_text.delta',
      output_index: 0,
      summary_index: index,
      delta: text,
    })
    const events = [delta(0, 'o'), delta(0, 'ne'), delta(1, 'two'), last([])]
    expect(collect(events).choices[0]!.parts).toEqual([{ kind: 'reasoning', text: 'one\n\ntwo' }])
  })

  test.each([
    { type: 'response.failed', response: { status: 'failed', error: { message: 'm' } } },
    { type: 'error', message: 'm' },
    { type: 'response.completed' },
    { type: 'response.completed', response: { status: 'failed' } },
  ])('P8: in a stream is refused if it failed or is invalid: %j', event => {
    expect(() => codec.openEventReader(source()).read(event)).toThrow(Refusal)
  })

  test('P8: that failed is refused', () => {
    expect(() => codec.readWholeAnswer({ status: 'failed', output: [], error: { message: 'm' } }, source())).toThrow(
      Refusal,
    )
    expect(() => codec.readWholeAnswer(null, source())).toThrow(Refusal)
  })

  test('with too many items is refused', () => {
    const reader = codec.openEventReader(source())
    const readTooMany = (): void => {
      const delta = { type: 'response.output_text.delta', delta: 'x' }
      for (let index = 0; index < 100_000; index++) reader.read({ ...delta, output_index: index })
    }
    expect(readTooMany).toThrow(Refusal)
  })
})

const types = [
  ...['created', 'in_progress', 'queued', 'output_item.added', 'output_item.done', 'content_part.added', 'completed'],
  ...['content_part.done', 'output_text.delta', 'output_text.done', 'output_text.annotation.added', 'refusal.delta'],
  ...['reasoning_summary_text.delta', 'reasoning_text.delta', 'function_call_arguments.delta', 'incomplete'],
  ...['custom_tool_call_input.delta', 'failed', 'nobody_knows'],
]
const item = fc.record(
  {
    type: fc.constantFrom('message', 'reasoning', 'function_call', 'custom_tool_call', 'web_search_call', 5),
    id: fc.jsonValue(),
    call_id: fc.jsonValue(),
    name: fc.oneof(fc.constant('f'), fc.jsonValue()),
    arguments: fc.jsonValue(),
    input: fc.jsonValue(),
    encrypted_content: fc.oneof(fc.string(), fc.jsonValue()),
    content: fc.oneof(
      fc.jsonValue(),
      fc.array(fc.record({ type: fc.constantFrom('output_text', 'refusal'), text: fc.string(), refusal: fc.string() })),
    ),
    summary: fc.oneof(fc.jsonValue(), fc.array(fc.record({ text: fc.string() }))),
  },
  { requiredKeys: ['type'] },
)
const anyEvent = fc.record(
  {
    type: fc.constantFrom(...types.map(type => `response.${type}`)),
    output_index: fc.oneof(fc.nat(3), fc.jsonValue()),
    content_index: fc.oneof(fc.nat(2), fc.jsonValue()),
    delta: fc.oneof(fc.string(), fc.jsonValue()),
    item,
    part: fc.oneof(item, fc.jsonValue()),
    annotation: fc.jsonValue(),
    logprobs: fc.jsonValue(),
    summary_index: fc.jsonValue(),
    response: fc.oneof(fc.record({ output: fc.array(item), status: fc.constant('completed') }), fc.jsonValue()),
  },
  { requiredKeys: ['type', 'output_index'] },
)

describe('any JSON', () => {
  test('is read as an answer or refused', () => {
    const readings = new Readings()
    const readWhole = (json: unknown): void => readings.take(() => codec.readWholeAnswer(json, source()))
    fc.assert(fc.property(fc.jsonValue(), readWhole))
    fc.assert(fc.property(fc.array(item), output => readWhole({ output })))
    expect(readings.read).toBeGreaterThan(0)
  })

  test('is read as valid events or refused', () => {
    const readings = new Readings()
    const readEvents = (events: unknown[]): void => readings.take(() => read(events))
    fc.assert(fc.property(fc.array(fc.jsonValue()), readEvents))
    fc.assert(fc.property(fc.array(anyEvent, { maxLength: 12 }), readEvents), { numRuns: 500 })
    expect(readings.read).toBeGreaterThan(0)
  })
})
