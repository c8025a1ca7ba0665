// A credential is sent only to the host for which it was set. People who edit channels over the web reach only hosts that
// the environment permits.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FakeUpstream } from '../../tools/fake-upstream/server.ts'
import { startFakeUpstream } from '../../tools/fake-upstream/server.ts'
import { hosts, urls } from '../network/corpus.ts'
import { upstreamKey } from '../support/gateway.ts'
import type { ChannelSetup } from './channel-setup.ts'
import {
  callModel,
  canary,
  channelPath,
  defineProvider,
  definitionOf,
  idsOf,
  startChannelSetup,
} from './channel-setup.ts'

let setup: ChannelSetup
let other: FakeUpstream
let port: string
const folder = mkdtempSync(join(tmpdir(), 'weir-hosts-'))
const environmentSecret = 'env-secret-canary-77'
beforeAll(async () => {
  other = await startFakeUpstream()
  port = new URL(other.url).port
  const env = { SECRET_OF_ENV: environmentSecret, WEIR_PROVIDERS: folder }
  const resolve = async () => ['10.1.2.3']
  setup = await startChannelSetup({ env, world: { upstreams: { resolve } } })
  await defineProvider(setup, 'brook')
})
afterAll(async () => {
  await setup.stop()
  await other.stop()
  rmSync(folder, { recursive: true, force: true })
})
beforeEach(async () => {
  const all = await setup.ask('GET', 'web/channels?from=stored&limit=200')
  for (const id of idsOf(all)) await setup.ask('DELETE', channelPath(id))
})

const create = (more: object = {}) =>
  setup.ask('POST', 'web/channels', { provider: 'brook', credentials: [canary], ...more })

/** Everything that the other host has received. */
const received = (): string =>
  other.requests.map(({ rawHead, body }) => `${rawHead}\n${Buffer.from(body).toString()}`).join('\n')

describe('a channel whose base URL moves to another host', () => {
  test('loses its credential, with a warning and a row in the audit log', async () => {
    const [id] = idsOf(await create())
    const moved = await setup.ask('PATCH', channelPath(id!), { baseUrl: `${other.url}/v1` })
    expect(moved.body).toMatchObject({ credential: null, state: 'unusable', ownBaseUrl: `${other.url}/v1` })
    expect(moved.body.warnings).toEqual([expect.stringContaining('need their credential again')])
    expect((await callModel(setup, 'brook/echo')).status).toBe(503)
    for (const path of ['/test', '/fetch-models']) {
      expect((await setup.ask('POST', channelPath(id!, path), path === '/test' ? {} : undefined)).status).toBe(409)
    }
    expect(received()).not.toContain(canary)
    const log = await setup.ask('GET', `web/audit-log?target=${encodeURIComponent(id!)}`)
    expect(JSON.stringify(log.body)).toContain('"cleared"')
    await setup.ask('PATCH', channelPath(id!), { credential: 'for-the-other' })
    expect((await callModel(setup, 'brook/echo')).status).toBe(200)
    expect(received()).toContain('for-the-other')
  })

  test('keeps its credential for another path of the same host, and may get a new one in the same request', async () => {
    const [id] = idsOf(await create())
    const path = await setup.ask('PATCH', channelPath(id!), { baseUrl: `${setup.harness.upstream.url}/other` })
    expect(path.body).toMatchObject({ state: 'enabled', warnings: [] })
    const moved = await setup.ask('PATCH', channelPath(id!), { baseUrl: `${other.url}/v1`, credential: 'given-along' })
    expect(moved.body).toMatchObject({ state: 'enabled', credential: { origin: other.url }, warnings: [] })
    const back = await setup.ask('PATCH', channelPath(id!), { baseUrl: null })
    expect(back.body).toMatchObject({ credential: null, state: 'unusable' })
  })

  test('because its provider moved loses its credential as well', async () => {
    await defineProvider(setup, 'moves')
    const [id] = idsOf(await create({ provider: 'moves' }))
    const [own] = idsOf(await create({ provider: 'moves', name: 'own', baseUrl: `${setup.harness.upstream.url}/v1` }))
    const same = await setup.ask('PATCH', 'web/providers/moves', { definition: { name: 'Moves' } })
    expect(same.body).toMatchObject({ cleared: [] })
    const moved = await setup.ask('PATCH', 'web/providers/moves', { definition: { baseUrl: `${other.url}/v1` } })
    expect(moved.body.cleared).toEqual([id])
    expect((await setup.ask('GET', channelPath(id!))).body).toMatchObject({ credential: null, state: 'unusable' })
    expect((await setup.ask('GET', channelPath(own!))).body).toMatchObject({ state: 'enabled' })
    await callModel(setup, 'moves/echo')
    expect(received()).not.toContain(canary)
    expect((await setup.ask('DELETE', 'web/providers/moves')).error.code).toBe('state_unfit')
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
    const created = await create({ baseUrl })
    expect([written, created.status, created.error.code]).toEqual([written, 400, 'field_invalid'])
    const [id] = idsOf(await create())
    expect((await setup.ask('PATCH', channelPath(id!), { baseUrl, credential: 'x' })).status).toBe(400)
    await setup.ask('DELETE', channelPath(id!))
    const definition = { ...definitionOf('evil', 'https://x.example'), baseUrl }
    expect((await setup.ask('POST', 'web/providers', { definition })).status).toBe(400)
    expect(other.requests.length).toBe(before)
  })
})

test('a name that resolves to a private host is reached neither by a channel test nor by a model list', async () => {
  const [id] = idsOf(await create({ baseUrl: 'https://innocent.example/v1' }))
  const trial = await setup.ask('POST', channelPath(id!, '/test'), {})
  expect(trial.body).toMatchObject({ ok: false, status: null, verdict: 'broken' })
  expect(trial.text).toContain('its host is not public')
  const listed = await setup.ask('POST', channelPath(id!, '/fetch-models'))
  expect([listed.status, listed.text.includes('its host is not public')]).toEqual([502, true])
})

/** Whether the environment of this gateway permits the host: 127.0.0.1 in any spelling. */
function isListed(host: string): boolean {
  return ['127.0.0.1', '127.0.0.1.', '[::ffff:7f00:1]'].includes(URL.parse(`http://${host}`)?.hostname ?? '')
}

describe('a variable of the environment', () => {
  const define = (definition: object) => setup.ask('POST', 'web/providers', { definition })

  test('is not used as the key of a custom provider', async () => {
    const stealing = { ...definitionOf('thief', other.url), keyEnv: 'OPENAI_API_KEY' }
    expect((await define(stealing)).status).toBe(201)
    expect(idsOf(await setup.ask('GET', 'web/channels?provider=thief'))).toEqual([])
    expect((await callModel(setup, 'thief/echo')).status).toBe(503)
    await setup.ask('DELETE', 'web/providers/thief')
    const shipped = (await setup.ask('GET', 'web/providers/openai')).body.definition as Record<string, unknown>
    const moved = await define({ ...shipped, baseUrl: `${other.url}/v1` })
    expect(moved.status).toBe(201)
    expect(idsOf(await setup.ask('GET', 'web/channels?provider=openai&state=enabled'))).toEqual([])
    await callModel(setup, 'openai/gpt-4o-mini')
    expect(received()).not.toContain(upstreamKey)
    await setup.ask('DELETE', 'web/providers/openai')
    expect((await callModel(setup, 'openai/gpt-4o-mini')).status).toBe(200)
  })

  test('stays the key of a shipped provider whose address is not changed', async () => {
    const shipped = (await setup.ask('GET', 'web/providers/openai')).body.definition as Record<string, unknown>
    const [id] = idsOf(await setup.ask('GET', 'web/channels?provider=openai'))
    expect((await define({ ...shipped, tags: ['changed'] })).status).toBe(201)
    expect((await setup.ask('GET', channelPath(id!))).body).toMatchObject({ state: 'enabled', tags: ['changed'] })
    expect((await callModel(setup, 'openai/gpt-4o-mini')).status).toBe(200)
    await setup.ask('DELETE', 'web/providers/openai')
  })

  test.each([
    ['https://{SECRET_OF_ENV}.example.com', 'variables'],
    ['https://example.com/{SECRET_OF_ENV}', 'variables'],
  ])('is not inserted into the address %s', async (baseUrl, says) => {
    const refused = await define({ ...definitionOf('leaks', other.url), baseUrl })
    expect([refused.status, refused.error.message?.includes(says)]).toEqual([400, true])
    expect(refused.text).not.toContain(environmentSecret)
  })

  test('named by baseUrlEnv does not replace the address of a custom provider', async () => {
    const moving = { ...definitionOf('moving', 'https://away.example'), baseUrlEnv: 'OPENAI_BASE_URL' }
    expect((await define(moving)).status).toBe(201)
    const [id] = idsOf(await create({ provider: 'moving' }))
    expect((await setup.ask('GET', channelPath(id!))).body).toMatchObject({ baseUrl: 'https://away.example/v1' })
    await setup.ask('DELETE', channelPath(id!))
    await setup.ask('DELETE', 'web/providers/moving')
  })

  test.each(['builtIn'])('is not read for a definition with "%s", which is refused', async flag => {
    expect((await define({ ...definitionOf('mine', other.url), [flag]: true })).status).toBe(400)
  })
})

describe('a service account', () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' })
  const account = (uri: string) => JSON.stringify({ client_email: 'a@b', private_key: pem, token_uri: uri })

  test('can be neither a file of this machine nor have a token URI on a private host', async () => {
    await defineProvider(setup, 'cloud', { sign: 'google-token' })
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
