// Tests the ids of tool calls in chat requests.

import { describe, expect, test } from 'bun:test'
import type { ConversationMessage } from '../neutral/conversation.ts'
import { ChatCallIds } from './call-ids.ts'

const turnsOf = (ids: readonly string[]): ConversationMessage[] =>
  ids.map(id => ({ role: 'assistant', parts: [{ kind: 'call', id, name: 'f', arguments: '{}' }] }))

const written = (ids: readonly string[], chars?: number): readonly string[] => {
  const callIds = new ChatCallIds(turnsOf(ids), chars)
  return ids.map(id => callIds.write(id))
}

describe('an id', () => {
  test('of up to 40 characters stays, and a longer one becomes a hash', () => {
    const [short, long, again] = written(['call_1', 'x'.repeat(41), 'x'.repeat(41)])
    expect([short, long]).toEqual(['call_1', expect.stringMatching(/^call_[0-9a-f]{32}$/)])
    expect(again).toBe(long!)
    expect(written(['y'.repeat(40)])).toEqual(['y'.repeat(40)])
  })

  test('has the form that the provider prescribes', () => {
    const ids = ['D681PevKs', 'call_1', 'call-1234', '123456789', '', '日本語', 'abcdefghij']
    const results = written(ids, 9)
    for (const id of results) expect(id).toMatch(/^[a-zA-Z0-9]{9}$/)
    expect([results[0], results[3], new Set(results).size]).toEqual(['D681PevKs', '123456789', ids.length])
    expect(written(ids.slice(0, 2), 9)).toEqual(results.slice(0, 2))
  })

  test('is not the id of another call of the request, which comes later and stays', () => {
    const [hash] = written(['call_1'], 9)
    const results = written(['call_1', hash!], 9)
    expect(results[1]).toBe(hash!)
    expect(results[0]).not.toBe(hash!)
    const callIds = new ChatCallIds(turnsOf(['call_1', hash!]), 9)
    expect([callIds.write('call_1'), callIds.write('call_1')]).toEqual([results[0]!, results[0]!])
  })
})
