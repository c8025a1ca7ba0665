// Tiers over the web; the same rules apply to every resource.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'
import { onPostgres } from '../support/harness-databases.ts'
import type { ApiAnswer, Ask } from '../support/management.ts'
import { askAsOwner } from '../support/management.ts'
import { addPerson, setUpOwner } from '../support/people.ts'

let harness: Harness
let ask: Ask

beforeAll(async () => {
  // Limits do not refill, however slow the machine is.
  harness = await startHarness({ world: { clock: { nowMs: () => 1_000, dateMs: Date.now } } })
  ask = await askAsOwner(harness)
})
afterAll(() => harness.stop())

describe('a tier', () => {
  test('does not tell members how many keys it has', async () => {
    const { ask: owner } = await setUpOwner(harness)
    const { ask: member } = await addPerson(harness, owner)
    const { ask: support } = await addPerson(harness, owner, { role: 'support' })
    const keysOf = async (by: Ask): Promise<unknown[]> => {
      const { data } = (await by('GET', 'web/tiers')).body as { data: { keys: unknown }[] }
      return [...new Set([...data.map(({ keys }) => typeof keys), typeof (await by('GET', 'web/tiers/pro')).body.keys])]
    }
    expect(await keysOf(member)).toEqual(['object'])
    expect((await member('GET', 'web/tiers/pro')).body.keys).toBeNull()
    expect(await keysOf(support)).toEqual(['number'])
  })

  test('is created, shown, changed and removed', async () => {
    const created = await ask('POST', 'web/tiers', { name: 'gold', qpm: 7 })
    expect(created.status).toBe(201)
    const ofAccounts = { accountQpm: 70, accountConcurrency: 500 }
    expect(created.body).toEqual({
      name: 'gold',
      qpm: 7,
      pricePerMille: 1000,
      ...ofAccounts,
      keys: 0,
      version: expect.any(Number),
      managedBy: null,
    })
    const version = Number(created.body.version)
    expect(created.headers.get('etag')).toBe(`"${version}"`)
    expect((await ask('GET', 'web/tiers/gold')).body).toEqual(created.body)
    const changed = await ask('PATCH', 'web/tiers/gold', { qpm: 9 }, { 'if-match': `"${version}"` })
    expect([changed.body.qpm, changed.headers.get('etag')]).toEqual([9, `"${version + 1}"`])
    expect((await ask('DELETE', 'web/tiers/gold')).status).toBe(204)
    expect((await ask('GET', 'web/tiers/gold')).status).toBe(404)
  })

  test('that somebody else has changed is not changed again, nor removed', async () => {
    const { body: created } = await ask('POST', 'web/tiers', { name: 'silver', qpm: 1 })
    const first = { 'if-match': `"${String(created.version)}"` }
    expect((await ask('PATCH', 'web/tiers/silver', { qpm: 2 }, first)).status).toBe(200)
    for (const method of ['PATCH', 'DELETE']) {
      const body = method === 'PATCH' ? { qpm: 3 } : undefined
      const stale = await ask(method, 'web/tiers/silver', body, first)
      expect([stale.status, stale.error.code]).toEqual([412, 'version_stale'])
    }
    expect((await ask('GET', 'web/tiers/silver')).body.qpm).toBe(2)
  })

  test('applies to the next call of a key that was used before', async () => {
    await ask('POST', 'web/tiers', { name: 'bronze', qpm: 100, pricePerMille: 1_000 })
    const key = await harness.key({ tier: 'bronze' })
    const cost = async (): Promise<number> => {
      const before = (await harness.balance(key)).balance
      await (await chat(harness, key, { model: 'openai/gpt-4o-mini', messages: hello })).text()
      return Math.round((Number(before) - Number((await harness.balance(key)).balance)) * 1e9)
    }
    const plain = await cost()
    expect(plain).toBeGreaterThan(0)
    await ask('PATCH', 'web/tiers/bronze', { pricePerMille: 3_000 })
    expect(await cost()).toBe(3 * plain)
    await ask('PATCH', 'web/tiers/bronze', { qpm: 1 })
    expect((await chat(harness, key, { model: 'openai/gpt-4o-mini', messages: hello })).status).toBe(429)
  })

  test('that is the default of the site, or that only an account has, is not removed', async () => {
    for (const name of ['newcomers', 'partners']) await ask('POST', 'web/tiers', { name, qpm: 5 })
    const remove = (name: string): Promise<ApiAnswer> => ask('DELETE', `web/tiers/${name}`)
    await ask('PATCH', 'web/settings', { defaultTier: 'newcomers' })
    const refused = await remove('newcomers')
    expect(refused.error).toMatchObject({ code: 'state_unfit', hint: { code: 'tier_is_default' } })
    await ask('PATCH', 'web/settings', { defaultTier: null })
    expect([(await remove('newcomers')).status, (await remove('newcomers')).status]).toEqual([204, 404])
    await ask('POST', 'web/accounts', { name: 'Partner', tier: 'partners' })
    expect((await remove('partners')).error.message).toContain('There are keys, accounts or limits with this tier.')
  })

  test('that keys of accounts without a tier get is not removed, whatever the default of the site is', async () => {
    await ask('POST', 'web/tiers', { name: 'newcomers', qpm: 5 })
    for (const defaultTier of ['newcomers', null]) {
      await ask('PATCH', 'web/settings', { defaultTier })
      const refused = await ask('DELETE', 'web/tiers/standard')
      expect([refused.status, refused.error.hint]).toEqual([409, { code: 'tier_is_needed', values: {} }])
    }
  })

  test('with a name that exists, or that is in use, is refused', async () => {
    expect((await ask('POST', 'web/tiers', { name: 'pro', qpm: 1 })).error.code).toBe('name_taken')
    await harness.key({ tier: 'free' })
    expect((await ask('DELETE', 'web/tiers/free')).error.code).toBe('state_unfit')
  })
})

describe('an invalid request is refused:', () => {
  const invalid: readonly (readonly [method: string, path: string, body: unknown, code: string, param?: string])[] = [
    ['POST', 'web/tiers', { name: 'a', qpm: 1, admin: true }, 'field_unknown', 'admin'],
    ['POST', 'web/tiers', { name: 'a', qpm: '1' }, 'field_invalid', 'qpm'],
    ['POST', 'web/tiers', { qpm: 1 }, 'field_invalid', 'name'],
    ['POST', 'web/tiers', '{', 'json_invalid'],
    ['POST', 'web/tiers', '[]', 'body_not_object'],
    ['GET', 'web/tiers?colour=red', undefined, 'field_unknown', 'colour'],
    ['GET', 'web/tiers?sort=keys', undefined, 'field_invalid', 'sort'],
    ['GET', 'web/tiers?limit=0', undefined, 'field_invalid', 'limit'],
    ['GET', 'web/tiers?limit=1&limit=2', undefined, 'field_duplicate', 'limit'],
    ['PUT', 'web/tiers/pro', {}, 'method_not_allowed'],
    ['GET', 'web/tiers/pro/keys', undefined, 'path_unknown'],
    ['GET', "web/tiers/p'ro%25", undefined, 'resource_unknown'],
  ]
  test.each(invalid)('%s %s %j: %s', async (...[method, path, body, code, param]) => {
    const { error } = await ask(method, path, body)
    expect([error.code, error.param ?? undefined]).toEqual([code, param])
  })

  test('the size of a page is clamped, and the answer says so', async () => {
    const { body, headers } = await ask('GET', 'web/tiers?limit=1000000')
    expect([body.limit, headers.get('x-weir-clamped')]).toEqual([200, 'limit=200'])
  })
})

test('a list continues where its page ended', async () => {
  const names: string[] = []
  for (let path: string | undefined = 'web/tiers?limit=1&sort=-name'; path !== undefined; ) {
    const { body } = await ask('GET', path)
    names.push(...(body.data as { name: string }[]).map(({ name }) => name))
    path = body.next === null ? undefined : `web/tiers?limit=1&sort=-name&after=${String(body.next)}`
  }
  expect(names).toEqual([...names].sort().reverse())
  expect(names).toEqual(expect.arrayContaining(['free', 'pro', 'standard']))
  expect(new Set(names).size).toBe(names.length)
})

describe('the audit log', () => {
  test('shows what each change changed, and that its chain is valid', async () => {
    await ask('PATCH', 'web/tiers/standard', { qpm: 301 })
    const { body } = await ask('GET', 'web/audit-log?limit=1')
    expect(body.data).toMatchObject([
      { action: 'setTier', target: 'tier standard', changes: { qpm: ['300', '301'] }, request: expect.any(String) },
    ])
    expect((await ask('GET', 'web/audit-log/check')).body.brokenAt).toBeNull()
  })

  test('has no row for a refused request', async () => {
    const last = async (): Promise<unknown> => (await ask('GET', 'web/audit-log?limit=1')).body.data
    const before = await last()
    await ask('POST', 'web/tiers', { name: 'pro', qpm: 1 })
    await ask('PATCH', 'web/tiers/pro', { qpm: 1 }, { 'if-match': '"77"' })
    expect(await last()).toEqual(before)
  })

  const swaps = [
    [2, 1_000],
    [3, 2],
    [1_000, 3],
  ] as const
  const swap = swaps.map(([from, to]) => `UPDATE audit SET seq = ${to} WHERE seq = ${from}`).join(';')
  const damages: readonly (readonly [name: string, sql: string])[] = [
    ['changed', "UPDATE audit SET actor = 'usr_1' WHERE seq = 2"],
    ['removed', 'DELETE FROM audit WHERE seq = 2'],
    ['moved', swap],
  ]
  test.each(damages)('with a row %s is not valid', async (_, sql) => {
    const db = openDatabase(join(harness.folder, 'weir.db'))
    const copy = db.query('SELECT * FROM audit').all() as Record<string, unknown>[]
    const ofTable = onPostgres ? ' ON audit' : ''
    for (const name of ['audit_is_final', 'audit_is_kept']) db.run(`DROP TRIGGER IF EXISTS ${name}${ofTable}`)
    for (const statement of sql.split(';')) db.run(statement)
    expect((await ask('GET', 'web/audit-log/check')).body.brokenAt).toBe(2)
    db.run('DELETE FROM audit')
    for (const row of copy) {
      const marks = Object.keys(row)
        .map((_, at) => `?${at + 1}`)
        .join()
      db.query('INSERT INTO audit VALUES ('.concat(marks, ')')).run(...(Object.values(row) as string[]))
    }
    db.close()
    expect((await ask('GET', 'web/audit-log/check')).body.brokenAt).toBeNull()
  })

  test('without its last rows is not valid for somebody who knows them', async () => {
    const { head } = (await ask('GET', 'web/audit-log/check')).body as { head: { seq: number; hash: string } }
    const known = `${head.seq}:${head.hash}`
    expect((await ask('GET', `web/audit-log/check?head=${known}`)).body.brokenAt).toBeNull()
    const forged = `${head.seq + 1}:${head.hash}`
    expect((await ask('GET', `web/audit-log/check?head=${forged}`)).body.brokenAt).not.toBeNull()
  })
})
