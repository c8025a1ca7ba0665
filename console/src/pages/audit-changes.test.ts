import { expect, test } from 'bun:test'
import { changesLine, changesOf, prettyValue } from './audit-changes.ts'

test('two values are a change, one value is a detail', () => {
  expect(changesOf({ name: ['a', 'b'], tier: [null, 'pro'], amount: '5', tags: ['x', 'y', 'z'] })).toEqual([
    { field: 'name', before: 'a', after: 'b' },
    { field: 'tier', before: '–', after: 'pro' },
    { field: 'amount', after: '5' },
    { field: 'tags', after: '["x","y","z"]' },
  ])
  expect(changesOf({})).toEqual([])
  expect(changesLine({ disabled: [false, true], tier: [null, 'pro'], end: [null, null], amount: '5' })).toBe(
    'disabled: false → true, tier: pro, amount: 5',
  )
})

test('JSON is shown on several lines, other texts as they are', () => {
  expect(prettyValue('{"a":[1]}')).toBe('{\n  "a": [\n    1\n  ]\n}')
  expect(prettyValue('{no json')).toBe('{no json')
  expect(prettyValue('pro')).toBe('pro')
})
