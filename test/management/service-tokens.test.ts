// Service tokens: how they are created, used, rotated and revoked, and what they may not do. The role matrix tries each
// endpoint with a token of each role.

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mintServiceToken } from '../../src/identity/service-token-format.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { HUNG_MS, startHarness } from '../support/gateway.ts'
import type { ApiAnswer, Ask } from '../support/management.ts'
import { askAs } from '../support/management.ts'
import type { Person } from '../support/people.ts'
import { addPerson, goodPassword, setUpOwner, signedIn } from '../support/people.ts'

// Time passes only where a test says so: a slow machine must not use up a limit of seconds.
const startMs = Date.now()
const clock = { aheadMs: 0 }
const nowMs = (): number => startMs + clock.aheadMs
const world = { clock: { nowMs, dateMs: nowMs } }
const [MINUTE_MS, HOUR_MS] = [60_000, 3_600_000]
const pass = (ms: number): void => void (clock.aheadMs += ms)
const inMs = (ms: number): string => new Date(world.clock.dateMs() + ms).toISOString()

let harness: Harness
let owner: Person
let key: string
let account: string

beforeAll(async () => {
  harness = await startHarness({ world, env: { WEIR_TRUSTED_PROXIES: '127.0.0.1' } })
  owner = await setUpOwner(harness)
  const created = await harness.weir('keys create', { credit: '5', name: 'team' })
  key = String(created.key)
  account = String(created.account)
})
afterAll(() => harness.stop())
// The tries of one test must not limit the next, and a session lasts ten minutes.
afterEach(async () => {
  pass(HOUR_MS)
  owner = await signedIn(harness, owner.email)
})

interface Token {
  readonly id: string
  readonly text: string
  readonly ask: Ask
}

let count = 0
const create = (fields: object, by: Ask = owner.ask): Promise<ApiAnswer> =>
  by('POST', 'web/service-tokens', { name: `token ${++count}`, ...fields })

const tokenOf = (told: ApiAnswer): Token => {
  if (typeof told.body.token !== 'string') throw new Error(`${told.status} ${told.text}`)
  return { id: String(told.body.id), text: told.body.token, ask: askAs(harness, told.body.token) }
}
const created = async (fields: object, by?: Ask): Promise<Token> => tokenOf(await create(fields, by))
const inAccount = (accountRole: string): object => ({ account, accountRole })
const isValid = async ({ ask }: Pick<Token, 'ask'>): Promise<boolean> => (await ask('GET', 'web/tiers')).status === 200
const shown = async ({ id }: Pick<Token, 'id'>): Promise<Record<string, unknown>> =>
  (await owner.ask('GET', `web/service-tokens/${id}`)).body
const codeOf = ({ status, error }: ApiAnswer): readonly unknown[] => [status, error.code]

function rowOf<T>(sql: string, ...values: string[]): T {
  const db = openDatabase(join(harness.folder, 'weir.db'), { readonly: true })
  try {
    return db.query(sql).get(...values) as T
  } finally {
    db.close()
  }
}

describe('a service token', () => {
  test('is shown once, and only its digest is stored', async () => {
    const told = await create({ role: 'admin', expires: inMs(HOUR_MS) })
    expect(told.status).toBe(201)
    const token = tokenOf(told)
    expect(token.text).toMatch(/^wst-[0-9A-Za-z]{36}$/)
    expect(told.body).toMatchObject({
      ...{ role: 'admin', account: null, accountRole: null, state: 'active', creator: owner.id },
      ...{ suffix: token.text.slice(-4), lastUsed: null, revoked: null, oldTextUntil: null },
    })
    expect(await isValid(token)).toBe(true)
    const list = await owner.ask('GET', 'web/service-tokens')
    expect(list.text).toContain(token.id)
    expect(list.text).not.toContain(token.text)
    const files = readdirSync(harness.folder).map(name => join(harness.folder, name))
    const holders = files.filter(path => statSync(path).isFile() && readFileSync(path).includes(token.text))
    expect(holders).toEqual([])
    expect(harness.logs.filter(line => line.includes(token.text))).toEqual([])
  })

  test('of an account does what a member of this role may, and nothing in other accounts', async () => {
    const developer = await created(inAccount('developer'))
    expect((await shown(developer)).role).toBeNull()
    const made = await developer.ask('POST', 'web/keys', { account, name: 'by a token' })
    expect(made.status).toBe(201)
    const other = await harness.weir('keys create', { credit: '1', name: 'other' })
    expect(codeOf(await developer.ask('GET', `web/accounts/${other.account}`))).toEqual([404, 'resource_unknown'])
    const { data } = (await developer.ask('GET', 'web/keys')).body as { data: { account: string }[] }
    expect([...new Set(data.map(row => row.account))]).toEqual([account])
    const viewer = await created(inAccount('viewer'))
    expect((await viewer.ask('GET', `web/accounts/${account}`)).status).toBe(200)
    expect(codeOf(await viewer.ask('POST', 'web/keys', { account }))).toEqual([404, 'resource_unknown'])
  })

  test('works until it expires', async () => {
    const token = await created({ role: 'support', expires: inMs(10 * MINUTE_MS) })
    pass(9 * MINUTE_MS)
    expect(await isValid(token)).toBe(true)
    pass(MINUTE_MS)
    const told = await token.ask('GET', 'web/tiers')
    expect(codeOf(told)).toEqual([401, 'token_invalid'])
    expect(told.error.message).toContain('expired')
    owner = await signedIn(harness, owner.email)
    expect((await shown(token)).state).toBe('expired')
    const changed = await owner.ask('PATCH', `web/service-tokens/${token.id}`, { expires: null })
    expect([changed.status, changed.body.state]).toEqual([200, 'active'])
    expect(await isValid(token)).toBe(true)
  })

  test('that is rotated has two texts until the overlap ends', async () => {
    const token = await created({ role: 'support' })
    const told = await owner.ask('POST', `web/service-tokens/${token.id}/rotate`, {})
    const renewed = tokenOf(told)
    expect(renewed.id).toBe(token.id)
    expect(Date.parse(String(told.body.oldTextUntil)) - world.clock.dateMs()).toBeLessThanOrEqual(5 * MINUTE_MS)
    expect([await isValid(token), await isValid(renewed)]).toEqual([true, true])
    pass(5 * MINUTE_MS)
    expect([await isValid(token), await isValid(renewed)]).toEqual([false, true])
    expect((await token.ask('GET', 'web/tiers')).error.message).toContain('rotated')
  })

  test('that is rotated without an overlap has one text at once', async () => {
    const token = await created({ role: 'support' })
    const rotated = await owner.ask('POST', `web/service-tokens/${token.id}/rotate`, { overlapSeconds: 0 })
    expect([await isValid(token), await isValid(tokenOf(rotated))]).toEqual([false, true])
  })

  test('that is rotated twice at once works with the text that was written last', async () => {
    const token = await created({ role: 'support' })
    const rotate = (): Promise<ApiAnswer> =>
      owner.ask('POST', `web/service-tokens/${token.id}/rotate`, { overlapSeconds: 0 })
    const texts = (await Promise.all([rotate(), rotate()])).map(tokenOf)
    const valid = [await isValid(texts[0]!), await isValid(texts[1]!)]
    expect(valid.toSorted()).toEqual([false, true])
  })

  test('that is revoked stops at once, with both of its texts, for good', async () => {
    const token = await created({ role: 'support' })
    const renewed = tokenOf(await owner.ask('POST', `web/service-tokens/${token.id}/rotate`, { overlapSeconds: 600 }))
    expect((await owner.ask('DELETE', `web/service-tokens/${token.id}`)).status).toBe(204)
    expect([await isValid(token), await isValid(renewed)]).toEqual([false, false])
    expect((await renewed.ask('GET', 'web/tiers')).error.message).toContain('revoked')
    for (const told of [
      await owner.ask('PATCH', `web/service-tokens/${token.id}`, { name: 'again' }),
      await owner.ask('POST', `web/service-tokens/${token.id}/rotate`, {}),
    ]) {
      expect(codeOf(told)).toEqual([409, 'state_unfit'])
    }
    expect((await owner.ask('DELETE', `web/service-tokens/${token.id}`)).status).toBe(204)
    const { data } = (await owner.ask('GET', 'web/service-tokens?state=revoked')).body as { data: { id: string }[] }
    expect(data.map(({ id }) => id)).toContain(token.id)
  })

  test('has a last use, which is written once a minute and does not change its version', async () => {
    const token = await created({ role: 'support' })
    const used = (): { used_ms: number | null; version: number } =>
      rowOf('SELECT used_ms, version FROM service_token WHERE suffix = ?1 ORDER BY id DESC', token.text.slice(-4))
    /** The use is written after the answer. Writes are done in order, so a later write has been preceded by it. */
    const settled = async (): Promise<number | null> => {
      await owner.ask('PATCH', 'web/settings', { siteName: `site ${++count}` })
      return used().used_ms
    }
    expect(used()).toEqual({ used_ms: null, version: 1 })
    await isValid(token)
    const first = await settled()
    expect(first).not.toBeNull()
    pass(MINUTE_MS - 1_000)
    await isValid(token)
    expect(await settled()).toBe(first)
    pass(2_000)
    await Promise.all([isValid(token), isValid(token), isValid(token)])
    expect(await settled()).toBeGreaterThan(first!)
    expect(used().version).toBe(1)
    expect((await shown(token)).lastUsed).toBe(new Date(used().used_ms!).toISOString())
  })
})

describe('a wrong text', () => {
  const from = (address: string): Record<string, string> => ({ 'x-forwarded-for': address })

  test('is refused, and an address that tries many of them has to wait, but not with a valid token', async () => {
    const token = await created({ role: 'support' })
    const wrong = ['wst-', 'wst-short', `${token.text}x`, `wst-${'0'.repeat(36)}`, mintServiceToken()]
    for (let tries = 0; tries < 50; tries++) {
      const told = await askAs(harness, wrong[tries % wrong.length])('GET', 'web/tiers', undefined, from('10.9.0.1'))
      expect([tries, ...codeOf(told)]).toEqual([tries, 401, 'token_invalid'])
    }
    const guess = (text: string | undefined, address: string): Promise<ApiAnswer> =>
      askAs(harness, text)('GET', 'web/tiers', undefined, from(address))
    for (const text of wrong) {
      const limited = await guess(text, '10.9.0.1')
      expect([text, ...codeOf(limited)]).toEqual([text, 429, 'tried_too_often'])
      expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(0)
    }
    // Others behind the same address have tried these texts. A program with a valid token is not locked out.
    expect((await token.ask('GET', 'web/tiers', undefined, from('10.9.0.1'))).status).toBe(200)
    expect(codeOf(await guess(wrong[4], '10.9.0.2'))).toEqual([401, 'token_invalid'])
    pass(10 * MINUTE_MS)
    expect(codeOf(await guess(wrong[4], '10.9.0.1'))).toEqual([401, 'token_invalid'])
  })

  test('is not a token that has ended: its tries do not stop other programs at the address', async () => {
    const [ended, token] = [await created({ role: 'support' }), await created({ role: 'support' })]
    await owner.ask('DELETE', `web/service-tokens/${ended.id}`)
    for (let tries = 0; tries < 60; tries++) await ended.ask('GET', 'web/tiers', undefined, from('10.9.0.3'))
    expect((await token.ask('GET', 'web/tiers', undefined, from('10.9.0.3'))).status).toBe(200)
  })
})

test('a token that a token has made has the creator of that token, however long the chain is', async () => {
  let by = owner.ask
  for (let length = 0; length < 3; length++) {
    const told = await create({ role: 'admin' }, by)
    expect(told.body.creator).toBe(owner.id)
    by = tokenOf(told).ask
  }
  const byOperator = askAs(
    harness,
    String((await harness.weir('tokens create', { name: 'first', role: 'admin' })).token),
  )
  const told = await create({ role: 'support' }, byOperator)
  expect(told.body.creator).toBe('cli')
  // The audit log names the token itself.
  const [row] = (await owner.ask('GET', 'web/audit-log?limit=1')).body.data as { actor: string; target: string }[]
  expect([row!.actor.startsWith('tok_'), row!.target]).toEqual([true, String(told.body.id)])
})

test('tokens that ended 90 days ago are deleted at the next sweep, and their audit rows stay', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-tokens-'))
  const DAY_MS = 24 * HOUR_MS
  const time = { aheadMs: 0 }
  const later = { clock: { nowMs: () => performance.now(), dateMs: () => Date.now() + time.aheadMs } }
  const restart = (aheadMs: number): Promise<Harness> => {
    time.aheadMs = aheadMs
    return startHarness({ folder, world: later })
  }
  const names = async ({ manage }: Harness): Promise<readonly string[]> =>
    ((await manage('GET', '/api/web/service-tokens')).data as { name: string }[]).map(({ name }) => name).toSorted()
  let one = await restart(0)
  try {
    for (const [name, days] of [['revoked'], ['expired', 5], ['expires', 200], ['valid']] as const) {
      const expires = days === undefined ? {} : { expires: new Date(Date.now() + days * DAY_MS).toISOString() }
      const { id } = await one.manage('POST', '/api/web/service-tokens', { name, role: 'support', ...expires })
      if (name === 'revoked') await one.manage('DELETE', `/api/web/service-tokens/${String(id)}`)
    }
    await one.stop()
    one = await restart(89 * DAY_MS)
    await one.manage('PATCH', '/api/web/settings', { siteName: 'after the sweep' })
    expect(await names(one)).toEqual(['expired', 'expires', 'revoked', 'valid'])
    await one.stop()
    one = await restart(96 * DAY_MS)
    const deadlineMs = performance.now() + HUNG_MS
    while ((await names(one)).length > 2 && performance.now() < deadlineMs) await Bun.sleep(5)
    expect(await names(one)).toEqual(['expires', 'valid'])
    const { data } = await one.manage('GET', '/api/web/audit-log?limit=200')
    const actions = (data as { action: string }[]).map(({ action }) => action)
    expect(actions.filter(action => /ServiceToken/.test(action)).toSorted()).toEqual([
      ...Array(4).fill('createServiceToken'),
      'revokeServiceToken',
    ])
  } finally {
    await one.stop()
    rmSync(folder, { recursive: true, force: true })
  }
})

describe('credentials that do not belong', () => {
  test('an API key is refused by the management interface, which says what it is for', async () => {
    const told = await askAs(harness, key)('GET', 'web/tiers')
    expect(codeOf(told)).toEqual([401, 'token_invalid'])
    expect(told.error.message).toContain('An API key (wk-…) is for calls to models only.')
  })

  const calls: readonly (readonly [path: string, header: string])[] = [
    ['/v1/chat/completions', 'authorization'],
    ['/v1/responses', 'authorization'],
    ['/v1/messages', 'x-api-key'],
    ['/v1/messages', 'authorization'],
    ['/v1beta/models/gemini-x:generateContent', 'x-goog-api-key'],
    ['/api/v3/chat/completions', 'authorization'],
    ['/v1/embeddings', 'api-key'],
  ]
  test.each(calls)('a service token is refused by %s in %s, in the dialect of the path', async (path, header) => {
    const { text } = await created({ role: 'owner' })
    const value = header === 'authorization' ? `Bearer ${text}` : text
    const ask = async (sent: string): Promise<{ status: number; body: unknown }> => {
      const headers = { [header]: sent, 'content-type': 'application/json' }
      const response = await fetch(`${harness.url}${path}`, { method: 'POST', headers, body: '{}' })
      return { status: response.status, body: await response.json() }
    }
    const told = await ask(value)
    const other = await ask('something else')
    expect([told.status, other.status]).toEqual([401, 401])
    const hint = 'A service token (wst-…) works on /api/web only. Calls need an API key (wk-…).'
    const otherHint =
      'API keys of this gateway begin with wk-. Send no key of a provider, and no quotes around the key.'
    expect(JSON.stringify(told.body)).toContain(` ${hint}`)
    expect(JSON.stringify(other.body)).toContain(` ${otherHint}`)
    const plain = ({ body }: { body: unknown }, told: string): string =>
      JSON.stringify(body)
        .replace(` ${told}`, '')
        .replaceAll(/req_\w+/g, '')
    expect(plain(told, hint)).toBe(plain(other, otherHint))
  })

  test('a service token and the cookie of a session are not accepted together', async () => {
    const token = await created({ role: 'support' })
    const { cookie } = owner
    const told = await token.ask('GET', 'web/tiers', undefined, { cookie: `other=1; ${cookie}` })
    expect(codeOf(told)).toEqual([401, 'token_invalid'])
    expect((await token.ask('GET', 'web/tiers', undefined, { cookie: 'other=1' })).status).toBe(200)
    expect(codeOf(await token.ask('POST', 'auth/refresh', undefined, { cookie }))).toEqual([403, 'role_too_low'])
  })

  test('a request with a service token may come from any site, because no browser adds the token', async () => {
    const token = await created({ role: 'admin' })
    const headers = { 'origin': 'https://elsewhere.example', 'sec-fetch-site': 'cross-site' }
    const told = await token.ask('POST', 'web/tiers', { name: `t${++count}`, qpm: 5 }, headers)
    expect(told.status).toBe(201)
  })
})

describe('nobody gets a token with more rights than their own', () => {
  test('an admin, and a token of an admin, cannot create, change, rotate or revoke a token of an owner', async () => {
    const ofOwner = await created({ role: 'owner' })
    const admin = await addPerson(harness, owner.ask, { role: 'admin' })
    const token = await created({ role: 'admin' }, admin.ask)
    for (const by of [admin.ask, token.ask]) {
      for (const told of [
        await create({ role: 'owner' }, by),
        await by('PATCH', `web/service-tokens/${ofOwner.id}`, { name: 'mine' }),
        await by('POST', `web/service-tokens/${ofOwner.id}/rotate`, {}),
        await by('DELETE', `web/service-tokens/${ofOwner.id}`),
      ]) {
        expect(codeOf(told)).toEqual([403, 'role_too_low'])
      }
      expect((await create({ role: 'admin' }, by)).status).toBe(201)
      expect((await create(inAccount('manager'), by)).status).toBe(201)
    }
    expect(await isValid(ofOwner)).toBe(true)
  })

  test('a manager, and a token of a manager, have tokens of their account only', async () => {
    const manager = await addPerson(harness, owner.ask, { members: [{ account, role: 'manager' }] })
    const ofSite = await created({ role: 'support' })
    const token = await created(inAccount('manager'), manager.ask)
    const other = String((await harness.weir('keys create', { credit: '1', name: 'else' })).account)
    for (const by of [manager.ask, token.ask]) {
      expect(codeOf(await create({ role: 'support' }, by))).toEqual([403, 'role_too_low'])
      expect(codeOf(await create({ account: other, accountRole: 'viewer' }, by))).toEqual([404, 'resource_unknown'])
      expect(codeOf(await by('GET', `web/service-tokens/${ofSite.id}`))).toEqual([404, 'resource_unknown'])
      expect(codeOf(await by('POST', `web/service-tokens/${ofSite.id}/rotate`, {}))).toEqual([404, 'resource_unknown'])
      const own = await created(inAccount('viewer'), by)
      expect((await by('DELETE', `web/service-tokens/${own.id}`)).status).toBe(204)
      const { data } = (await by('GET', 'web/service-tokens')).body as { data: { account: string }[] }
      expect([...new Set(data.map(row => row.account))]).toEqual([account])
    }
  })

  test('support, and a token of support, create and change none', async () => {
    const support = await addPerson(harness, owner.ask, { role: 'support' })
    const token = await created({ role: 'support' })
    for (const by of [support.ask, token.ask]) {
      expect(codeOf(await create({ role: 'support' }, by))).toEqual([403, 'role_too_low'])
      expect(codeOf(await create(inAccount('viewer'), by))).toEqual([404, 'resource_unknown'])
      expect((await by('GET', `web/service-tokens/${token.id}`)).status).toBe(200)
      expect(codeOf(await by('DELETE', `web/service-tokens/${token.id}`))).toEqual([404, 'resource_unknown'])
    }
  })

  test('a token that expires makes nothing last longer than itself', async () => {
    const short = await created({ role: 'admin', expires: inMs(HOUR_MS) })
    const long = await created({ role: 'admin' })
    for (const told of [
      await create({ role: 'support' }, short.ask),
      await create({ role: 'support', expires: inMs(2 * HOUR_MS) }, short.ask),
      await short.ask('PATCH', `web/service-tokens/${short.id}`, { expires: inMs(2 * HOUR_MS) }),
      await short.ask('PATCH', `web/service-tokens/${short.id}`, { expires: null }),
      await short.ask('PATCH', `web/service-tokens/${long.id}`, { expires: inMs(MINUTE_MS) }),
      await short.ask('POST', `web/service-tokens/${long.id}/rotate`, {}),
    ]) {
      expect(codeOf(told)).toEqual([403, 'role_too_low'])
    }
    const child = await created({ role: 'admin', expires: inMs(HOUR_MS / 2) }, short.ask)
    expect(await isValid(child)).toBe(true)
    const renewed = tokenOf(await short.ask('POST', `web/service-tokens/${short.id}/rotate`, { overlapSeconds: 0 }))
    expect([await isValid(short), await isValid(renewed)]).toEqual([false, true])
  })

  test('no token makes an owner', async () => {
    const token = await created({ role: 'owner' })
    const person = await addPerson(harness, owner.ask, { role: 'admin' })
    for (const told of [
      await token.ask('PATCH', `web/users/${person.id}`, { role: 'owner' }),
      await token.ask('POST', 'web/invitations', { email: 'new-owner@example.com', role: 'owner' }),
    ]) {
      expect(codeOf(told)).toEqual([403, 'role_too_low'])
    }
    expect((await token.ask('PATCH', `web/users/${person.id}`, { role: 'support' })).status).toBe(200)
  })

  test('no token chooses or resets a password', async () => {
    const token = await created({ role: 'owner' })
    const person = await addPerson(harness, owner.ask)
    const told = await token.ask('POST', `web/users/${person.id}/password-reset`, {})
    expect(codeOf(told)).toEqual([403, 'role_too_low'])
    expect(told.error.message).toContain('Service tokens cannot use this endpoint.')
    const passwords = { currentPassword: goodPassword, password: 'another good password' }
    expect(codeOf(await token.ask('POST', 'web/me/password', passwords))).toEqual([403, 'role_too_low'])
  })
})

describe('the author', () => {
  test('of what a token does is the token', async () => {
    const token = await created({ role: 'admin' })
    const name = `t${++count}`
    await token.ask('POST', 'web/tiers', { name, qpm: 7 })
    const { data } = (await owner.ask('GET', `web/audit-log?actor=${token.id}`)).body as { data: object[] }
    expect(data).toMatchObject([{ actor: token.id, action: 'setTier', target: `tier ${name}` }])
    const about = (await owner.ask('GET', `web/audit-log?target=${token.id}`)).body as { data: object[] }
    expect(about.data).toMatchObject([{ actor: owner.id, action: 'createServiceToken' }])
    expect(JSON.stringify(about.data)).not.toContain('digest')
  })

  test('of a token is listed also when that person was removed, and the token still works', async () => {
    const admin = await addPerson(harness, owner.ask, { role: 'admin' })
    const token = await created({ role: 'support' }, admin.ask)
    expect((await owner.ask('DELETE', `web/users/${admin.id}`)).status).toBe(204)
    expect(await isValid(token)).toBe(true)
    const told = await owner.ask('GET', `web/service-tokens?creator=${admin.id}`)
    expect(told.body.data).toMatchObject([{ id: token.id, creator: admin.id }])
  })

  test('of an invitation may be a token, which must still be valid when the invitation is accepted', async () => {
    const [token, admin] = [await created(inAccount('manager')), await created({ role: 'admin' })]
    const invite = async (): Promise<ApiAnswer> =>
      token.ask('POST', 'web/invitations', { email: `t${++count}@example.com`, account, accountRole: 'viewer' })
    const toSite = await admin.ask('POST', 'web/invitations', { email: 'site@example.com', role: 'admin' })
    const accept = ({ body }: ApiAnswer): Promise<ApiAnswer> =>
      askAs(harness, undefined)('POST', 'auth/invitation', { token: body.token, name: 'New', password: goodPassword })
    const [first, second] = [await invite(), await invite()]
    expect(first.body.by).toBe(token.id)
    expect((await accept(first)).status).toBe(201)
    await owner.ask('DELETE', `web/service-tokens/${token.id}`)
    await owner.ask('DELETE', `web/service-tokens/${admin.id}`)
    expect(toSite.status).toBe(201)
    const states = (await owner.ask('GET', 'web/invitations')).body.data as { id: string; state: string }[]
    for (const invited of [second, toSite]) {
      expect(states.find(({ id }) => id === invited.body.id)?.state).toBe('invalid')
      const looked = askAs(harness, undefined)('POST', 'auth/invitation/look', { token: invited.body.token })
      expect(codeOf(await looked)).toEqual([400, 'invitation_invalid'])
      expect(codeOf(await accept(invited))).toEqual([400, 'invitation_invalid'])
    }
  })
})

describe('bad input', () => {
  const bodies: readonly (readonly [fields: object, status: number, param: string])[] = [
    [{}, 400, 'role'],
    [{ role: 'member' }, 400, 'role'],
    [{ role: 'root' }, 400, 'role'],
    [{ role: 'admin', accountRole: 'viewer' }, 400, 'role'],
    [{ role: 'admin', account: 'acc_00000000001' }, 400, 'role'],
    [{ account: 'acc_00000000001' }, 400, 'role'],
    [{ role: 'admin', name: '' }, 400, 'name'],
    [{ role: 'admin', name: 'x'.repeat(101) }, 400, 'name'],
    [{ role: 'admin', name: 'a\u0000b' }, 400, 'name'],
    [{ role: 'admin', expires: '2020-01-01T00:00:00Z' }, 400, 'expires'],
    [{ role: 'admin', expires: '9999-01-01T00:00:00Z' }, 400, 'expires'],
    [{ role: 'admin', expires: 'tomorrow' }, 400, 'expires'],
    [{ role: 'admin', digest: 'ab' }, 400, 'digest'],
    [{ role: 'admin', creator: 'cli' }, 400, 'creator'],
  ]
  test.each(bodies)('%j', async (fields, status, param) => {
    const told = await create(fields)
    expect([told.status, told.error.param]).toEqual([status, param])
  })

  test('a token of an account that does not exist, or of an account of the operator', async () => {
    const { own } = (await owner.ask('GET', 'web/ledger/trial-balance')).body as { own: { account: string }[] }
    for (const id of ['acc_00000000001', own[0]!.account]) {
      const told = await create({ account: id, accountRole: 'viewer' })
      expect(codeOf(told)).toEqual([404, 'resource_unknown'])
    }
  })

  test('two tokens of one name: one of two that are created at once', async () => {
    const both = await Promise.all([1, 2].map(() => create({ name: 'twin', role: 'support' })))
    expect(both.map(({ status }) => status).toSorted()).toEqual([201, 409])
    const [first] = both.filter(({ status }) => status === 201).map(tokenOf)
    expect((await create({ name: 'twin', ...inAccount('viewer') })).status).toBe(201)
    await owner.ask('DELETE', `web/service-tokens/${first!.id}`)
    expect((await create({ name: 'twin', role: 'support' })).status).toBe(201)
  })

  test('an overlap below zero, or of more than 30 days', async () => {
    const { id } = await created({ role: 'support' })
    for (const overlapSeconds of [-1, 1.5, 30 * 86_400 + 1]) {
      const told = await owner.ask('POST', `web/service-tokens/${id}/rotate`, { overlapSeconds })
      expect([told.status, told.error.param]).toEqual([400, 'overlapSeconds'])
    }
  })
})
