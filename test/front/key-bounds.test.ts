// What keeps a valid key from calling: its dates, that it is disabled, its addresses and its endpoints. The refusal is
// in the caller's dialect and applies from the next call on, and to running calls.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { buildErrorReply, Refusal } from '../../src/base/errors.ts'
import { endpointNames } from '../../src/identity/key-rights.ts'
import { errorDialects } from '../../src/protocols/protocols.ts'
import type { Endpoint, EndpointKind } from '../../src/server/endpoint.ts'
import type { EndpointParts } from '../../src/server/endpoints.ts'
import { buildEndpoints, findPathGroup } from '../../src/server/endpoints.ts'
import { streamHead } from '../../tools/fake-upstream/answers.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { chunk, gate, script } from '../../tools/fake-upstream/script.ts'
import type { Caller } from '../forwarding/caller.ts'
import { openCall, openRaw, startHasty } from '../forwarding/caller.ts'
import { piece, role } from '../forwarding/wire.ts'
import type { Harness } from '../support/gateway.ts'
import { until } from '../support/gateway.ts'
import type { RawAnswer } from '../support/raw.ts'
import { rawRequest } from '../support/raw.ts'
import type { Headers } from './asking.ts'
import { ask, bearer, call, expectChatError, expectStages, goodBody, reached } from './asking.ts'

let harness: Harness
/** The date of the gateway's clock; undefined: today. */
let dateMs: number | undefined

beforeAll(async () => {
  harness = await startHasty({
    env: { WEIR_TRUSTED_PROXIES: '127.0.0.1' },
    world: { clock: { nowMs: () => 1_000, dateMs: () => dateMs ?? Date.now() } },
  })
})
afterAll(() => harness.stop())

const operator = (name: string, input: Record<string, unknown>) => harness.weir(name, input)
const set = (key: string, more: Record<string, unknown>) => operator('keys set', { key, ...more })
const status = async (key: string, headers: Headers = {}): Promise<number> =>
  (await call(harness, key, goodBody(), headers)).status

describe('an endpoint', () => {
  const rows = buildEndpoints({} as unknown as EndpointParts).filter(({ auth }) => auth === 'key')
  const pathOf = ({ path, ending = '' }: Endpoint): string =>
    path.endsWith('/*') ? `${path.slice(0, -1)}${ending.startsWith(':') ? 'models/' : ''}x${ending}` : path
  const callEndpoint = (row: Endpoint, key: string): Promise<RawAnswer> =>
    rawRequest(harness.url, ask(row.method, pathOf(row), bearer(key), row.method === 'POST' ? '{}' : undefined))
  const named = rows.map(row => [`${row.method} ${pathOf(row)}`, row] as const)
  const refusal = new Refusal('endpoint_forbidden', '')

  const alike = ['images', 'audio', 'rerank', 'moderations', 'files'] as const
  /** The first pattern that matches decides; the remaining paths of /api/v3 are Ark's own. */
  const kindPatterns: readonly (readonly [EndpointKind, RegExp])[] = [
    ['count_tokens', /count_?tokens|input_tokens|tokenization/i],
    ['embeddings', /embed/i],
    ['tasks', /\/tasks/],
    ...alike.map(kind => [kind, new RegExp(`/${kind}`)] as const),
    ['models', /^\/(v1beta|api\/v3)\/models(\/\*)?$/],
    ['own', /^\/v1\/key$/],
    ['gemini', /:(stream)?generateContent$/i],
    ['ark', /^\/api\/v3\//],
    ['messages', /\/messages$/],
    ['responses', /\/responses(\/|$)/],
    ['chat', /\/chat\/completions$/],
    ['completions', /\/completions$/],
  ]

  test('has the kind that its path says, and each kind has an endpoint', () => {
    for (const { path, ending = '', kind } of rows) {
      expect([path, ending, kind]).toEqual([
        path,
        ending,
        kindPatterns.find(([, word]) => word.test(path + ending))?.[0],
      ])
    }
    const kinds = new Set(rows.map(({ kind }) => kind))
    expect([...kinds].sort()).toEqual([...endpointNames, 'own' as const].sort())
  })

  test.each(named)(
    '%s is refused in its dialect to keys for other kinds, and answers a key for its kind',
    async (_, row) => {
      const otherKinds = endpointNames.filter(name => name !== row.kind)
      const otherKey = await harness.key()
      await set(otherKey, { endpoints: otherKinds.join() })
      const answer = await callEndpoint(row, otherKey)
      if (row.kind === 'own') return expect(answer.status).toBe(200)
      const requestId = answer.header('x-request-id')!
      const dialect = errorDialects[findPathGroup(pathOf(row)).dialect]
      const spoken = dialect.writeError(buildErrorReply(refusal, requestId))
      expect([answer.status, answer.body.toString()]).toEqual([403, spoken.body])
      expectStages(answer, reached.refusedKey)
      await set(otherKey, { endpoints: row.kind })
      expect((await callEndpoint(row, otherKey)).status).not.toBe(403)
    },
  )

  test('that does not exist is 404 for any key, and a wrong method is 405 only for keys that may use the endpoint', async () => {
    const key = await harness.key()
    await set(key, { endpoints: 'messages' })
    const at = async (method: string, path: string): Promise<number> =>
      (await rawRequest(harness.url, ask(method, path, bearer(key)))).status
    expect(await at('GET', '/v1/nothing')).toBe(404)
    expect(await at('GET', '/v1/messages')).toBe(405)
    expect(await at('GET', '/v1/chat/completions')).toBe(403)
  })
})

describe('the address of a caller', () => {
  test("that is not one of the key's is refused with 403, and the answer says nothing else", async () => {
    const key = await harness.key()
    await set(key, { addresses: '203.0.113.0/24,2001:db8::/32' })
    const answer = await call(harness, key)
    expect(expectChatError(answer, 403).error.code).toBe('address_forbidden')
    expectStages(answer, reached.refusedKey)
    const before = harness.upstream.requests.length
    expect(await status(key)).toBe(403)
    expect(harness.upstream.requests.length).toBe(before)
  })

  test('is the one that a trusted proxy reports', async () => {
    const key = await harness.key()
    await set(key, { addresses: '203.0.113.0/24,2001:db8::/32' })
    const from = (...hops: string[]): Promise<number> => status(key, { 'x-forwarded-for': hops.join(', ') })
    expect(await from('203.0.113.7')).toBe(200)
    expect(await from('::ffff:203.0.113.7')).toBe(200)
    expect(await from('2001:db8::7')).toBe(200)
    expect(await from('203.0.114.7')).toBe(403)
    // What a caller wrote before the proxy added its address is ignored.
    expect(await from('203.0.113.7', '198.51.100.1')).toBe(403)
    expect(await from('203.0.113.7', 'nonsense')).toBe(403)
    expect(await from('203.0.113.7', '127.0.0.1')).toBe(200)
  })

  test('that is only claimed is ignored if no proxy is trusted', async () => {
    const direct = await startHasty()
    try {
      const key = await direct.key()
      await direct.weir('keys set', { key, addresses: '203.0.113.0/24' })
      expect((await call(direct, key, goodBody(), { 'x-forwarded-for': '203.0.113.7' })).status).toBe(403)
      await direct.weir('keys set', { key, addresses: '127.0.0.1' })
      expect((await call(direct, key, goodBody(), { 'x-forwarded-for': '203.0.113.7' })).status).toBe(200)
    } finally {
      await direct.stop()
    }
  })
})

describe('an expiry date', () => {
  const start = Date.UTC(2030, 0, 1)

  test('ends a key at that moment, even if the key is cached', async () => {
    try {
      dateMs = start
      const created = await operator('keys create', { tier: 'pro', credit: '1', expires: '2030-01-02T00:00Z' })
      const key = String(created.key)
      dateMs = Date.UTC(2030, 0, 2) - 1
      expect(await status(key)).toBe(200)
      dateMs++
      const answer = await call(harness, key)
      expect(expectChatError(answer, 401).error.code).toBe('invalid_api_key')
      expectStages(answer, reached.refusedKey)
      expect((await operator('keys show', { key })).state).toBe('expired')
      await set(key, { expires: '2030-01-03' })
      expect(await status(key)).toBe(200)
      await set(key, { expires: 'none' })
      dateMs = Date.UTC(2031, 0, 1)
      expect(await status(key)).toBe(200)
    } finally {
      dateMs = undefined
    }
  })

  test('of a rotation ends the old text and not the new one, and both are one key', async () => {
    try {
      dateMs = start
      const created = await operator('keys create', { tier: 'pro', credit: '1', qpm: '6' })
      const old = String(created.key)
      expect(await status(old)).toBe(200)
      const fresh = String((await operator('keys rotate', { key: old, overlap: '1h' })).key)
      expect([await status(old), await status(fresh)]).toEqual([200, 200])
      dateMs = start + 3_600_000 - 1
      expect([await status(old), await status(fresh)]).toEqual([200, 200])
      dateMs++
      expect(await status(old)).toBe(401)
      expect(await status(fresh)).toBe(200)
      expect(await status(fresh)).toBe(429) // they share six calls a minute
      const keys = harness
        .records()
        .filter(row => row.status === 200)
        .slice(-6)
        .map(row => row.key_id)
      expect(new Set(keys).size).toBe(1)
    } finally {
      dateMs = undefined
    }
  })
})

test('a disabled key is refused like an unknown one until it is enabled', async () => {
  const key = await harness.key()
  expect(await status(key)).toBe(200)
  await set(key, { disable: true })
  const answer = await call(harness, key)
  expect(expectChatError(answer, 401).error.code).toBe('invalid_api_key')
  expectStages(answer, reached.refusedKey)
  await set(key, { enable: true })
  expect(await status(key)).toBe(200)
})

test('rotation without an overlap ends the old text at once; after two rotations only the last two texts work', async () => {
  const first = await harness.key()
  const second = String((await operator('keys rotate', { key: first })).key)
  expect([await status(first), await status(second)]).toEqual([401, 200])
  const third = String((await operator('keys rotate', { key: second, overlap: '1h' })).key)
  expect([await status(second), await status(third)]).toEqual([200, 200])
  const fourth = String((await operator('keys rotate', { key: third, overlap: '1h' })).key)
  expect([await status(second), await status(third), await status(fourth)]).toEqual([401, 200, 200])
  await operator('keys revoke', { key: fourth })
  expect([await status(third), await status(fourth)]).toEqual([401, 401])
})

test('none of the keys of an account may use what the account may not, from the next call on', async () => {
  const created = await operator('keys create', { tier: 'pro', credit: '1', allow: 'openai/*' })
  const key = String(created.key)
  expect(await status(key)).toBe(200)
  await operator('accounts set', { account: created.account, allow: 'demo/*' })
  const answer = await call(harness, key)
  expect(expectChatError(answer, 403).error.code).toBe('model_forbidden')
  await operator('accounts set', { account: created.account, allow: 'openai/*', deny: 'openai/gpt-4o-mini' })
  expect(await status(key)).toBe(403)
  await operator('accounts set', { account: created.account, deny: '' })
  expect(await status(key)).toBe(200)
})

describe('an invalid option of an operator gets an error message:', () => {
  const mistakes: readonly (readonly [command: string, input: object, says: string])[] = [
    ['keys set', { expires: '2001-01-01' }, '--expires must be in the future'],
    ['keys set', { expires: '2999-01-01' }, '--expires is not valid: it must be before the year 2100'],
    ['keys set', { expires: 'soon' }, '--expires must be a day such as 2027-01-31 (UTC)'],
    ['keys set', { endpoints: 'everything' }, '--endpoints is not valid: it must be one of: chat, '],
    ['keys set', { addresses: '10.0.0.1/8' }, '--addresses is not valid: 10.0.0.1/8 has bits set after its prefix'],
    ['keys set', { addresses: '10.0.0.0/99' }, 'the number after the slash must be from 0 to 32.'],
    ['keys set', { addresses: 'any' }, '--addresses is not valid: any is neither an IP address'],
    ['keys set', { disable: true, enable: true }, 'Use either --disable or --enable'],
    ['keys set', { tier: 'none-such' }, 'Unknown tier "none-such"'],
    ['keys set', { qpm: '0' }, '--qpm is not valid: it must be at least 1'],
    ['keys set', { qpm: 'few' }, '--qpm must be a whole number'],
    ['keys set', { name: 'x'.repeat(101) }, '--name is not valid: it must have at most 100 characters'],
    ['keys rotate', { overlap: '31d' }, '--overlap must be at most 30d.'],
    ['keys rotate', { overlap: '5' }, '--overlap must be a duration such as 90s'],
    ['keys rotate', { overlap: '-1h' }, '--overlap must be a duration such as 90s'],
    ['keys list', { state: 'gone' }, '--state is not valid: it must be one of: active, disabled, expired, revoked'],
    ['accounts create', { tier: 'free' }, '--name is missing'],
    ['accounts create', { name: 'Delta', tier: 'none-such' }, 'Unknown tier'],
  ]
  test.each(mistakes)('%s %j', async (...[command, input, says]) => {
    const key = await harness.key()
    const message = await operator(command, { key, ...input }).then(
      () => 'done',
      (fault: Error) => fault.message,
    )
    expect(message).toContain(says)
    expect(message).not.toContain('..')
    expect(await status(key)).toBe(200)
  })
})

describe('running calls', () => {
  const never = new Promise<void>(() => {})
  const half = (): Script => script(streamHead, chunk(role() + piece('four') + piece('more')), gate(never))

  async function stream(key: string): Promise<Caller> {
    harness.upstream.plan(half())
    const caller = openCall(harness, key, { stream: true })
    await caller.until(({ text }) => text.includes('more'), 'content has arrived')
    return caller
  }

  async function expectCut(caller: Caller): Promise<void> {
    await caller.whole()
    expect(caller.text).toContain('invalid_api_key')
    await harness.idle()
    expect(harness.lastRecord()).toMatchObject({ outcome: 'revoked', rule: 'revoked_answered', status: 401 })
    expect(harness.openHolds()).toBe(0)
  }

  test('end when their key is disabled', async () => {
    const key = await harness.key()
    const caller = await stream(key)
    await set(key, { disable: true })
    await expectCut(caller)
  })

  test('end when their key expires, and not if its date was moved', async () => {
    const key = await harness.key()
    try {
      dateMs = Date.UTC(2030, 0, 1)
      await set(key, { expires: '2030-01-02' })
      const caller = await stream(key)
      await set(key, { expires: '2030-01-03' })
      dateMs = Date.UTC(2030, 0, 2)
      await new Promise(resolve => setTimeout(resolve, 1_100)) // dates are checked each second
      expect(caller.isWhole).toBe(false)
      dateMs = Date.UTC(2030, 0, 3)
      await expectCut(caller)
    } finally {
      dateMs = undefined
    }
  })

  test('end when an earlier date is set than the one they started with', async () => {
    const key = await harness.key()
    try {
      dateMs = Date.UTC(2030, 0, 1)
      const caller = await stream(key)
      await set(key, { expires: '2030-01-02' })
      dateMs = Date.UTC(2030, 0, 2)
      await expectCut(caller)
    } finally {
      dateMs = undefined
    }
  })

  test('of an old text end with it, while those of the new text go on', async () => {
    const old = await harness.key()
    const before = await stream(old)
    const fresh = String((await operator('keys rotate', { key: old, overlap: '1h' })).key)
    const after = await stream(fresh)
    const oldest = await stream(old)
    const last = String((await operator('keys rotate', { key: fresh, overlap: '1h' })).key)
    await before.whole()
    await oldest.whole()
    expect([before.text, oldest.text].every(text => text.includes('invalid_api_key'))).toBe(true)
    expect(after.isWhole).toBe(false)
    await operator('keys rotate', { key: last })
    await expectCut(after)
  })

  test('end even while their body is arriving', async () => {
    const key = await harness.key()
    const headers = { ...bearer(key), 'content-length': '100' }
    const caller = openRaw(harness.url, ask('POST', '/v1/chat/completions', headers, '{'))
    await until(() => harness.gateway.activeCalls > 0, 'the call has arrived')
    await operator('keys revoke', { key })
    await caller.whole()
    expect(caller.status).toBe(401)
    await harness.idle()
  })
})
