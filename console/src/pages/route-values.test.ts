import { expect, test } from 'bun:test'
import { shareOf, sortedMembers, stepsOf } from './route-values.ts'

const members = [
  { model: 'c', priority: 1, weight: 5 },
  { model: 'a', priority: 0, weight: 3 },
  { model: 'b', priority: 0, weight: 1 },
]

test('members stand in the order of their steps', () => {
  expect(sortedMembers(members).map(({ model }) => model)).toEqual(['a', 'b', 'c'])
  expect(stepsOf(members).map(step => step.map(({ model }) => model))).toEqual([['a', 'b'], ['c']])
  expect(stepsOf([])).toEqual([])
})

test('a share counts among the members of the same step', () => {
  expect(members.map((_, at) => shareOf(members, at))).toEqual([1, 0.75, 0.25])
})

test('without any weight all have the same share', () => {
  const none = members.map(member => ({ ...member, weight: 0 }))
  expect(none.map((_, at) => shareOf(none, at))).toEqual([1, 0.5, 0.5])
})
