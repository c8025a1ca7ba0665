// Configuration as code on real gateways: export, apply to an empty gateway, export again.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { parse } from 'yaml'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import type { Schema } from '../support/json-schema.ts'
import { misfits } from '../support/json-schema.ts'
import { addPerson, setUpOwner } from '../support/people.ts'
import { apply, exported } from './apply.ts'

const brook = {
  id: 'brook',
  name: 'Brook',
  baseUrl: 'https://brook.example/v1',
  keyEnv: 'BROOK_KEY',
  baseUrlEnv: 'BROOK_URL',
  speaks: { 'openai-chat': '/chat/completions' },
  sign: 'bearer',
  tags: ['eu'],
  models: [{ id: 'trout', price: { input: '1', output: '2' } }],
}

const secrets = {
  OPENAI_SPARE_CREDENTIAL: 'sk-spare-0123456789',
  BROOK_MAIN_CREDENTIAL: 'sk-brook-0123456789',
}

/** Something of everything that a file can describe, made as people make it. */
async function furnish({ manage }: Harness): Promise<void> {
  await manage('POST', '/api/web/providers', { definition: brook })
  await manage('POST', '/api/web/tiers', { name: 'gold', qpm: 900, pricePerMille: 800, accountConcurrency: 7 })
  await manage('PATCH', '/api/web/tiers/free', { qpm: 3 })
  await manage('PATCH', '/api/web/settings', { siteName: 'River', registration: 'open', startingCredit: '2.50' })
  const acme = await manage('POST', '/api/web/accounts', {
    name: 'acme',
    tier: 'gold',
    creditLimit: '12.5',
    denies: ['openai/o*'],
  })
  await manage('POST', '/api/web/accounts', { name: 'acme', kind: 'postpaid', keepsBodies: true })
  await manage('PUT', `/api/web/accounts/${acme.id}/budgets/month`, { cap: '100' })
  const key = await manage('POST', '/api/web/keys', {
    account: acme.id,
    name: 'ci',
    expires: '2090-01-01T00:00:00Z',
    addresses: ['10.0.0.0/8'],
    endpoints: ['chat'],
    strict: true,
  })
  await manage('PATCH', `/api/web/keys/${key.id}`, { disabled: true })
  await manage('PUT', `/api/web/keys/${key.id}/budgets/day`, { cap: '0.5' })
  const gone = await manage('POST', '/api/web/keys', { account: acme.id, name: 'gone' })
  await manage('DELETE', `/api/web/keys/${gone.id}`)
  await manage('POST', '/api/web/channels', {
    provider: 'openai',
    name: 'spare',
    credentials: [secrets.OPENAI_SPARE_CREDENTIAL],
    weight: 3,
    tags: ['spare', 'eu'],
    headers: { 'x-team': 'river' },
    parameters: { 'openai-chat': { set: { temperature: 0 } } },
    times: { totalSeconds: 100 },
  })
  await manage('POST', '/api/web/channels', {
    provider: 'brook',
    name: 'main',
    credentials: [secrets.BROOK_MAIN_CREDENTIAL],
    tags: ['eu'],
  })
  const { data } = (await manage('GET', '/api/web/channels?from=environment&provider=openai')) as {
    data: { id: string }[]
  }
  await manage('PATCH', `/api/web/channels/${encodeURIComponent(data[0]!.id)}`, { priority: 2 })
  const members = [
    { model: 'openai/gpt-4o-mini', weight: 2 },
    { model: 'openai/gpt-4o', priority: 1 },
  ]
  await manage('PUT', '/api/web/routes/small', { members, policy: 'weighted' })
  await manage('PUT', '/api/web/routes/best', { members: [{ model: 'small' }] })
  await manage('PUT', '/api/web/routes/any-*', { members: [{ model: 'openai/*' }] })
  // A name whose only channel is disabled.
  await manage('PUT', '/api/web/routes/fish', { members: [{ model: 'brook/trout' }] })
  const [trout] = (await manage('GET', '/api/web/channels?provider=brook')).data as { id: string }[]
  await manage('PATCH', `/api/web/channels/${encodeURIComponent(trout!.id)}`, { disabled: true })
  await manage('POST', '/api/web/limits', { resource: 'requests', span: 'minute', amount: 5, key: key.id })
  await manage('POST', '/api/web/limits', {
    resource: 'tokens',
    span: 'day',
    amount: 9,
    account: acme.id,
    per: ['model', 'key'],
  })
  await manage('POST', '/api/web/limits', { resource: 'concurrency', amount: 2, tier: 'gold', model: 'openai/*' })
  await manage('PUT', '/api/web/prices/openai/gpt-4o-mini', {
    price: { input: '1.50', output: '2', cases: [{ inputAbove: 1000, input: '3', output: '4' }] },
  })
  await manage('POST', '/api/web/webhooks', { url: 'https://hooks.example.com/site', events: ['ledger.drift'] })
  const hooks = `/api/web/accounts/${acme.id}/webhooks`
  const hook = await manage('POST', hooks, { url: 'https://hooks.example.com/acme?x=1', events: ['balance.low'] })
  await manage('PATCH', `/api/web/webhooks/${hook.id}`, { disabled: true })
}

describe('a gateway with something of everything', () => {
  let one: Harness
  let other: Harness

  beforeAll(async () => {
    Object.assign(process.env, secrets)
    one = await startHarness()
    other = await startHarness()
    await furnish(one)
  })
  afterAll(async () => {
    for (const name of Object.keys(secrets)) delete process.env[name]
    await one.stop()
    await other.stop()
  })

  test('its export has no secret, and tells which variables must be set', async () => {
    const { file, warnings } = await exported(one)
    for (const secret of Object.values(secrets)) expect(file).not.toContain(secret)
    expect(warnings.map(text => /set (\w+) before/.exec(text)?.[1]).sort()).toEqual(Object.keys(secrets).sort())
  })

  test('its export fits the published schema', async () => {
    const schema = JSON.parse(await (await fetch(`${one.url}/weir.schema.json`)).text()) as Schema
    const find = (ref: string): Schema => (schema.$defs as Record<string, Schema>)[ref.split('/').at(-1)!]!
    const { $schema: _, $defs: __, title: ___, ...root } = schema
    const { file } = await exported(one)
    expect(misfits(parse(file), root, find)).toEqual([])
    const wrong = { tiers: [{ name: 'a', qpm: 1, qmp: 2 }], channels: [{ provider: 'a', name: 'b', credential: 'sk' }] }
    expect(misfits(wrong, root, find)).not.toEqual([])
  })

  test('applying its own export changes nothing, also without the secrets', async () => {
    const { file } = await exported(one)
    const taken = Object.fromEntries(Object.keys(secrets).map(name => [name, process.env[name]]))
    for (const name of Object.keys(secrets)) delete process.env[name]
    expect((await apply(one, file, { prune: true })).plan).toEqual([])
    Object.assign(process.env, taken)
  })

  test('an empty gateway becomes equal: its export is the same, byte for byte', async () => {
    const { file } = await exported(one)
    const { created } = await apply(other, file, { prune: true })
    expect(created.map(({ name }) => name)).toEqual([
      'key acme/ci',
      'webhook https://hooks.example.com of acme',
      'webhook https://hooks.example.com',
    ])
    expect((await exported(other)).file).toBe(file)
    expect((await apply(other, file, { prune: true })).plan).toEqual([])
  })
})

test('a key that a member has made keeps the bounds that an admin has set on other keys of its account', async () => {
  const [one, other] = [await startHarness(), await startHarness()]
  const { ask: owner } = await setUpOwner(one)
  const account = String((await owner('POST', 'web/accounts', { name: 'acme', type: 'team' })).body.id)
  await owner('POST', 'web/keys', { account, name: 'bound', requires: ['eu'] })
  const { ask } = await addPerson(one, owner, { members: [{ account, role: 'developer' }] })
  const wanted = { account, name: 'free', madeByMember: false }
  expect((await ask('POST', 'web/keys', wanted)).error.code).toBe('role_too_low')
  expect((await ask('POST', 'web/keys', { account, name: 'free' })).body.madeByMember).toBe(true)
  const { file } = await exported(one)
  const { created } = await apply(other, file)
  const tagsOf = async (name: string): Promise<unknown> => {
    const { secret } = created.find(key => key.name === `key acme/${name}`)!
    const answer = await fetch(`${other.url}/v1/key`, { headers: { authorization: `Bearer ${secret}` } })
    return ((await answer.json()) as { models: { required_tags: unknown } }).models.required_tags
  }
  expect([await tagsOf('bound'), await tagsOf('free')]).toEqual([['eu'], ['eu']])
  expect((await exported(other)).file).toBe(file)
  // A file from before this field leaves the key as it is.
  expect((await apply(one, file.replace(/ *madeByMember: true\n/, ''))).plan).toEqual([])
  const refused = await apply(one, file.replace('madeByMember: true', 'madeByMember: false')).catch(String)
  expect(refused).toContain('madeByMember: it cannot be changed. The key has: true.')
  await one.stop()
  await other.stop()
})

test('an export says where keys of members lose the bounds of keys that it leaves out', async () => {
  const one = await startHarness()
  const { ask: owner } = await setUpOwner(one)
  const addKey = async (account: string, settings = {}): Promise<string> =>
    String((await owner('POST', 'web/keys', { account, name: 'old', ...settings })).body.id)
  const bounds: Readonly<Record<string, (account: string) => Promise<unknown>>> = {
    revoked: async account => owner('DELETE', `web/keys/${await addKey(account, { requires: ['eu'] })}`),
    expired: async account => {
      await addKey(account, { expires: new Date(Date.now() + 2_000).toISOString(), qpm: 5 })
      await Bun.sleep(2_005)
    },
    limited: async account => {
      const key = await addKey(account)
      await one.manage('POST', '/api/web/limits', { resource: 'requests', span: 'minute', amount: 5, key })
      await owner('DELETE', `web/keys/${key}`)
    },
    // Nothing is lost where the key stays, or has no bounds.
    kept: account => addKey(account, { qpm: 5 }),
    free: async account => owner('DELETE', `web/keys/${await addKey(account)}`),
  }
  for (const [name, bind] of Object.entries(bounds)) {
    const account = String((await owner('POST', 'web/accounts', { name, type: 'team' })).body.id)
    await bind(account)
    await one.manage('POST', '/api/web/keys', { account, name: 'own', madeByMember: true })
  }
  // No member has made a key here.
  const alone = String((await owner('POST', 'web/accounts', { name: 'alone', type: 'team' })).body.id)
  await bounds.revoked!(alone)

  const { warnings } = await exported(one)
  const losing = warnings.flatMap(
    text => /^Keys that members of (\w+) \(acc_\w+\) have made lose/.exec(text)?.[1] ?? [],
  )
  expect(losing.toSorted()).toEqual(['expired', 'limited', 'revoked'])
  await one.stop()
})

test('what a new gateway would refuse is not exported, and --prune leaves it as it is', async () => {
  const [one, other] = [await startHarness(), await startHarness()]
  const { manage } = one
  const team = (await manage('POST', '/api/web/accounts', { name: 'acme' })).id
  const person = (await manage('POST', '/api/web/accounts', { name: 'Ann', type: 'personal' })).id
  const addKey = async (name: string, account: unknown, others = {}): Promise<unknown> =>
    (await manage('POST', '/api/web/keys', { account, name, ...others })).id
  const addLimit = (of: Record<string, unknown>): Promise<unknown> =>
    manage('POST', '/api/web/limits', { resource: 'requests', span: 'minute', amount: 5, ...of })
  const addHook = (account: unknown): Promise<unknown> => {
    const hook = { url: 'https://hooks.example.com', events: ['balance.low'] }
    return manage('POST', `/api/web/accounts/${String(account)}/webhooks`, hook)
  }
  const expires = new Date(Date.now() + 500).toISOString()
  const keys = {
    good: await addKey('good', team),
    old: await addKey('old', team, { expires }),
    idle: await addKey('idle', team, { expires, disabled: true }),
    gone: await addKey('gone', team),
    own: await addKey('own', person),
  }
  for (const key of Object.values(keys)) await addLimit({ key })
  for (const account of [team, person]) {
    await addLimit({ account })
    await addHook(account)
  }
  await manage('DELETE', `/api/web/keys/${String(keys.gone)}`)
  await Bun.sleep(Math.max(0, Date.parse(expires) - Date.now()) + 5)

  // As before this was refused: a second webhook with the same account and URL.
  await manage('POST', `/api/web/accounts/${String(team)}/webhooks`, {
    url: 'https://hooks.example.com/twin',
    events: ['key.revoked'],
  })
  const db = openDatabase(join(one.folder, 'weir.db'))
  db.run("UPDATE webhook SET url = 'https://hooks.example.com' WHERE url = 'https://hooks.example.com/twin'")
  db.close()

  const { file, warnings } = await exported(one)
  const leftOut = warnings.flatMap(text => /^The file leaves out (.*), because/.exec(text)?.[1] ?? [])
  expect(leftOut.toSorted()).toEqual([
    'expired keys (2)',
    'further webhooks with the same URL (1)',
    'limits of expired keys (2)',
    'limits of personal accounts (2)',
    'limits of revoked keys (1)',
    'webhooks of personal accounts (1)',
  ])
  const { created } = await apply(other, file)
  expect(created.map(({ name }) => name)).toEqual(['key acme/good', 'webhook https://hooks.example.com of acme'])
  expect((await exported(other)).file).toBe(file)
  const pruned = await apply(one, file, { prune: true })
  expect([pruned.plan, pruned.warnings]).toEqual([[], []])
  await one.stop()
  await other.stop()
})
