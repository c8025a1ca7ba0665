// Tests which conversations WebSockets remember: the last of each stream, within the bounds of an account and of all.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { bounds } from '../../base/bounds.ts'
import { TurnMemory } from './turn-memory.ts'

const MEMORY_BYTES = 16 * 4_000 // 4,000 bytes for all accounts, 1,000 for one
const sumOf = (sizes: readonly number[]): number => sizes.reduce((sum, size) => sum + size, 0)
const itemsOf = (bytes: number): Buffer => Buffer.alloc(bytes, 'x')

test('a stream remembers its last response', () => {
  const turns = new TurnMemory(MEMORY_BYTES).open(1)
  turns.remember('a', { responseId: 'r1', items: itemsOf(10) })
  turns.remember('b', { responseId: 'r2', items: itemsOf(20) })
  turns.remember('a', { responseId: 'r3', items: itemsOf(30) })
  expect(['r1', 'r2', 'r3'].map(id => turns.find(id)?.length)).toEqual([undefined, 20, 30])
})

test('an account that remembers too much forgets its own oldest conversation', () => {
  const memory = new TurnMemory(MEMORY_BYTES)
  const [other, one, two] = [memory.open(2), memory.open(1), memory.open(1)]
  other.remember('', { responseId: 'other', items: itemsOf(900) })
  one.remember('', { responseId: 'old', items: itemsOf(600) })
  two.remember('', { responseId: 'new', items: itemsOf(600) })
  expect([other.find('other'), one.find('old'), two.find('new')].map(items => items?.length)).toEqual([
    900,
    undefined,
    600,
  ])
})

test('all accounts together forget the oldest conversation', () => {
  const memory = new TurnMemory(MEMORY_BYTES)
  const connections = [1, 2, 3, 4, 5].map(accountId => memory.open(accountId))
  for (const turns of connections) turns.remember('', { responseId: 'r', items: itemsOf(900) })
  expect(connections.map(turns => turns.find('r') !== undefined)).toEqual([false, true, true, true, true])
})

test('a conversation that is too large for one is not remembered', () => {
  const turns = new TurnMemory(Number.MAX_SAFE_INTEGER).open(1)
  turns.remember('', { responseId: 'r', items: itemsOf(bounds.storedResponseBytesMax + 1) })
  expect(turns.find('r')).toBeUndefined()
})

test('whatever happens, the bytes are those of the remembered conversations, and within the bounds', () => {
  const step = fc.record({
    connection: fc.nat(5),
    stream: fc.constantFrom('', 'a', 'b'),
    bytes: fc.nat(1_200),
    action: fc.constantFrom('remember', 'remember', 'remember', 'close', 'forgetAll'),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), steps => {
      const memory = new TurnMemory(MEMORY_BYTES)
      const connections = [0, 1, 2, 3, 4, 5].map(at => memory.open(at % 3))
      const ids = new Set<string>()
      for (const [at, { connection, stream, bytes, action }] of steps.entries()) {
        const turns = connections[connection]!
        if (action === 'close') turns.close()
        else if (action === 'forgetAll') memory.forgetAll()
        else turns.remember(stream, { responseId: `r${at}`, items: itemsOf(bytes) })
        ids.add(`r${at}`)
        const sizes = connections.map(one => sumOf([...ids].map(id => one.find(id)?.length ?? 0)))
        const total = sumOf(sizes)
        expect(memory.bytes).toBe(total)
        expect(total).toBeLessThanOrEqual(4_000)
        for (const account of [0, 1, 2]) {
          expect(sumOf(sizes.filter((_size, index) => index % 3 === account))).toBeLessThanOrEqual(1_000)
        }
      }
      memory.forgetAll()
      expect(memory.bytes).toBe(0)
    }),
  )
})
