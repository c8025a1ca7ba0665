// Errors about the form of a management request say what is wrong as a sentence and as data, and the console has a Chinese
// sentence for each.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { hintCodes, hintOf, hintOfValue } from '../../src/management/web/hints.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import type { Ask, Told } from '../support/management.ts'
import { askAs, askAsOwner } from '../support/management.ts'

/** By a name that the type checker does not follow: the console has types of its own. */
const chineseTexts = '../../console/src/words/zh/errors.ts'
const { errors } = (await import(chineseTexts)) as { readonly errors: Readonly<Record<string, string>> }

let harness: Harness
let ask: Ask
let account: string

beforeAll(async () => {
  harness = await startHarness()
  ask = await askAsOwner(harness)
  account = String((await ask('POST', 'web/accounts', { name: 'a' })).body.id)
})
afterAll(() => harness.stop())

interface Hint {
  readonly code: string
  readonly values: Readonly<Record<string, string | number>>
}

const hintIn = ({ error }: Told): Hint => (error as { readonly hint: Hint }).hint
const tier = { name: 'gold', qpm: 5, pricePerMille: 900 }
const nested = (levels: number): string => `{"name":${'['.repeat(levels)}${']'.repeat(levels)}}`

/** A manager of the account, by a service token, who may not set what is reserved for admins. */
async function askAsManager(): Promise<Ask> {
  const expires = new Date(Date.now() + 3_600_000).toISOString()
  const made = await ask('POST', 'web/service-tokens', { name: 't', account, accountRole: 'manager', expires })
  return askAs(harness, String(made.body.token))
}

const requests: Readonly<Record<string, () => Promise<Told>>> = {
  missing_type: () => ask('POST', 'web/tiers', { qpm: 5 }),
  missing_one_of: () => ask('GET', 'web/statistics/top'),
  one_of: () => ask('GET', 'web/prices?origin=x'),
  type: () => ask('POST', 'web/tiers', { ...tier, qpm: 'x' }),
  at_least: () => ask('POST', 'web/tiers', { ...tier, qpm: 0 }),
  at_most: () => ask('POST', 'web/tiers', { ...tier, qpm: 1e12 }),
  characters_min: () => ask('POST', 'web/accounts', { name: '' }),
  characters_max: () => ask('POST', 'web/accounts', { name: 'x'.repeat(5_000) }),
  items_min: () => ask('POST', 'web/keys/bulk', { action: 'revoke', keys: [] }),
  items_max: () => ask('POST', 'web/keys/bulk', { action: 'revoke', keys: Array(5_000).fill('key_00000000001') }),
  invalid: () => ask('POST', 'web/accounts', { name: 'a\u0007b' }),
  unknown_near: () => ask('POST', 'web/tiers', { ...tier, nam: 1 }),
  unknown_allowed: () => ask('POST', 'web/tiers', { ...tier, zzzzzzzz: 1 }),
  unknown_none: () => ask('GET', 'web/gateway?zzz=1'),
  segment_one_of: () => ask('DELETE', `web/accounts/${account}/budgets/year`),
  twice: () => ask('GET', 'web/tiers?limit=1&limit=2'),
  only_for: async () => (await askAsManager())('POST', 'web/keys', { account, tier: 'pro' }),
  levels_max: () => ask('POST', 'web/tiers', nested(500)),
  values_max: () => ask('POST', 'web/tiers', `{"name":[${'1,'.repeat(300_000)}1]}`),
}

describe('the hint of a request is its code with values:', () => {
  test.each(Object.keys(requests))('%s', async code => {
    const answer = await requests[code]!()
    expect([answer.status >= 400 && answer.status < 500, hintIn(answer)?.code]).toEqual([true, code])
    const { values } = hintIn(answer)
    // The sentence has every value but the part of the request and the role, which it says in other words.
    const { part: _, role: __, type: ___, ...said } = values
    for (const value of Object.values(said)) expect(answer.error.message).toContain(String(value))
    const chinese = errors[`hint_${code}`]!
    const places = Array.from(chinese.matchAll(/\{(\w+)\}/g), ([, name]) => name!)
    expect(places.filter(name => !Object.hasOwn(values, name))).toEqual([])
  })
})

test('every code has a Chinese sentence, and there is none for another code', () => {
  const others = ['whole', ...['member', 'support', 'admin', 'owner', 'operator'].map(role => `role_${role}`)]
  const translated = Object.keys(errors).filter(name => name.startsWith('hint_'))
  expect(translated.sort()).toEqual([...hintCodes, ...others].map(code => `hint_${code}`).sort())
})

test('the sentences are those of before', () => {
  const at = { part: 'body', name: 'qpm' } as const
  expect(hintOf('missing', at).hint).toBe('The required field "qpm" is missing.')
  expect(hintOf('unknown', { part: 'query', name: 'x' }).hint).toBe('The query parameter "x" is not known.')
  expect(hintOfValue({ part: 'body', name: '' }, ['type', { type: 'object' }])).toEqual({
    hint: 'The body is not valid: it must be an object.',
    hintData: { code: 'type', values: { part: 'body', name: '', type: 'object' } },
  })
})

test('other errors have no hint as data', async () => {
  const { error } = await ask('GET', 'web/tiers/none')
  expect(error).not.toHaveProperty('hint')
})
