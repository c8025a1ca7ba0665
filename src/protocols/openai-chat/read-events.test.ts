// Tests reading chat answers, whole and streamed, from correct and from careless upstreams.

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { assertCompleteStream } from '../../../test/support/complete-stream.ts'
import { Readings } from '../../../test/support/readings.ts'
import { freshNotes, ORIGIN, sourceOf } from '../../../test/support/translation.ts'
import { Refusal } from '../../base/errors.ts'
import type { Answer, AnswerEvent, AnswerPart } from '../neutral/answer.ts'
import { collectAnswer } from '../neutral/answer-collector.ts'
import { ChatEventReader, readWholeAnswer } from './read-events.ts'

function eventsFrom(chunks: readonly unknown[], source = sourceOf()): AnswerEvent[] {
  const reader = new ChatEventReader(source)
  const events = [...chunks.flatMap(chunk => reader.read(chunk)), ...reader.end()]
  assertCompleteStream(events)
  return events
}

const deltasOf = (...deltas: readonly object[]) =>
  deltas.map(delta => ({ choices: [{ index: 0, delta, finish_reason: null }] }))
const ended = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }
const partsOf = (...deltas: readonly object[]): readonly AnswerPart[] =>
  collectAnswer(eventsFrom([...deltasOf(...deltas), ended])).choices[0]!.parts
const piece = (fields: object): object => ({ tool_calls: [fields] })
const call = (id: string, name: string, text: string): AnswerPart => ({ kind: 'call', id, name, arguments: text })
const shown = { form: 'shown', value: '', origin: ORIGIN } as const

const golden = (name: string): string => readFileSync(`${import.meta.dir}/../../../test/golden/${name}`, 'utf8')

describe('the golden answer', () => {
  const usage = { input: 40, output: 30, cacheRead: 60, reasoning: 10 }
  const head = { id: 'chatcmpl-1', model: 'openai/gpt-x', createdS: 1_763_000_000, serviceClass: 'default', usage }
  const goldenParts: AnswerPart[] = [
    { kind: 'reasoning', text: 'Let me think.', sealed: shown },
    { kind: 'text', text: 'Hello world' },
    call('call_a', 'get_weather', '{"city":"Paris"}'),
  ]

  test('is read from a plain answer', () => {
    const answer = readWholeAnswer(JSON.parse(golden('chat.json')), sourceOf())
    expect(answer).toEqual({ ...head, choices: [{ parts: goldenParts, finish: 'calls' }] } as Answer)
  })

  test('is read from a stream', () => {
    const data = golden('chat.sse')
      .split('\n')
      .filter(line => line.startsWith('data: {'))
    const answer = collectAnswer(eventsFrom(data.map(line => JSON.parse(line.slice(6)) as unknown)))
    const parts = [...goldenParts, call('call_b', 'get_weather', '{"city":"Rome"}')]
    expect(answer).toEqual({ ...head, choices: [{ parts, finish: 'calls' }] } as Answer)
  })
})

describe('tool calls', () => {
  const open = (index: number, id: string, name: string) => piece({ index, id, type: 'function', function: { name } })
  const argumentsOf = (index: number, text: string) => piece({ index, function: { arguments: text } })
  const both = [call('a', 'f', '{"x":1}'), call('b', 'g', '{"y":2}')]

  test('P2: have their own index, whatever the upstream sends', () => {
    const pieces = [open(7, 'a', 'f'), argumentsOf(7, '{"x":1}'), open(9, 'b', 'g'), argumentsOf(9, '{"y":2}')]
    expect(partsOf({ content: 'hm' }, ...pieces)).toEqual([{ kind: 'text', text: 'hm' }, ...both])
  })

  test('P3: are complete if their pieces are mixed, with text between them', () => {
    const pieces = [open(0, 'a', 'f'), open(1, 'b', 'g'), argumentsOf(1, '{"y"'), argumentsOf(0, '{"x"')]
    expect(partsOf(...pieces, { content: 'text' }, argumentsOf(1, ':2}'), argumentsOf(0, ':1}'))).toEqual([
      ...both,
      { kind: 'text', text: 'text' },
    ])
  })

  test('P4: that repeat their id, type and name are opened once', () => {
    const repeated = (text: string) =>
      piece({ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: text } })
    expect(partsOf(repeated('{"x"'), repeated(':1'), repeated('}'))).toEqual([call('a', 'f', '{"x":1}')])
  })

  test('without an index are distinguished by their ids', () => {
    const withoutIndex = (id: string | undefined, name: string | undefined, text: string) =>
      piece({ id, function: { name, arguments: text } })
    expect(
      partsOf(
        withoutIndex('a', 'f', '{"x"'),
        withoutIndex(undefined, undefined, ':1}'),
        withoutIndex('b', 'g', '{"y":2}'),
      ),
    ).toEqual(both)
  })

  test('with the same index are distinguished by their ids', () => {
    const wholeCall = (id: string, name: string, text: string) =>
      piece({ index: 0, id, function: { name, arguments: text } })
    expect(partsOf(wholeCall('a', 'f', '{"x":1}'), wholeCall('b', 'g', '{"y":2}'))).toEqual(both)
  })

  test('without ids get new ids', () => {
    const wholeCall = (name: string, text: string) => piece({ function: { name, arguments: text } })
    expect(partsOf(wholeCall('f', '{"x":1}'), wholeCall('g', '{"y":2}'))).toEqual([
      call('call_m0', 'f', '{"x":1}'),
      call('call_m1', 'g', '{"y":2}'),
    ])
  })

  test('with a repeated id get another id', () => {
    expect(partsOf(open(0, 'a', 'f'), open(1, 'a', 'g'))).toEqual([call('a', 'f', '{}'), call('call_m0', 'g', '{}')])
  })

  test('with the same index and without ids are distinguished by their names, or because each is complete', () => {
    const wholeCall = (name: string, text: string) => piece({ index: 0, id: '', function: { name, arguments: text } })
    expect(partsOf(wholeCall('f', '{"x":1}'), wholeCall('g', '{"y":2}'), wholeCall('g', '{"y":3}'))).toEqual([
      call('call_m0', 'f', '{"x":1}'),
      call('call_m1', 'g', '{"y":2}'),
      call('call_m2', 'g', '{"y":3}'),
    ])
    const repeated = (text: string) => wholeCall('f', text)
    expect(partsOf(repeated('{"x":'), repeated('{}'), repeated('}'))).toEqual([call('call_m0', 'f', '{"x":{}}')])
  })

  test('whose index is a text are not mixed up', () => {
    const named = (index: string, name: string) => piece({ index, id: name, function: { name } })
    const more = (index: string, text: string) => piece({ index, function: { arguments: text } })
    expect(partsOf(named('0', 'a'), named('1', 'b'), more('0', '{"x":1}'), more('1', '{"y":2}'))).toEqual([
      call('a', 'a', '{"x":1}'),
      call('b', 'b', '{"y":2}'),
    ])
  })

  test('with the name beside the id are read', () => {
    const parts = partsOf(piece({ index: 0, id: 'a', name: 'f', arguments: { x: 1 } }), { tool_calls: [{ type: 'x' }] })
    expect(parts).toEqual([call('a', 'f', '{"x":1}')])
  })

  test('whose name arrives late are opened then', () => {
    const late = [piece({ index: 0, id: 'a' }), argumentsOf(0, '{"x"'), piece({ index: 0, function: { name: 'f' } })]
    expect(partsOf(...late, argumentsOf(0, ':1}'))).toEqual([call('a', 'f', '{"x":1}')])
  })

  test('without a name are refused', () => {
    expect(() => eventsFrom(deltasOf(argumentsOf(0, '{}')))).toThrow(Refusal)
  })

  test('are read with an object as arguments, without arguments, and in the legacy form', () => {
    expect(partsOf(piece({ index: 0, id: 'a', function: { name: 'f', arguments: { x: 1 } } }))).toEqual([
      call('a', 'f', '{"x":1}'),
    ])
    expect(partsOf(open(0, 'a', 'f'))).toEqual([call('a', 'f', '{}')])
    const legacy = [{ function_call: { name: 'f', arguments: '' } }, { function_call: { arguments: '{}' } }]
    expect(partsOf(...legacy)).toEqual([call('call_m0', 'f', '{}')])
    expect(partsOf(piece({}), piece({ index: 0, function: { arguments: '' } }))).toEqual([])
  })

  test('of custom tools are read in their own form and as a function', () => {
    const custom = { ...call('a', 'f', 'free "text"'), custom: true }
    const pieces = [
      piece({ index: 0, id: 'a', type: 'custom', custom: { name: 'f', input: 'free ' } }),
      piece({ index: 0, custom: { input: '"text"' } }),
    ]
    expect(partsOf(...pieces)).toEqual([custom as AnswerPart])
    const notes = { ...freshNotes(), wrapped: new Set(['f_']), renamed: new Map([['f_', 'f']]) }
    const wrapped = [open(0, 'a', 'f_'), argumentsOf(0, '{"input":"free \\"'), argumentsOf(0, 'text\\""}')]
    expect(collectAnswer(eventsFrom(deltasOf(...wrapped), sourceOf(notes))).choices[0]?.parts).toEqual([
      custom as AnswerPart,
    ])
  })

  test('may be cut if the upstream ended the answer early, and have no arguments that the model did not write', () => {
    const cutAfter = (reason: string | null, ...pieces: readonly object[]) => {
      const end = { choices: [{ index: 0, delta: {}, finish_reason: reason }] }
      return collectAnswer(eventsFrom([...deltasOf(...pieces), end])).choices[0]!.parts
    }
    const cut = (text: string) => [{ ...call('a', 'f', text), isCut: true } as AnswerPart]
    for (const reason of ['length', 'max_tokens', 'content_filter', 'model_length']) {
      expect(cutAfter(reason, open(0, 'a', 'f'))).toEqual(cut(''))
      expect(cutAfter(reason, open(0, 'a', 'f'), argumentsOf(0, '{"x":'))).toEqual(cut('{"x":'))
    }
    // Some servers give no reason, or one of their own.
    for (const reason of ['tool_calls', null, 'weird']) {
      expect(cutAfter(reason, open(0, 'a', 'f'))).toEqual([call('a', 'f', '{}')])
    }
    const second = [open(1, 'b', 'g'), argumentsOf(1, '{"x":')]
    const cutSecond = { ...call('b', 'g', '{"x":'), isCut: true } as AnswerPart
    expect(cutAfter('length', open(0, 'a', 'f'), ...second)).toEqual([call('a', 'f', '{}'), cutSecond])
    const message = { tool_calls: [{ id: 'a', function: { name: 'f', arguments: '' } }] }
    const whole = { choices: [{ index: 0, message, finish_reason: 'length' }] }
    expect(readWholeAnswer(whole, sourceOf()).choices[0]!.parts).toEqual(cut(''))
    const notes = { ...freshNotes(), wrapped: new Set(['f']) }
    const wrapped = (text: string) => {
      const end = { choices: [{ index: 0, delta: {}, finish_reason: 'length' }] }
      const chunks = [...deltasOf(open(0, 'a', 'f'), argumentsOf(0, text)), end]
      return collectAnswer(eventsFrom(chunks, sourceOf(notes))).choices[0]!.parts
    }
    expect(wrapped('{"input":"ha')).toEqual([{ ...call('a', 'f', ''), custom: true, isCut: true } as AnswerPart])
    expect(wrapped('{"input":"half"}')).toEqual([{ ...call('a', 'f', 'half'), custom: true } as AnswerPart])
  })

  test('keep their signature', () => {
    const extra_content = { google: { thought_signature: 'sig' } }
    const sealed = { form: 'thought', value: 'sig', origin: ORIGIN } as const
    const events = eventsFrom(deltasOf(piece({ index: 0, id: 'a', function: { name: 'f' }, extra_content })))
    expect(events[1]).toMatchObject({ kind: 'open', sealed })
    expect(partsOf(open(0, 'a', 'f'), piece({ index: 0, extra_content }))).toEqual([
      { ...call('a', 'f', '{}'), sealed } as AnswerPart,
    ])
  })
})

describe('content', () => {
  test('is read in the order of arrival', () => {
    const deltas = [{ reasoning: 'r' }, { content: 'a' }, { content: 'b' }, { reasoning_content: 's' }]
    expect(partsOf(...deltas, { refusal: 'no' })).toEqual([
      { kind: 'reasoning', text: 'r', sealed: shown },
      { kind: 'text', text: 'ab' },
      { kind: 'reasoning', text: 's', sealed: shown },
      { kind: 'refusal', text: 'no' },
    ])
  })

  test('is read from lists of parts, as some upstreams send thoughts', () => {
    const content = [
      { type: 'thinking', thinking: [{ type: 'text', text: 'r' }] },
      { type: 'text', text: 'a' },
    ]
    expect(partsOf({ content })).toEqual([
      { kind: 'reasoning', text: 'r', sealed: shown },
      { kind: 'text', text: 'a' },
    ])
  })

  test('is read with reasoning state before or after it', () => {
    const sealed = { form: 'encrypted', value: 'eeff', origin: ORIGIN } as const
    const state = [{ encrypted_content: 'ee' }, { encrypted_content: 'ff' }]
    const early = partsOf({ reasoning_content: 'r' }, ...state, { content: 'a' })
    expect(early[0]).toEqual({ kind: 'reasoning', text: 'r', sealed })
    expect(partsOf({ content: 'a' }, ...state)[1]).toEqual({ kind: 'reasoning', text: '', sealed })
  })

  test('is read with citations, probabilities, images and audio', () => {
    const cited = { start_index: 0, end_index: 1, title: 't', url: 'http://x/' }
    const token = { token: 'a', logprob: -1, bytes: [97], top_logprobs: [{ token: 'b', logprob: -2 }] }
    const logprobs = { content: [token] }
    const message = {
      content: 'a',
      annotations: [{ type: 'url_citation', url_citation: cited }, { type: 'other' }],
      images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }],
      audio: { id: 'x', data: 'AAAA', transcript: 'said', expires_at: 1 },
    }
    expect(readWholeAnswer({ choices: [{ message, logprobs }] }, sourceOf()).choices[0]?.parts).toEqual([
      {
        kind: 'text',
        text: 'asaid',
        logprobs: [{ token: 'a', logprob: -1, bytes: [97], top: [{ token: 'b', logprob: -2 }] }],
        citations: [{ url: 'http://x/', title: 't', start: 0, end: 1 }],
      },
      { kind: 'image', source: { at: 'inline', mime: 'image/png', base64: 'AAAA' } },
      { kind: 'audio', source: { at: 'inline', mime: 'audio/wav', base64: 'AAAA' } },
    ])
    const audioDeltas = [{ audio: { data: 'AA==', transcript: 'a' } }, { audio: { data: 'AQ==' } }]
    expect(partsOf(...audioDeltas)[1]).toEqual({
      kind: 'audio',
      source: { at: 'inline', mime: 'audio/pcm', base64: 'AAE=' },
    })
  })

  test('is read in several choices, without missing indexes', () => {
    const chunk = (index: number, content: string, finish: string | null = null) => ({
      choices: [{ index, delta: { content }, finish_reason: finish }],
    })
    const chunks = [chunk(2, 'c'), chunk(0, 'a', 'stop'), chunk(2, 'd', 'length'), chunk(500, 'x')]
    expect(collectAnswer(eventsFrom(chunks)).choices).toEqual([
      { parts: [{ kind: 'text', text: 'a' }], finish: 'stop' },
      { parts: [], finish: 'other' },
      { parts: [{ kind: 'text', text: 'cd' }], finish: 'length' },
    ])
  })
})

describe('content in unusual forms', () => {
  const lossesOf = (...chunks: readonly object[]): readonly string[] => {
    const notes = freshNotes()
    eventsFrom(chunks, sourceOf(notes))
    return notes.losses.codes
  }

  test.each([
    ['a part', { type: 'text', text: 'Hi' }],
    ['texts', ['H', 'i']],
    ['parts', [{ type: 'text', text: 'H' }, 'i']],
  ])('is read from %s', (_, content) => {
    expect(partsOf({ reasoning: { content: 'Hm' } }, { content })).toEqual([
      { kind: 'reasoning', text: 'Hm', sealed: shown },
      { kind: 'text', text: 'Hi' },
    ])
    expect(readWholeAnswer({ choices: [{ message: { content } }] }, sourceOf()).choices[0]?.parts).toEqual([
      { kind: 'text', text: 'Hi' },
    ])
  })

  test('is not doubled by a whole message at the end of a stream', () => {
    const calls = [{ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }]
    const whole = { role: 'assistant', name: 'Vendor', content: 'Hi', reasoning_content: 'Hm', tool_calls: calls }
    const last = { choices: [{ index: 0, message: whole, finish_reason: 'stop' }] }
    const pieces = deltasOf({ reasoning_content: 'Hm' }, { content: 'Hi' }, { tool_calls: calls })
    const expected = [
      { kind: 'reasoning', text: 'Hm', sealed: shown },
      { kind: 'text', text: 'Hi' },
      call('a', 'f', '{}'),
    ] as AnswerPart[]
    expect(collectAnswer(eventsFrom([...pieces, last])).choices).toEqual([{ parts: expected, finish: 'calls' }])
    expect(collectAnswer(eventsFrom([last])).choices).toEqual([{ parts: expected, finish: 'calls' }])
    expect(collectAnswer(eventsFrom([...pieces.slice(0, 1), last])).choices[0]?.parts.slice(1)).toEqual(
      expected.slice(1),
    )
    expect(lossesOf(...pieces, last)).toEqual([])
  })

  test('that are images are read from URLs and base64 without objects around them, or are a loss', () => {
    const png = { kind: 'image', source: { at: 'inline', mime: 'image/png', base64: 'AAAA' } } as const
    const data = 'data:image/png;base64,AAAA'
    expect(
      partsOf({ images: [data, { b64_json: 'AAAA' }, 'AAAA'] }, { content: [{ type: 'image_url', image_url: data }] }),
    ).toEqual([png, png, png, png])
    expect(lossesOf(...deltasOf({ images: [{ file: 'x' }] }))).toEqual(['answer.message.images'])
  })

  test('is read from a choice that has a text only', () => {
    const chunks = [
      { choices: [{ index: 0, text: 'a' }] },
      { choices: [{ index: 0, text: 'b', finish_reason: 'stop' }] },
    ]
    expect(collectAnswer(eventsFrom(chunks)).choices).toEqual([
      { parts: [{ kind: 'text', text: 'ab' }], finish: 'stop' },
    ])
    const repeated = { choices: [{ index: 0, text: 'a', delta: { content: 'a', token_id: 3 }, seed: 5 }] }
    expect(lossesOf(repeated)).toEqual([])
    expect(lossesOf({ choices: [{ index: 0, text: 'b', delta: { content: 'a' } }] })).toEqual(['answer.choices.text'])
  })
})

describe('the finish reason', () => {
  const finishOf = (reason: unknown, message: object = { content: 'a' }) =>
    readWholeAnswer({ choices: [{ message, finish_reason: reason }] }, sourceOf()).choices[0]?.finish
  const withCall = { tool_calls: [{ id: 'a', function: { name: 'f', arguments: '{}' } }] }
  const rows = [
    ['stop', 'stop', 'calls'],
    ['length', 'length', 'length'],
    ['tool_calls', 'stop', 'calls'],
    ['function_call', 'stop', 'calls'],
    ['content_filter', 'filtered', 'filtered'],
    ['something_new', 'other', 'other'],
    ['constructor', 'other', 'other'],
    [null, 'other', 'other'],
    [5, 'other', 'other'],
  ] as const

  test.each(rows)('P37: %p is read as %p, and with tool calls as %p', (reason, plain, withCalls) => {
    expect(finishOf(reason)).toBe(plain)
    expect(finishOf(reason, withCall)).toBe(withCalls)
  })

  test('of a refusal is read as filtered', () => {
    expect(finishOf('stop', { refusal: 'no' })).toBe('filtered')
  })
})

test('P19: usage is read from all known fields, and invalid usage is not used', () => {
  const usage = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 }
  const [first] = deltasOf({ content: 'a' })
  const read = (...chunks: readonly object[]) => collectAnswer(eventsFrom(chunks)).usage
  expect(read(first!, { choices: [], usage })).toEqual({ input: 7, output: 5 })
  expect(read(first!, { choices: [{ index: 0, delta: {} }], usage })).toEqual({ input: 7, output: 5 })
  const early = { ...first, usage: { ...usage, completion_tokens: 1, total_tokens: 8 } }
  expect(read(early, { choices: [], usage })).toEqual({ input: 7, output: 5 })
  expect(read(first!, { choices: [], usage: { prompt_tokens: -1, completion_tokens: 5 } })).toBeUndefined()
})

test('an empty stream has a valid end', () => {
  expect(collectAnswer(eventsFrom([])).choices).toEqual([{ parts: [], finish: 'other' }])
  expect(collectAnswer(eventsFrom([null, 5, 'x', [], {}])).choices).toEqual([{ parts: [], finish: 'other' }])
})

describe('for anything that an upstream sends,', () => {
  const text = fc.constantFrom('', 'a', '{}', 'stop', 'tool_calls')
  const invalid = fc.oneof(text, fc.constantFrom(null, 0, 1, -1, 1.5, true, {}, []))
  const mostly = <T>(value: fc.Arbitrary<T>) =>
    fc.oneof({ weight: 4, arbitrary: value }, { weight: 1, arbitrary: invalid })
  const anyPiece = fc.record(
    {
      index: mostly(fc.nat(3)),
      id: mostly(fc.constantFrom('a', 'b', '')),
      type: invalid,
      function: mostly(
        fc.record({ name: mostly(fc.constantFrom('f', 'g')), arguments: invalid }, { requiredKeys: [] }),
      ),
      custom: fc.option(mostly(fc.record({ name: invalid, input: invalid })), { freq: 5, nil: undefined }),
      extra_content: mostly(fc.constant({ google: { thought_signature: 's' } })),
    },
    { requiredKeys: [] },
  )
  const fields = ['content', 'reasoning_content', 'reasoning', 'refusal', 'encrypted_content', 'annotations'] as const
  const delta = fc.record(
    {
      ...Object.fromEntries(fields.map(name => [name, invalid])),
      tool_calls: mostly(fc.array(mostly(anyPiece), { maxLength: 3 })),
      function_call: fc.option(mostly(fc.record({ name: invalid, arguments: invalid })), { freq: 5, nil: undefined }),
      images: mostly(fc.constant([{ image_url: { url: 'x' } }, null])),
      audio: mostly(fc.record({ data: invalid, transcript: invalid })),
    },
    { requiredKeys: [] },
  )
  const choice = fc.record(
    {
      index: mostly(fc.nat(2)),
      delta: mostly(delta),
      finish_reason: invalid,
      logprobs: mostly(fc.constant({ content: [1] })),
    },
    { requiredKeys: [] },
  )
  const chunk = mostly(
    fc.record(
      {
        id: invalid,
        model: invalid,
        created: invalid,
        choices: mostly(fc.array(mostly(choice))),
        usage: invalid,
        service_tier: invalid,
      },
      { requiredKeys: [] },
    ),
  )

  test('the events are in the right order, or the stream is refused', () => {
    const readings = new Readings()
    fc.assert(
      fc.property(fc.array(chunk, { maxLength: 8 }), chunks => readings.take(() => eventsFrom(chunks))),
      { numRuns: 1_000 },
    )
    expect(readings.read).toBeGreaterThan(0)
  })

  test('any JSON is read', () => {
    fc.assert(
      fc.property(fc.jsonValue(), json => {
        expect(eventsFrom([json])[0]?.kind).toBe('start')
        expect(readWholeAnswer(json, sourceOf())).toBeObject()
      }),
    )
  })
})
