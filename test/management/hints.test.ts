// What the management interface says about a request is a sentence and the same as data, and the console has a Chinese
// sentence for each.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { errorRows } from '../../src/base/errors.ts'
import { musts, sentences } from '../../src/base/hint-sentences.ts'
import { hintCodes, hintOf, hintOfValue } from '../../src/base/hints.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import type { ApiAnswer, Ask } from '../support/management.ts'
import { askAs, askAsOwner, checkHint } from '../support/management.ts'

type Texts = Readonly<Record<string, string>>
/** By names that the type checker does not follow: the console has types of its own. */
const words = '../../console/src/words/zh'
const { errors } = (await import(`${words}/errors.ts`)) as { readonly errors: Texts }
const { hints, callErrors } = (await import(`${words}/hints.ts`)) as {
  readonly hints: Texts
  readonly callErrors: Texts
}

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
  readonly values: Readonly<Record<string, string | number | Hint>>
}

const hintIn = ({ error }: ApiAnswer): Hint => (error as { readonly hint: Hint }).hint
const tier = { name: 'gold', qpm: 5, pricePerMille: 900 }
const nested = (levels: number): string => `{"name":${'['.repeat(levels)}${']'.repeat(levels)}}`

/** A manager of the account, by a service token, who may not set what is reserved for admins. */
async function askAsManager(): Promise<Ask> {
  const expires = new Date(Date.now() + 3_600_000).toISOString()
  const made = await ask('POST', 'web/service-tokens', { name: 't', account, accountRole: 'manager', expires })
  return askAs(harness, String(made.body.token))
}

const requests: Readonly<Record<string, () => Promise<ApiAnswer>>> = {
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
  // Some of those that are not about the form of a request.
  content_type: () => ask('POST', 'web/tiers', tier, { 'content-type': 'text/plain' }),
  provider_unknown: () => ask('POST', 'web/channels', { provider: 'nobody', credentials: ['x'] }),
  route_no_provider: () => ask('PUT', 'web/routes/r', { members: [{ model: 'nobody/x' }] }),
  limit_window: () => ask('POST', 'web/limits', { resource: 'tokens', amount: 5 }),
  price_says: () => ask('PUT', 'web/prices/demo/echo', { price: { input: 'x', output: '1' } }),
  price_model: () => ask('PUT', 'web/prices/nobody/x', { price: { input: '1', output: '1' } }),
  webhook_url: () => ask('POST', 'web/webhooks', { url: 'https://127.0.0.1/', events: ['channel.down'] }),
  tier_unknown_named: () => ask('POST', 'web/keys', { account, tier: 'none' }),
}

/** All texts and numbers in a hint, also in hints that are its values. */
const leavesOf = ({ values }: Hint): readonly string[] =>
  Object.entries(values).flatMap(([name, value]) =>
    // The sentence says the part of the request, the role and the type in other words.
    typeof value === 'object' ? leavesOf(value) : ['part', 'role', 'type'].includes(name) ? [] : [String(value)],
  )

describe('the hint of a request is its code with values:', () => {
  test.each(Object.keys(requests))('%s', async code => {
    const answer = await requests[code]!()
    expect([answer.status >= 400 && answer.status < 500, hintIn(answer)?.code]).toEqual([true, code])
    for (const leaf of leavesOf(hintIn(answer))) expect(answer.error.message).toContain(leaf)
  })
})

/** The names of the values in a sentence. A function is asked for the values that it reads. */
function valuesOf(sentence: string | ((values: never) => string)): readonly string[] {
  if (typeof sentence === 'string') return placesIn(sentence)
  const read = new Set<string>()
  const get = (_: object, name: string | symbol): string => {
    read.add(String(name))
    return 'body'
  }
  sentence(new Proxy({}, { get }) as never)
  return [...read].sort()
}

const placesIn = (text: string): readonly string[] =>
  [...new Set(Array.from(text.matchAll(/\{(\w+)\}/g), ([, name]) => name!))].sort()

describe('every code', () => {
  test('is in the table once', () => {
    expect(hintCodes.length).toBeGreaterThan(300)
    expect(Object.keys(sentences).filter(code => Object.hasOwn(musts, code))).toEqual([])
  })

  test('has a sentence in English and in Chinese, and Chinese has no others', () => {
    expect(Object.keys(hints).sort()).toEqual([...hintCodes].sort())
    expect(Object.entries(hints).filter(([, text]) => text.trim() === '')).toEqual([])
    expect(Object.entries<unknown>(sentences).filter(([, text]) => text === '')).toEqual([])
  })

  test('is used', () => {
    const folder = join(import.meta.dir, '..', '..', 'src')
    const sources = [...new Bun.Glob('**/*.ts').scanSync(folder)].filter(
      name => !/\.test\.ts$|hint-sentences/.test(name),
    )
    const text = sources.map(name => readFileSync(join(folder, name), 'utf8')).join('')
    // These are put together from the resource and the span of a limit.
    const isMade = (code: string): boolean => /^call_limit_(requests|tokens)_(minute|day)$/.test(code)
    expect(hintCodes.filter(code => !text.includes(`'${code}'`) && !isMade(code))).toEqual([])
  })

  test('has the same values in both languages', () => {
    const expected = [
      ...Object.entries(sentences).map(([code, sentence]) => [code, valuesOf(sentence)] as const),
      ...Object.entries(musts).map(([code, write]) => [code, ['name', ...valuesOf(write)].sort()] as const),
    ]
    // Chinese does not say which part of a request a field is in.
    const places = expected.map(([code, names]) => [code, names.filter(name => name !== 'part')])
    expect(Object.fromEntries(expected.map(([code]) => [code, placesIn(hints[code]!)]))).toEqual(
      Object.fromEntries(places),
    )
  })
})

test('the rules of fields have codes: a schema of a request has no text of its own', () => {
  const folder = join(import.meta.dir, '..', '..', 'src', 'management', 'resources')
  const own = readdirSync(folder).flatMap(name =>
    Array.from(
      readFileSync(join(folder, name), 'utf8').matchAll(
        /\.(?:regex|refine)\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*?,\s*(?:\{ message: )?['"`].*|addIssue\((?!.*params).*|\{ error: ['"`].*/g,
      ),
      ([text]) => `${name}: ${text}`,
    ),
  )
  expect(own).toEqual([])
})

test('every error has a Chinese text', () => {
  // The names of errors of the management interface, which has the dialect of OpenAI.
  const named = { body_too_large: 'request_too_large' } as Texts
  const missing = Object.keys(errorRows).filter(code => !((named[code] ?? code) in errors) && !(code in callErrors))
  expect(missing).toEqual([])
})

test('the sentences are those of before', () => {
  const at = { part: 'body', name: 'qpm' } as const
  expect(hintOf('missing', at).text).toBe('The required field "qpm" is missing.')
  expect(hintOf('unknown', { part: 'query', name: 'x' }).text).toBe('The query parameter "x" is not known.')
  expect(hintOf('channel_unknown', { channel: 'a#b' }).text).toBe('Unknown channel "a#b".')
  const whole = hintOfValue({ part: 'body', name: '' }, ['type', { type: 'object' }])
  expect(whole.text).toBe('The body is not valid: it must be an object.')
  expect(whole.data).toEqual({ code: 'type', values: { part: 'body', name: '', type: 'object' } })
})

test('a value may be a hint, which is data inside the data', () => {
  const hint = hintOf('channel_base_url', { problem: hintOf('address_private', { host: 'h' }) })
  expect(hint.text).toBe('The base URL must not be private, unless WEIR_PRIVATE_HOSTS names h.')
  expect(hint.data.values).toEqual({ problem: { code: 'address_private', values: { host: 'h' } } })
})

test('an error that says no more than its code has no hint', async () => {
  const { error } = await ask('GET', 'web/tiers/none')
  expect(error).not.toHaveProperty('hint')
})

test.each(['GET /v1/key', 'POST /v1/chat/completions'])(
  '%s has no hint as data: errors of calls are those of their dialects',
  async name => {
    const [method, path] = name.split(' ') as [string, string]
    const headers = { authorization: 'Bearer wst-x' }
    const response = await fetch(`${harness.url}${path}`, { method, headers, ...(method === 'POST' && { body: '{}' }) })
    const { error } = (await response.json()) as { readonly error: { readonly message: string } }
    expect(error.message).toContain('A service token (wst-…) works on /api/web only.')
    expect(error).not.toHaveProperty('hint')
  },
)

test('findings of the gateway, warnings and problems have the same sentence as data', async () => {
  const { body } = await ask('GET', 'web/gateway')
  const findings = body.findings as readonly { text: string; textHint: Hint; remedy: string; remedyHint: Hint }[]
  const backup = findings.find(({ textHint }) => textHint.code === 'backup_never')!
  expect(backup).toMatchObject({
    text: 'This data has never been backed up.',
    remedy: 'Run this each day: weir backup <folder>',
    remedyHint: { code: 'do_backup_old', values: {} },
  })
  const made = await ask('POST', 'web/accounts', { name: 'warned', allows: ['nobody/nothing'] })
  expect([made.body.warnings, made.body.warningHints]).toEqual([
    ['No model matches at the moment: nobody/nothing.'],
    [{ code: 'warn_no_model', values: { patterns: 'nobody/nothing' } }],
  ])
})

test('an answer of the management interface with a sentence but without its code fails every test', () => {
  const message = `${errorRows.state_unfit.message} There are too many owls.`
  expect(() => checkHint({ message })).toThrow('too many owls')
  expect(() => checkHint({ message, hint: { code: 'invalid', values: { must: 'be an owl' } } })).toThrow('be an owl')
  expect(() => checkHint({ message, hint: { code: 'for_operator', values: { text: 'Owls.' } } })).toThrow('Owls')
  checkHint({ message, hint: { code: 'channels_max', values: {} } })
  checkHint({ message: errorRows.state_unfit.message })
})
