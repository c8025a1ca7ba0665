// Pieces of a stream that are merged: hostile ones are refused before they cost much time or memory.

import { expect, test } from 'bun:test'
import { Refusal } from '../../base/errors.ts'
import { protocols } from '../protocols.ts'
import type { Json } from '../request/json-type.ts'
import { Losses } from './losses.ts'
import { ENTRIES_MAX, mergePiece, replaceFields } from './merge-pieces.ts'

const many = Array.from({ length: ENTRIES_MAX + 1 }, (_, index) => index)
const target = {
  requestId: 'r',
  model: 'p/m',
  createdS: 1,
  wantsUsage: true,
  choices: 1,
  json: {},
  losses: new Losses(),
}

const follow = (dialect: keyof typeof protocols, events: readonly unknown[], keepsContent = false) => {
  const follower = protocols[dialect].codec!.followStream({ ...target }, keepsContent)
  for (const event of events) follower.follow(event)
  return follower
}

test('a list with too many entries is refused', () => {
  expect(() => mergePiece({}, { list: many.map(index => ({ index })) })).toThrow(Refusal)
})

test('too many fields are refused, in one piece or in many', () => {
  expect(() => replaceFields({}, Object.fromEntries(many.map(name => [`f${name}`, 1])))).toThrow(Refusal)
  for (const dialect of ['openai-chat', 'gemini'] as const) {
    expect(() =>
      follow(
        dialect,
        many.map(name => ({ [`f${name}`]: 1 })),
      ),
    ).toThrow(Refusal)
  }
})

test('too many calls of tools, blocks and items are refused', () => {
  const calls = many.map(index => ({ index, id: `c${index}`, function: { name: 'f', arguments: '' } }))
  expect(() => follow('openai-chat', [{ choices: [{ index: 0, delta: { tool_calls: calls } }] }])).toThrow(Refusal)
  const blocks = Array.from({ length: 5_000 }, (_, index) => ({
    type: 'content_block_start',
    index,
    content_block: { type: 'text', text: '' },
  }))
  expect(() => follow('anthropic-messages', blocks)).toThrow(Refusal)
  const items = Array.from({ length: 5_000 }, (_, at) => ({
    type: 'response.output_item.added',
    output_index: at,
    item: { type: 'message', content: [] },
  }))
  expect(() => follow('openai-responses', items)).toThrow(Refusal)
})

test('a whole message at the end of a chat stream does not double its pieces', () => {
  const call = { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }
  const whole = { role: 'assistant', content: 'Hi', name: 'Vendor', tool_calls: [call] }
  const events = [
    { choices: [{ index: 0, delta: { role: 'assistant', content: 'H' } }] },
    { choices: [{ index: 0, delta: { content: 'i', tool_calls: [call] } }] },
    { choices: [{ index: 0, message: whole, finish_reason: 'tool_calls' }] },
  ]
  const { index: _index, ...written } = call
  const message = { ...whole, tool_calls: [written] }
  for (const list of [events, events.slice(2)]) {
    expect(follow('openai-chat', list, true).answer().choices).toEqual([
      { index: 0, message, finish_reason: 'tool_calls' },
    ])
  }
})

const wholeCall = (name: string, text: string) => ({ type: 'function', function: { name, arguments: text } })

const parallelCalls: readonly (readonly [string, readonly object[]])[] = [
  [
    'the same index and no ids',
    [wholeCall('f', '{"x":1}'), wholeCall('g', '{"y":2}')].map(call => ({ index: 0, ...call })),
  ],
  [
    'the same index, no ids and the same name',
    [wholeCall('f', '{"x":1}'), wholeCall('f', '{"y":2}')].map(call => ({ index: 0, ...call })),
  ],
  ['neither indexes nor ids', [wholeCall('f', '{"x":1}'), wholeCall('g', '{"y":2}')]],
  [
    'indexes that are texts',
    [
      { index: '0', ...wholeCall('f', '{"x"') },
      { index: '1', ...wholeCall('g', '{"y"') },
      { index: '0', function: { arguments: ':1}' } },
      { index: '1', function: { arguments: ':2}' } },
    ],
  ],
]

test.each(parallelCalls)('parallel calls are kept apart, although they have %s', (_what, pieces) => {
  const events = pieces.map(piece => ({ choices: [{ index: 0, delta: { tool_calls: [piece] } }] }))
  const [choice] = follow('openai-chat', events, true).answer().choices as readonly Json[]
  const calls = (choice!.message as { tool_calls: readonly { function: Json }[] }).tool_calls
  expect(calls.map(call => call.function.arguments)).toEqual(['{"x":1}', '{"y":2}'])
})

test('details of reasoning of several types are kept apart, although they have the same index', () => {
  const text = { type: 'reasoning.text', index: 0, text: 'Let ' }
  const sealed = { type: 'reasoning.encrypted', index: 0, data: 'x' }
  const summary = { type: 'reasoning.summary', index: 0, summary: 'Sum' }
  const pieces = [text, sealed, summary, { ...text, text: 'me' }, { ...summary, summary: 'med' }, { index: 0, id: 's' }]
  const events = pieces.map(piece => ({ choices: [{ index: 0, delta: { reasoning_details: [piece] } }] }))
  expect(follow('openai-chat', events, true).answer().choices).toMatchObject([
    {
      message: {
        reasoning_details: [
          { ...text, text: 'Let me' },
          sealed,
          // A piece without a type continues the last one.
          { ...summary, summary: 'Summed', id: 's' },
        ],
      },
    },
  ])
})

test('blocks of Anthropic that have the same index are all kept', () => {
  const block = (content_block: object, delta: object) => [
    { type: 'content_block_start', index: 0, content_block },
    { type: 'content_block_delta', index: 0, delta },
    { type: 'content_block_stop', index: 0 },
  ]
  const events = [
    { type: 'message_start', message: { id: 'm', type: 'message', role: 'assistant', model: 'x', content: [] } },
    ...block({ type: 'thinking', thinking: '', signature: 's' }, { type: 'thinking_delta', thinking: 'hm' }),
    ...block({ type: 'text', text: '' }, { type: 'text_delta', text: 'Hi' }),
    { type: 'message_delta', delta: { stop_reason: 'end_turn' } },
  ]
  expect(follow('anthropic-messages', events, true).answer().content).toMatchObject([
    { type: 'thinking', thinking: 'hm' },
    { type: 'text', text: 'Hi' },
  ])
})

test('the probabilities of tokens, which are many times as large as the text, are kept only for a collected answer', () => {
  const logprobs = [{ token: 'a', logprob: -1, top_logprobs: [] }]
  const events = [
    { type: 'response.output_item.added', output_index: 0, item: { id: 'm', type: 'message', content: [] } },
    { type: 'response.output_text.delta', output_index: 0, content_index: 0, item_id: 'm', delta: 'a', logprobs },
  ]
  const end = (keepsContent: boolean): string =>
    follow('openai-responses', events, keepsContent).endEarly({ input: 1, output: 1 })
  expect([end(false).includes('"logprob":-1'), end(true).includes('"logprob":-1')]).toEqual([false, true])
})
