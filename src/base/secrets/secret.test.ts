// A secret always prints as [secret].

import { expect, test } from 'bun:test'
import { format, inspect } from 'node:util'
import { Secret } from './secret.ts'

const canary = 'sk-canary-0123456789'
const secret = new Secret(canary)

test.each<[string, () => string]>([
  ['String', () => String(secret)],
  ['a template', () => `${secret}`],
  ['concatenation', () => `${secret}`],
  ['JSON', () => JSON.stringify({ deep: [{ secret }] })],
  ['inspect', () => inspect({ deep: { secret } }, { showHidden: true, depth: 9 })],
  ['format', () => format('%s %o %j', secret, secret, secret)],
  ['Bun.inspect', () => Bun.inspect({ secret })],
  ['its fields', () => JSON.stringify([Object.entries(secret), Object.getOwnPropertyNames(secret), { ...secret }])],
  ['a clone', () => inspect(structuredClone({ ...secret }))],
  ['an error', () => new Error(`failed with ${secret}`).stack ?? ''],
])('%s does not show it', (_, print) => {
  expect(print()).not.toContain(canary)
})

test('shows that there is a secret', () => {
  expect([String(secret), JSON.stringify(secret), inspect(secret)]).toEqual(['[secret]', '"[secret]"', '[secret]'])
})

test('only reveal() returns the text', () => {
  expect(secret.reveal()).toBe(canary)
})

test('scrub removes every occurrence, and takes it literally', () => {
  expect(secret.scrub(`a ${canary} b ${canary}${canary}`)).toBe('a [secret] b [secret][secret]')
  expect(new Secret('a.c').scrub('abc a.c')).toBe('abc [secret]')
  expect(new Secret('x').scrub('x$&x')).toBe('[secret]$&[secret]')
})

test('an empty secret leaves a text alone', () => {
  expect(new Secret('').scrub('as it was')).toBe('as it was')
})
