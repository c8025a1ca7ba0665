// Compares the linked list with a plain array.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { ListNode } from './linked-list.ts'
import { LinkedList } from './linked-list.ts'

test('a linked list has the added values that were not removed, in order', () => {
  const steps = fc.array(fc.oneof(fc.constantFrom('add' as const, 'first' as const), fc.nat(50)), { maxLength: 200 })
  fc.assert(
    fc.property(steps, moves => {
      const list = new LinkedList<number>()
      const model: ListNode<number>[] = []
      moves.forEach((move, index) => {
        if (move === 'add') model.push(list.add(index))
        else if (move === 'first') model.unshift(list.addFirst(index))
        else if (model.length > 0) list.remove(model.splice(move % model.length, 1)[0]!)
        expect([...list]).toEqual(model.map(node => node.value))
        expect([list.size, list.first, list.last]).toEqual([model.length, model[0]?.value, model.at(-1)?.value])
      })
    }),
  )
})

test('the visited value of a linked list may be removed', () => {
  const list = new LinkedList<number>()
  const nodes = [1, 2, 3].map(value => list.add(value))
  const seen: number[] = []
  for (const value of list) {
    seen.push(value)
    list.remove(nodes[value - 1]!)
  }
  expect([seen, list.size]).toEqual([[1, 2, 3], 0])
})
