// The linked list against a plain array.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { ListNode } from './linked-list.ts'
import { LinkedList } from './linked-list.ts'

test('contains what was added and not removed, in order', () => {
  const steps = fc.array(fc.oneof(fc.constantFrom('add' as const, 'first' as const), fc.nat(50)), { maxLength: 200 })
  fc.assert(
    fc.property(steps, moves => {
      const ring = new LinkedList<number>()
      const model: ListNode<number>[] = []
      moves.forEach((move, at) => {
        if (move === 'add') model.push(ring.add(at))
        else if (move === 'first') model.unshift(ring.addFirst(at))
        else if (model.length > 0) ring.remove(model.splice(move % model.length, 1)[0]!)
        expect([...ring]).toEqual(model.map(place => place.value))
        expect([ring.size, ring.first, ring.last]).toEqual([model.length, model[0]?.value, model.at(-1)?.value])
      })
    }),
  )
})

test('the visited element may be removed', () => {
  const ring = new LinkedList<number>()
  const places = [1, 2, 3].map(value => ring.add(value))
  const seen: number[] = []
  for (const value of ring) {
    seen.push(value)
    ring.remove(places[value - 1]!)
  }
  expect([seen, ring.size]).toEqual([[1, 2, 3], 0])
})
