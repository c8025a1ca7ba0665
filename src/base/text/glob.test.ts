import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { matchesGlob } from './glob.ts'

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

test.each([
  ['openai/gpt-x', 'openai/gpt-x', true],
  ['openai/gpt-x', 'openai/gpt-xy', false],
  ['*', '', true],
  ['*', 'a/b/c', true],
  ['openai/*', 'openai/', true],
  ['openai/*', 'open', false],
  ['*/gpt-*', 'azure/gpt-x', true],
  ['*-mini', 'openai/gpt-mini', true],
  ['ab*ba', 'aba', false],
  ['ab*ba', 'abba', true],
  ['a**b', 'ab', true],
  ['a*b*c', 'abbc', true],
  ['a*bc*c', 'abc', false],
  ['', '', true],
  ['', 'a', false],
])('the pattern %s matches %s: %p', (pattern, name, expected) => {
  expect(matchesGlob(pattern, name)).toBe(expected)
})

describe('any pattern', () => {
  const letters = fc.string({ unit: fc.constantFrom('a', 'b', '*', '.'), maxLength: 12 })

  test('matches like the equivalent regular expression', () => {
    fc.assert(
      fc.property(letters, letters, (pattern, name) => {
        const expression = new RegExp(`^${pattern.split('*').map(escaped).join('.*')}$`, 's')
        expect(matchesGlob(pattern, name)).toBe(expression.test(name))
      }),
      { numRuns: 5_000 },
    )
  })

  test('is fast for adversarial patterns', () => {
    const name = 'a'.repeat(256)
    for (let round = 0; round < 1_000; round++) expect(matchesGlob(`${'a*'.repeat(127)}b`, name)).toBe(false)
  })
})
