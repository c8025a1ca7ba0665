import { expect, test } from 'bun:test'
import type { LimitRow } from '../store/rules/rules.ts'
import { checkLimit } from './limit-check.ts'

const good: LimitRow = {
  id: 1,
  resource: 'requests',
  span: 'minute',
  amount: 60,
  keyId: null,
  accountId: null,
  tier: null,
  model: null,
  per: ['key'],
}

test('valid limits are accepted', () => {
  expect(() => checkLimit(good)).not.toThrow()
  expect(() => checkLimit({ ...good, resource: 'concurrency', span: null, per: [] })).not.toThrow()
  expect(() => checkLimit({ ...good, resource: 'tokens', span: 'day', model: 'openai/*', tier: 'pro' })).not.toThrow()
})

test.each([
  [{ amount: 0 }, 'from 1 to'],
  [{ amount: -5 }, 'from 1 to'],
  [{ amount: 1.5 }, 'from 1 to'],
  [{ amount: Number.NaN }, 'from 1 to'],
  [{ amount: Infinity }, 'from 1 to'],
  [{ amount: 1e11 }, 'from 1 to'],
  [{ amount: '7' as unknown as number }, 'from 1 to'],
  [{ span: null }, 'needs a window'],
  [{ span: undefined as unknown as null }, 'needs a window'],
  [{ span: 'hour' as 'day' }, 'needs a window'],
  [{ resource: 'concurrency' }, 'has no window'],
  [{ resource: 'money' as 'tokens' }, 'one of'],
  [{ per: ['key', 'key'] }, 'named once'],
  [{ per: ['user' as 'key'] }, 'per key'],
  [{ tier: '' }, 'tier'],
  [{ model: '' }, 'model'],
  [{ model: 'a'.repeat(257) }, 'model'],
] as const)('a limit with %o is refused', (change, message) => {
  expect(() => checkLimit({ ...good, ...change })).toThrow(message)
})
