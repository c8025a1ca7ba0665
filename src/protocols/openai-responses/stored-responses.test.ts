// Tests the items and bodies of stored responses.

import { describe, expect, test } from 'bun:test'
import { Refusal } from '../../base/errors.ts'
import type { Json } from '../request/json-type.ts'
import {
  listInputItems,
  readInputTokens,
  writeCompaction,
  writeDeleted,
  writeInputTokens,
  writePage,
} from './stored-responses.ts'

const ids = (items: readonly Json[]): readonly unknown[] => items.map(({ id }) => id)

describe('the items of an input', () => {
  test('have ids and their long form', () => {
    expect(listInputItems({ input: 'hi' }, 'req_1')).toEqual([
      {
        id: 'msg_req10000',
        type: 'message',
        role: 'user',
        status: 'completed',
        content: [{ type: 'input_text', text: 'hi' }],
      },
    ])
    const input = [
      { role: 'assistant', content: 'ok' },
      { type: 'function_call', id: 'fc_own', call_id: 'c', name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c', output: 'done' },
      { type: 'computer_call' },
    ]
    const items = listInputItems({ input }, 'req_1')
    expect(ids(items)).toEqual(['msg_req10000', 'fc_own', 'fco_req10002', 'item_req10003'])
    expect(items[0]!.content).toEqual([{ type: 'output_text', text: 'ok', annotations: [] }])
    expect(listInputItems({}, 'req_1')).toEqual([])
    expect(() => listInputItems({ input: [5] }, 'req_1')).toThrow(Refusal)
  })
})

describe('the body', () => {
  const items = ['a', 'b', 'c'].map(id => ({ id }))
  const page = (after: string | undefined, limit: number, order: 'asc' | 'desc') =>
    JSON.parse(writePage(items, { after, limit, order })) as Json

  test.each([
    [undefined, 2, 'asc', { data: [{ id: 'a' }, { id: 'b' }], first_id: 'a', last_id: 'b', has_more: true }],
    ['b', 2, 'asc', { data: [{ id: 'c' }], first_id: 'c', last_id: 'c', has_more: false }],
    [undefined, 20, 'desc', { data: [{ id: 'c' }, { id: 'b' }, { id: 'a' }], has_more: false }],
    ['c', 1, 'desc', { data: [{ id: 'b' }], has_more: true }],
    ['a', 5, 'desc', { data: [], first_id: null, last_id: null, has_more: false }],
  ] as const)('of a page after %p with %i items, %s', (...[after, limit, order, expected]) => {
    expect<unknown>(page(after, limit, order)).toMatchObject({ object: 'list', ...expected })
  })

  test('of a page after an unknown item is refused', () => {
    expect(() => page('z', 1, 'asc')).toThrow(Refusal)
  })

  test('of the endpoints that delete, count and compact is written and read', () => {
    expect(JSON.parse(writeDeleted('resp_1'))).toEqual({ id: 'resp_1', object: 'response', deleted: true })
    expect(readInputTokens(JSON.parse(writeInputTokens(5)))).toBe(5)
    expect([readInputTokens(null), readInputTokens({ input_tokens: -1 })]).toEqual([undefined, undefined])
    const usage = { input: 3, output: 1 }
    const body = JSON.parse(
      writeCompaction({ requestId: 'req_1', createdS: 9, userMessages: [{ id: 'msg_1' }], content: 'sealed', usage }),
    ) as Json
    expect(body).toMatchObject({
      id: 'resp_1',
      object: 'response.compaction',
      created_at: 9,
      usage: { total_tokens: 4 },
    })
    expect(body.output).toMatchObject([{ id: 'msg_1' }, { type: 'compaction', encrypted_content: 'sealed' }])
  })
})
