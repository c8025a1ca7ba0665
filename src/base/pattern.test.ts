// Patterns against a regular expression that says the same.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { matchesPattern } from './pattern.ts'

const meant = (pattern: string, name: string): boolean =>
  new RegExp(`^${pattern.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '[^]*')}$`).test(name)

test.each([
  ['*', '', true],
  ['', '', true],
  ['', 'a', false],
  ['openai/*', 'openai/gpt-4o', true],
  ['openai/*', 'openai', false],
  ['openai/gpt-4o', 'openai/gpt-4o', true],
  ['openai/gpt-4o', 'openai/gpt-4o-mini', false],
  ['a*a', 'a', false],
  ['a*a', 'aa', true],
  ['*ab*ab*', 'ab', false],
  ['*ab*ab*', 'abab', true],
  ['a*b*b', 'ab', false],
  ['a.c*', 'abc', false],
  ["%_'*", "%_'; DROP", true],
])('%s and %s: %p', (pattern, name, fits) => {
  expect([matchesPattern(pattern, name), meant(pattern, name)]).toEqual([fits, fits])
})

test('any pattern means what its regular expression does', () => {
  const pattern = fc.string({ unit: fc.constantFrom('a', 'b', '*', '.'), maxLength: 8 })
  const name = fc.string({ unit: fc.constantFrom('a', 'b', '.', '\n'), maxLength: 12 })
  fc.assert(
    fc.property(pattern, name, (one, other) => {
      expect(matchesPattern(one, other)).toBe(meant(one, other))
    }),
    { numRuns: 5_000 },
  )
})

test('a pattern of many stars takes no longer than its length', () => {
  expect(matchesPattern(`${'*a'.repeat(120)}*b`, 'a'.repeat(100_000))).toBe(false)
})
