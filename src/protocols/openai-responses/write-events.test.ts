// Tests writing responses, whole and as a stream, and that both are the same.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { accumulateResponse } from 'openai/lib/responses/ResponseAccumulator'
import type { Response, ResponseStreamEvent } from 'openai/resources/responses/responses'
import { anyAnswer, anyEvents } from '../../../test/support/answers.ts'
import { assertCompleteStream } from '../../../test/support/complete-stream.ts'
import { expectCheap } from '../../../test/support/cpu.ts'
import type { Wire } from '../../../test/support/responses-wire.ts'
import { answerTargetOf, eventsOfSse, source } from '../../../test/support/responses-wire.ts'
import type { Answer, AnswerEvent, AnswerPart, Finish } from '../neutral/answer.ts'
import { collectAnswer, toEvents } from '../neutral/answer-collector.ts'
import { packReasoningState, unpackReasoningState } from '../neutral/reasoning-state.ts'
import type { AnswerTarget } from '../protocol.ts'
import { protocols } from '../protocols.ts'
import { buildResponseId } from './response-object.ts'

const { codec } = protocols['openai-responses']

function streamed(events: Iterable<AnswerEvent>, target: AnswerTarget = answerTargetOf()): readonly Wire[] {
  const writer = codec.openEventWriter(target)
  let sse = ''
  for (const event of events) sse += writer.write(event)
  return eventsOfSse(sse + writer.end())
}

const plainAnswer = (answer: Answer, target: AnswerTarget = answerTargetOf()): Wire =>
  JSON.parse(codec.writeWholeAnswer(answer, target)) as Wire

const answerOf = (parts: readonly AnswerPart[], finish: Finish = 'stop'): Answer => ({
  choices: [{ parts, finish }],
  usage: { input: 40, cacheRead: 60, output: 30, reasoning: 10 },
  serviceClass: 'default',
})

const finalOf = (events: readonly Wire[]): Wire => events.at(-1)!.response as Wire
const call: AnswerPart = { kind: 'call', id: 'call_a', name: 'f', arguments: '{"a":1}' }

/** Checks sequence numbers, item lifecycles and positions as the strictest official SDK does. */
function checkLegal(events: readonly Wire[]): void {
  expect(events.map(event => event.sequence_number)).toEqual(events.map((_, index) => index))
  expect(events.slice(0, 2).map(({ type }) => type)).toEqual(['response.created', 'response.in_progress'])
  let snapshot: Response | undefined
  const open = new Set<unknown>()
  for (const event of events.slice(0, -1)) {
    snapshot = accumulateResponse(event as unknown as ResponseStreamEvent, snapshot)
    const { id } = (event.item ?? {}) as Wire
    if (event.type === 'response.output_item.added') open.add(id)
    else if (event.type === 'response.output_item.done') expect(open.delete(id)).toBe(true)
    else if (event.item_id !== undefined) expect(open.has(event.item_id)).toBe(true)
  }
  expect(open.size).toBe(0)
  const final = finalOf(events)
  expect(snapshot!.output as unknown).toEqual(final.output)
  expect(snapshot!.id).toBe(final.id as string)
  for (const event of events) expect(event.response === undefined || checkBody(event.response as Wire)).toBe(true)
}

/** P6: fields that Rust and Python SDKs require. */
function checkBody(body: Wire): boolean {
  expect(body).toMatchObject({ object: 'response', error: null, text: { format: {} }, parallel_tool_calls: true })
  for (const field of ['id', 'model', 'created_at', 'status', 'output', 'tools', 'tool_choice', 'metadata', 'usage']) {
    expect(body).toHaveProperty(field)
  }
  return true
}

describe('a stream', () => {
  test('P5: starts and ends each item and each part, and P6: numbers all events from 0', () => {
    const parts: readonly AnswerPart[] = [
      { kind: 'reasoning', text: 'think', sealed: { origin: 'o', form: 'encrypted', value: 'gA', id: 'rs_x' } },
      { kind: 'text', text: 'Hello', citations: [{ url: 'https://a.example', title: 't' }] },
      { ...call, sealed: { origin: 'o', form: 'thought', value: 'sig' } },
    ]
    const events = streamed(toEvents(answerOf(parts, 'calls')))
    checkLegal(events)
    expect(events.map(({ type }) => String(type).replace('response.', ''))).toEqual([
      ...['created', 'in_progress', 'output_item.added', 'reasoning_summary_part.added'],
      ...['reasoning_summary_text.delta', 'reasoning_summary_text.done', 'reasoning_summary_part.done'],
      ...['output_item.done', 'output_item.added', 'content_part.added', 'output_text.delta'],
      ...['output_text.annotation.added', 'output_text.done', 'content_part.done', 'output_item.done'],
      ...['output_item.added', 'function_call_arguments.delta', 'function_call_arguments.done', 'output_item.done'],
      ...['output_item.added', 'output_item.done', 'completed'],
    ])
  })

  test('P5: of a call alone has no message', () => {
    const events = streamed(toEvents(answerOf([{ kind: 'text', text: '' }, call], 'calls')))
    checkLegal(events)
    expect((finalOf(events).output as Wire[]).map(({ type }) => type)).toEqual(['function_call'])
  })

  test('is valid for any valid events', () => {
    fc.assert(
      fc.property(anyEvents(1), events => {
        assertCompleteStream(events)
        checkLegal(streamed(events))
      }),
    )
  })

  test('ends with the same object as the plain answer', () => {
    fc.assert(
      fc.property(anyAnswer(1), answer => {
        expect(finalOf(streamed(toEvents(answer)))).toEqual(plainAnswer(answer))
      }),
    )
  })

  test('contains only the first choice', () => {
    fc.assert(
      fc.property(anyEvents(3), events => {
        const target = answerTargetOf()
        checkLegal(streamed(events, target))
        const hasMoreChoices = events.some(event => 'choice' in event && event.choice > 0)
        expect(target.losses.codes.includes('choices')).toBe(hasMoreChoices)
      }),
    )
  })

  test('interleaves parts that are open at the same time', () => {
    const events: readonly AnswerEvent[] = [
      { kind: 'start' },
      { kind: 'open', index: 0, choice: 0, part: 'call', id: 'a', name: 'f' },
      { kind: 'open', index: 1, choice: 0, part: 'call', id: 'b', name: 'g', custom: true },
      { kind: 'delta', index: 1, text: 'x' },
      { kind: 'delta', index: 0, text: '{}' },
      { kind: 'delta', index: 1, text: 'y' },
      { kind: 'close', index: 0 },
      { kind: 'close', index: 1 },
      { kind: 'finish', choice: 0, finish: 'calls' },
    ]
    const stream = streamed(events)
    checkLegal(stream)
    expect(finalOf(stream).output).toMatchObject([
      { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}', status: 'completed' },
      { type: 'custom_tool_call', call_id: 'b', name: 'g', input: 'xy', status: 'completed' },
    ])
  })

  test('makes repeated call ids unique', () => {
    const stream = streamed(toEvents(answerOf([call, call])))
    checkLegal(stream)
    expect((finalOf(stream).output as Wire[]).map(item => item.call_id)).toEqual(['call_a', 'call_a_2'])
  })

  test('with many deltas is written fast enough, each delta once until the end', async () => {
    await expectCheap(2_000, () => {
      const writer = codec.openEventWriter(answerTargetOf())
      writer.write({ kind: 'start' })
      writer.write({ kind: 'open', index: 0, choice: 0, part: 'text' })
      let longest = 0
      for (let count = 0; count < 50_000; count++) {
        longest = Math.max(longest, writer.write({ kind: 'delta', index: 0, text: 'piece' }).length)
      }
      writer.write({ kind: 'close', index: 0 })
      expect(writer.end().length).toBeGreaterThan(250_000)
      expect(longest).toBeLessThan(1_000)
    })
  })

  test('that is too long is refused', () => {
    const writer = codec.openEventWriter(answerTargetOf())
    writer.write({ kind: 'open', index: 0, choice: 0, part: 'text' })
    const text = 'x'.repeat(8 * 1024 * 1024)
    const write = (): string => writer.write({ kind: 'delta', index: 0, text })
    for (let count = 0; count < 4; count++) write()
    expect(write).toThrow('answer_too_large')
  })
})

describe('a plain answer', () => {
  test.each([
    ['stop', 'completed', null],
    ['stop_sequence', 'completed', null],
    ['calls', 'completed', null],
    ['other', 'incomplete', { reason: 'max_output_tokens' }],
    ['paused', 'incomplete', { reason: 'max_output_tokens' }],
    ['malformed', 'incomplete', { reason: 'max_output_tokens' }],
    ['length', 'incomplete', { reason: 'max_output_tokens' }],
    ['context', 'incomplete', { reason: 'max_output_tokens' }],
    ['filtered', 'incomplete', { reason: 'content_filter' }],
  ] as const)('that ended with %s is %s', (finish, status, details) => {
    const answer = answerOf([{ kind: 'text', text: 'x' }], finish)
    expect(plainAnswer(answer)).toMatchObject({ status, incomplete_details: details })
    const events = streamed(toEvents(answer))
    expect(events.at(-1)!.type).toBe(`response.${status}`)
    expect(finalOf(events).incomplete_details).toEqual(details)
  })

  test('with a refusal is complete', () => {
    const answer = answerOf([{ kind: 'refusal', text: 'no' }], 'filtered')
    const message = { type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: 'no' }] }
    expect(plainAnswer(answer)).toMatchObject({ status: 'completed', output: [message] })
    expect(finalOf(streamed(toEvents(answer)))).toMatchObject({ status: 'completed', output: [message] })
  })

  test('repeats the request, without credentials', () => {
    const tools = [
      { type: 'function', name: 'f' },
      { type: 'mcp', server_label: 's', authorization: 'secret', headers: { k: 'secret' } },
    ]
    const json = {
      model: 'p/m',
      input: 'hi',
      instructions: 'be',
      temperature: 0.5,
      tools,
      metadata: { a: 'b' },
      store: false,
      text: { format: { type: 'json_object' } },
      reasoning: { effort: 'low' },
      conversation: 'conv_1',
      user: 'u',
    }
    const body = plainAnswer(answerOf([]), answerTargetOf({ json }))
    expect(body).toMatchObject({
      id: buildResponseId('req_0123456789a'),
      model: 'p/m',
      created_at: 1_763_000_000,
      instructions: 'be',
      temperature: 0.5,
      metadata: { a: 'b' },
      store: false,
      user: 'u',
      conversation: { id: 'conv_1' },
      text: { format: { type: 'json_object' }, verbosity: 'medium' },
      reasoning: { effort: 'low', summary: null },
      tools: [
        { type: 'function', name: 'f', parameters: null, strict: null },
        { type: 'mcp', server_label: 's' },
      ],
      usage: {
        input_tokens: 100,
        input_tokens_details: { cached_tokens: 60, cache_write_tokens: 0 },
        output_tokens: 40,
        output_tokens_details: { reasoning_tokens: 10 },
        total_tokens: 140,
      },
    })
    expect(JSON.stringify(body)).not.toContain('secret')
    expect(body.id).toBe('resp_0123456789a')
  })

  test('records its losses', () => {
    const target = answerTargetOf()
    const parts: readonly AnswerPart[] = [
      { kind: 'audio', source: { at: 'inline', base64: 'AA', mime: 'audio/wav' } },
      { kind: 'native', dialect: 'gemini', what: 'executable_code', value: {} },
      { kind: 'text', text: 'x', citations: [{ citedText: 'no address' }] },
    ]
    plainAnswer(
      {
        choices: [
          { parts, finish: 'paused' },
          { parts: [], finish: 'stop' },
        ],
      },
      target,
    )
    const lost = ['audio', 'choices', 'citations', 'executable_code', 'finish_reason.paused']
    expect([...target.losses.codes].sort()).toEqual(lost)
  })

  const imageOf = (mime: string, base64 = 'AAAA'): AnswerPart => ({
    kind: 'image',
    source: { at: 'inline', base64, mime },
  })

  test.each([
    ['image/png', 'png'],
    ['image/webp', 'webp'],
    ['image/jpeg', 'jpeg'],
    ['image/gif', 'gif'],
    ['image/svg+xml', 'svg'],
  ])('has an image of the type %s as a generated image in the format %s', (mime, format) => {
    const target = answerTargetOf()
    const written = plainAnswer(answerOf([imageOf(mime)]), target)
    expect(written.output).toMatchObject([{ type: 'image_generation_call', result: 'AAAA', output_format: format }])
    expect(target.losses.codes).toEqual([])
    expect(codec.readWholeAnswer(written, source()).choices[0]!.parts).toEqual([imageOf(mime)])
  })

  test('has an image in the format of its bytes, and without a format if there is none for its type', () => {
    const [jpeg, other] = [imageOf('image/png', '/9j/4AAQSkZJRgABAQ=='), imageOf('image/avif')]
    const target = answerTargetOf()
    expect(plainAnswer(answerOf([jpeg]), target).output).toMatchObject([{ output_format: 'jpeg' }])
    expect(target.losses.codes).toEqual([])
    const [item] = plainAnswer(answerOf([other]), target).output as Wire[]
    expect([item!.result, item!.output_format]).toEqual(['AAAA', undefined])
    expect(target.losses.codes).toEqual(['image.type'])
  })
})

describe('a written answer', () => {
  // The parts are limited to what this dialect can express: no empty parts, calls with arguments, packed state.
  test('is the same when it is read again', () => {
    const sealed = { origin: 'o', form: 'signature', value: 'Er+/=' } as const
    const parts: readonly AnswerPart[] = [
      { kind: 'reasoning', text: 'raw thought', raw: true },
      { kind: 'reasoning', text: 'thought', sealed },
      { kind: 'text', text: 'Hello', logprobs: [{ token: 'Hello', logprob: -0.5, bytes: [72], top: [] }] },
      { kind: 'refusal', text: 'no' },
      call,
      { ...call, id: 'call_b', custom: true, arguments: 'free' },
    ]
    const answer = answerOf(parts, 'calls')
    const reader = codec.openEventReader(source())
    const events = streamed(toEvents(answer)).flatMap(event => reader.read(event))
    const all = [...events, ...reader.end()]
    assertCompleteStream(all)
    const collected = collectAnswer(all)
    expect(collected).toEqual(codec.readWholeAnswer(plainAnswer(answer), source()))
    const unpacked = collected.choices[0]!.parts.map(part => {
      if (part.kind !== 'reasoning' || part.sealed === undefined) return part
      return { ...part, sealed: unpackReasoningState(part.sealed.value)! }
    })
    expect<unknown>({ ...collected.choices[0], parts: unpacked }).toEqual({ parts, finish: 'calls' })
    expect(collected.usage).toEqual(answer.usage!)
  })

  test('carries reasoning state with its origin', () => {
    const sealed = { origin: 'o', form: 'redacted', value: 'x' } as const
    const body = plainAnswer(
      answerOf([
        { kind: 'reasoning', text: '', sealed },
        { ...call, sealed },
      ]),
    )
    expect(body.output).toMatchObject([
      { type: 'reasoning', summary: [], encrypted_content: packReasoningState(sealed) },
      { type: 'function_call' },
      { type: 'reasoning', summary: [], encrypted_content: packReasoningState({ ...sealed, id: 'call_a' }) },
    ])
  })
})
