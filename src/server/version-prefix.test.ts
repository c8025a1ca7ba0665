import { describe, expect, test } from 'bun:test'
import { expectCheap } from '../../test/support/cpu.ts'
import { callEndpoints } from './endpoints.ts'
import { buildVersionPrefix } from './version-prefix.ts'

const correct = buildVersionPrefix(callEndpoints)

describe('a path of a call', () => {
  test.each([
    ['/chat/completions', '/v1/chat/completions'],
    ['/messages', '/v1/messages'],
    ['/v1/v1/messages', '/v1/messages'],
    ['/v1/chat/completions/', '/v1/chat/completions'],
    ['//v1/chat/completions', '/v1/chat/completions'],
    ['/v1//chat/completions', '/v1/chat/completions'],
    ['//v1//chat/completions//', '/v1/chat/completions'],
    ['//chat/completions', '/v1/chat/completions'],
    ['/v1//v1/messages', '/v1/messages'],
    ['/v1/v1beta/models/demo/echo:generateContent', '/v1beta/models/demo/echo:generateContent'],
    ['/v1beta/v1beta/models/demo/echo:generateContent', '/v1beta/models/demo/echo:generateContent'],
    ['/v1beta//models/demo/echo:generateContent', '/v1beta/models/demo/echo:generateContent'],
    ['/api/v3//chat/completions', '/api/v3/chat/completions'],
  ])('%s is read as %s', (path, corrected) => {
    expect(correct(path)).toBe(corrected)
  })
})

test.each([
  '/v1/chat/completions',
  '/v1beta/models/demo/echo:generateContent',
  '/v1beta/models/demo//echo:generateContent',
  '/api/v3/chat/completions',
  '//api/web/keys',
  '/api/web//keys',
  '/api/web/keys/',
  '/console/',
  '//console/',
  '/v1',
  '/',
  '//',
  `/v1${'/'.repeat(3_000)}messages`,
])('%s stays as it is', path => {
  expect(correct(path)).toBe(path)
})

const row = '/'.repeat(2_040)
test.each([`/a${row}b`, `${row}b`, `/v1${row}b`, row, `${'/v1'.repeat(680)}x`, `${'//v1'.repeat(500)}b`, `/a${row}`])(
  'any path costs little: clients without a key choose it (%#)',
  async path => {
    await expectCheap(50, () => {
      for (let times = 0; times < 100; times++) correct(path)
    })
  },
)
