// Tests that a secret always prints as [secret].

import { expect, test } from 'bun:test'
import { format, inspect } from 'node:util'
import { Secret } from './secret.ts'

const canary = 'sk-canary-0123456789'
const secret = new Secret(canary)

test.each<[string, () => string]>([
  ['String', () => String(secret)],
  ['a template', () => `${secret}`],
  ['JSON', () => JSON.stringify({ deep: [{ secret }] })],
  ['inspect', () => inspect({ deep: { secret } }, { showHidden: true, depth: 9 })],
  ['format', () => format('%s %o %j', secret, secret, secret)],
  ['Bun.inspect', () => Bun.inspect({ secret })],
  ['its fields', () => JSON.stringify([Object.entries(secret), Object.getOwnPropertyNames(secret), { ...secret }])],
  ['a clone', () => inspect(structuredClone({ ...secret }))],
  ['an error', () => new Error(`failed with ${secret}`).stack ?? ''],
])('%s does not show the secret', (_, print) => {
  expect(print()).not.toContain(canary)
})

test('a secret is printed as [secret]', () => {
  expect([String(secret), JSON.stringify(secret), inspect(secret)]).toEqual(['[secret]', '"[secret]"', '[secret]'])
})

test('reveal() returns the text of the secret', () => {
  expect(secret.reveal()).toBe(canary)
})

test('scrub() removes every literal occurrence of the secret', () => {
  expect(secret.scrub(`a ${canary} b ${canary}${canary}`)).toBe('a [secret] b [secret][secret]')
  expect(new Secret('a.c').scrub('abc a.c')).toBe('abc [secret]')
  expect(new Secret('x').scrub('x$&x')).toBe('[secret]$&[secret]')
})

test('scrub() of an empty secret does not change a text', () => {
  expect(new Secret('').scrub('as it was')).toBe('as it was')
})
