// A credential goes to the host that it was given for, and whoever edits channels over the web reaches nothing that the
// environment does not let them reach.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FakeUpstream } from '../../tools/fake-upstream/server.ts'
import { startFakeUpstream } from '../../tools/fake-upstream/server.ts'
import { hosts, urls } from '../network/corpus.ts'
import { upstreamKey } from '../support/gateway.ts'
import type { ChannelDesk } from './desk.ts'
import { at, canary, defineProvider, definitionOf, idsOf, openChannelDesk, say } from './desk.ts'

let desk: ChannelDesk
let other: FakeUpstream
let port: string
const folder = mkdtempSync(join(tmpdir(), 'weir-hosts-'))
const environmentSecret = 'env-secret-canary-77'
beforeAll(async () => {
  other = await startFakeUpstream()
  port = new URL(other.url).port
  // Only these two ports of this machine are anybody's to reach: what is listed is the host.
  const env = { SECRET_OF_ENV: environmentSecret, WEIR_PROVIDERS: folder }
  const resolve = async () => ['10.1.2.3']
  desk = await openChannelDesk({ env, world: { upstreams: { resolve } } })
  await defineProvider(desk, 'brook')
})
afterAll(async () => {
  await desk.stop()
  await other.stop()
  rmSync(folder, { recursive: true })
})
beforeEach(async () => {
  const all = await desk.ask('GET', 'web/channels?from=stored&limit=200')
  for (const id of idsOf(all)) await desk.ask('DELETE', at(id))
})

const create = (more: object = {}) =>
  desk.ask('POST', 'web/channels', { provider: 'brook', credentials: [canary], ...more })

/** Nothing that the other host has seen ever holds the credential. */
const seen = (): string =>
  other.requests.map(({ rawHead, body }) => `${rawHead}\n${Buffer.from(body).toString()}`).join('\n')

describe('a channel that goes to another host', () => {
  test('has no credential any more, which is told and in the audit log', async () => {
    const [id] = idsOf(await create())
    const moved = await desk.ask('PATCH', at(id!), { baseUrl: `${other.url}/v1` })
    expect(moved.body).toMatchObject({ credential: null, state: 'unusable', ownBaseUrl: `${other.url}/v1` })
    expect(moved.body.warnings).toEqual([expect.stringContaining('need their credential again')])
    expect((await say(desk, 'brook/echo')).status).toBe(503)
    for (const path of ['/test', '/fetch-models']) {
      expect((await desk.ask('POST', at(id!, path), path === '/test' ? {} : undefined)).status).toBe(409)
    }
    expect(seen()).not.toContain(canary)
    const log = await desk.ask('GET', `web/audit-log?target=${encodeURIComponent(id!)}`)
    expect(JSON.stringify(log.body)).toContain('"cleared"')
    await desk.ask('PATCH', at(id!), { credential: 'for-the-other' })
    expect((await say(desk, 'brook/echo')).status).toBe(200)
    expect(seen()).toContain('for-the-other')
  })

  test('may be given a credential with it, and keeps it for another path of the same host', async () => {
    const [id] = idsOf(await create())
    const path = await desk.ask('PATCH', at(id!), { baseUrl: `${desk.harness.upstream.url}/other` })
    expect(path.body).toMatchObject({ state: 'enabled', warnings: [] })
    const moved = await desk.ask('PATCH', at(id!), { baseUrl: `${other.url}/v1`, credential: 'given-along' })
    expect(moved.body).toMatchObject({ state: 'enabled', credential: { origin: other.url }, warnings: [] })
    const back = await desk.ask('PATCH', at(id!), { baseUrl: null })
    expect(back.body).toMatchObject({ credential: null, state: 'unusable' })
  })

  test('because its provider does has no credential any more either', async () => {
    await defineProvider(desk, 'moves')
    const [id] = idsOf(await create({ provider: 'moves' }))
    const [own] = idsOf(await create({ provider: 'moves', name: 'own', baseUrl: `${desk.harness.upstream.url}/v1` }))
    const same = await desk.ask('PATCH', 'web/providers/moves', { definition: { name: 'Moves' } })
    expect(same.body).toMatchObject({ cleared: [] })
    const moved = await desk.ask('PATCH', 'web/providers/moves', { definition: { baseUrl: `${other.url}/v1` } })
    expect(moved.body.cleared).toEqual([id])
    expect((await desk.ask('GET', at(id!))).body).toMatchObject({ credential: null, state: 'unusable' })
    expect((await desk.ask('GET', at(own!))).body).toMatchObject({ state: 'enabled' })
    await say(desk, 'moves/echo')
    expect(seen()).not.toContain(canary)
    expect((await desk.ask('DELETE', 'web/providers/moves')).error.code).toBe('state_unfit')
  })
})

describe('an address that the environment does not permit', () => {
  const bad: readonly string[] = [
    ...hosts
      .map(([host]) => host)
      .filter(host => !isListed(host))
      .map(host => `http://${host}:PORT/v1`),
    ...hosts
      .map(([host]) => host)
      .filter(host => !isListed(host))
      .map(host => `https://${host}/v1`),
    ...urls.map(([url]) => url),
    ...['http://api.example.com/v1', 'https://user:pass@api.example.com', 'https://api.example.com?x=1'],
  ]

  test.each(bad)('%s is refused for a channel, a change and a provider', async written => {
    const before = other.requests.length
    const baseUrl = written.replace('PORT', port)
    const made = await create({ baseUrl })
    expect([written, made.status, made.error.code]).toEqual([written, 400, 'field_invalid'])
    const [id] = idsOf(await create())
    expect((await desk.ask('PATCH', at(id!), { baseUrl, credential: 'x' })).status).toBe(400)
    await desk.ask('DELETE', at(id!))
    const definition = { ...definitionOf('evil', 'https://x.example'), baseUrl }
    expect((await desk.ask('POST', 'web/providers', { definition })).status).toBe(400)
    expect(other.requests.length).toBe(before)
  })
})

test('a name that leads to a private host is reached neither by a trial nor for its models', async () => {
  const [id] = idsOf(await create({ baseUrl: 'https://innocent.example/v1' }))
  const trial = await desk.ask('POST', at(id!, '/test'), {})
  expect(trial.body).toMatchObject({ ok: false, status: null, verdict: 'broken' })
  expect(trial.text).toContain('its host is not public')
  const listed = await desk.ask('POST', at(id!, '/fetch-models'))
  expect([listed.status, listed.text.includes('its host is not public')]).toEqual([502, true])
})

/** What the environment of this gateway lists: this machine by its plain address, however it is written. */
function isListed(host: string): boolean {
  return ['127.0.0.1', '127.0.0.1.', '[::ffff:7f00:1]'].includes(URL.parse(`http://${host}`)?.hostname ?? '')
}

describe('what the environment holds', () => {
  const define = (definition: object) => desk.ask('POST', 'web/providers', { definition })

  test('is no key of a provider that somebody defines', async () => {
    const stealing = { ...definitionOf('thief', other.url), keyEnv: 'OPENAI_API_KEY' }
    expect((await define(stealing)).status).toBe(201)
    expect(idsOf(await desk.ask('GET', 'web/channels?provider=thief'))).toEqual([])
    expect((await say(desk, 'thief/echo')).status).toBe(503)
    await desk.ask('DELETE', 'web/providers/thief')
    const shipped = (await desk.ask('GET', 'web/providers/openai')).body.definition as Record<string, unknown>
    const moved = await define({ ...shipped, baseUrl: `${other.url}/v1` })
    expect(moved.status).toBe(201)
    expect(idsOf(await desk.ask('GET', 'web/channels?provider=openai&state=enabled'))).toEqual([])
    await say(desk, 'openai/gpt-4o-mini')
    expect(seen()).not.toContain(upstreamKey)
    await desk.ask('DELETE', 'web/providers/openai')
    expect((await say(desk, 'openai/gpt-4o-mini')).status).toBe(200)
  })

  test('stays the key of a shipped provider that is only changed in other ways', async () => {
    const shipped = (await desk.ask('GET', 'web/providers/openai')).body.definition as Record<string, unknown>
    const [id] = idsOf(await desk.ask('GET', 'web/channels?provider=openai'))
    expect((await define({ ...shipped, tags: ['changed'] })).status).toBe(201)
    expect((await desk.ask('GET', at(id!))).body).toMatchObject({ state: 'enabled', tags: ['changed'] })
    expect((await say(desk, 'openai/gpt-4o-mini')).status).toBe(200)
    await desk.ask('DELETE', 'web/providers/openai')
  })

  test.each([
    ['https://{SECRET_OF_ENV}.example.com', 'variables'],
    ['https://example.com/{SECRET_OF_ENV}', 'variables'],
  ])('stands in no address: %s', async (baseUrl, says) => {
    const refused = await define({ ...definitionOf('leaks', other.url), baseUrl })
    expect([refused.status, refused.error.message?.includes(says)]).toEqual([400, true])
    expect(refused.text).not.toContain(environmentSecret)
  })

  test('is not moved to by the name of a variable', async () => {
    const moving = { ...definitionOf('moving', 'https://away.example'), baseUrlEnv: 'OPENAI_BASE_URL' }
    expect((await define(moving)).status).toBe(201)
    const [id] = idsOf(await create({ provider: 'moving' }))
    expect((await desk.ask('GET', at(id!))).body).toMatchObject({ baseUrl: 'https://away.example/v1' })
    await desk.ask('DELETE', at(id!))
    await desk.ask('DELETE', 'web/providers/moving')
  })

  test.each(['builtIn'])('a definition with "%s" is refused', async flag => {
    expect((await define({ ...definitionOf('mine', other.url), [flag]: true })).status).toBe(400)
  })
})

describe('a service account', () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' })
  const account = (uri: string) => JSON.stringify({ client_email: 'a@b', private_key: pem, token_uri: uri })

  test('is no file of this machine, and fetches its tokens from no private host', async () => {
    await defineProvider(desk, 'cloud', { sign: 'google-token' })
    const file = join(folder, 'account.txt')
    writeFileSync(file, account('https://oauth2.googleapis.com/token'))
    for (const credential of [file, account(`${other.url}/token`), account('http://10.0.0.1/token')]) {
      const refused = await create({ provider: 'cloud', credentials: [credential] })
      expect([refused.status, refused.error.message]).toEqual([
        400,
        expect.stringContaining('does not have the format'),
      ])
    }
    const taken = await create({ provider: 'cloud', credentials: [account('https://oauth2.googleapis.com/token')] })
    expect(taken.status).toBe(201)
    expect(other.requests.every(({ path }) => path !== '/token')).toBe(true)
  })
})
