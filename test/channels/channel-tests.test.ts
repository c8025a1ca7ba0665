// Channel tests by a real call, the model list of the upstream of a channel, and adopting models from it.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { fail, garbage, silence } from '../../tools/fake-upstream/answers.ts'
import { modelIds } from '../../tools/fake-upstream/demo-models.ts'
import { dialectPaths, dialects } from '../dialects/upstreams.ts'
import type { ChannelSetup } from './channel-setup.ts'
import { callModel, canary, channelPath, defineProvider, idsOf, startChannelSetup } from './channel-setup.ts'

let setup: ChannelSetup
beforeAll(async () => {
  setup = await startChannelSetup()
})
afterAll(() => setup.stop())

async function createChannel(provider: string, more: object = {}, channel: object = {}): Promise<string> {
  const defined = await defineProvider(setup, provider, more)
  expect([defined.status, defined.text]).toEqual([201, defined.text])
  const created = await setup.ask('POST', 'web/channels', { provider, credentials: [canary], ...channel })
  expect([created.status, created.text]).toEqual([201, created.text])
  return idsOf(created)[0]!
}

const testChannel = (id: string, body: object = {}) => setup.ask('POST', channelPath(id, '/test'), body)

describe('a channel test', () => {
  test.each([...dialects])('works in %s, shows no secret, and charges nobody', async dialect => {
    const { base, paths } = dialectPaths[dialect]
    const baseUrl = setup.harness.upstream.url + base
    const id = await createChannel(
      `try-${dialect}`,
      { baseUrl, speaks: { [dialect]: paths } },
      { headers: { 'x-team': 'a' } },
    )
    const before = setup.harness.recordCount()
    const result = await testChannel(id)
    const model = `try-${dialect}/echo`
    expect(result.body).toMatchObject({ ok: true, status: 200, verdict: 'answered', dialect, model })
    const { sent, received } = result.body as { sent: Record<string, unknown>; received: { body: string } }
    expect(sent).toMatchObject({ method: 'POST', overrides: ['x-team'], headers: { 'x-team': 'a' } })
    expect(JSON.stringify(sent)).toContain('[secret]')
    expect(received.body.length).toBeGreaterThan(10)
    expect(result.text).not.toContain(canary)
    expect(setup.harness.upstream.requests.at(-1)!.headers.get('authorization')).toBe(`Bearer ${canary}`)
    expect(setup.harness.records()).toHaveLength(before)
  })

  test('that fails reports a verdict and advice, and does not change the health of the channel', async () => {
    const id = await createChannel('tried')
    await callModel(setup, 'tried/echo')
    const failures = [
      [fail(401), 'credential_bad'],
      [fail(429), 'rate_limited'],
      [fail(402), 'quota_spent'],
      [fail(500), 'broken'],
      [garbage(), 'broken'],
      [fail(400), 'caller_at_fault'],
    ] as const
    for (const [script, verdict] of failures) {
      for (let again = 0; again < 6; again++) {
        setup.harness.upstream.plan(script)
        const result = await testChannel(id)
        expect(result.body).toMatchObject({ ok: false, verdict, advice: expect.any(String) })
      }
      expect(((await setup.ask('GET', channelPath(id))).body.health as { state: string }).state).toBe('available')
    }
  })

  test('that is answered makes an unavailable channel available again', async () => {
    const id = await createChannel('closed')
    setup.harness.upstream.plan(fail(401))
    await callModel(setup, 'closed/echo')
    const state = async () => ((await setup.ask('GET', channelPath(id))).body.health as { state: string }).state
    expect(await state()).toBe('credential_bad')
    expect((await testChannel(id)).body).toMatchObject({ ok: true })
    expect(await state()).toBe('available')
  })

  test('ends by the timeout of the channel, and redacts a secret that the upstream echoes', async () => {
    const id = await createChannel('echoing', {}, { times: { totalSeconds: 1 } })
    setup.harness.upstream.plan(silence())
    expect((await testChannel(id)).body).toMatchObject({ ok: false, verdict: 'too_slow', status: null })
    // Another channel: an answer that is late on a busy machine would be too slow for this one.
    const patient = await createChannel('patient')
    setup.harness.upstream.plan(fail(401, { error: { message: `wrong key: ${canary}`, type: 'x' } }))
    const result = await testChannel(patient)
    expect(result.body).toMatchObject({ verdict: 'credential_bad' })
    expect(result.text).not.toContain(canary)
  })

  test('needs a known model and a known channel', async () => {
    const id = await createChannel('picky')
    expect((await testChannel(id, { model: 'picky/echo' })).body).toMatchObject({ ok: true })
    expect((await testChannel(id, { model: 'nothing' })).status).toBe(400)
    expect((await testChannel('picky#ch_00000000001')).status).toBe(404)
  })
})

describe('the model list of an upstream', () => {
  test.each([...dialects])('is fetched in %s and compared with the known models', async dialect => {
    const { base, paths } = dialectPaths[dialect]
    const price = { input: '1', output: '2' }
    const models = [
      { id: 'echo', price },
      { id: 'long-gone', price },
    ]
    const baseUrl = setup.harness.upstream.url + base
    const id = await createChannel(`list-${dialect}`, { baseUrl, speaks: { [dialect]: paths }, models })
    const { body } = await setup.ask('POST', channelPath(id, '/fetch-models'))
    expect(body).toMatchObject({ known: ['echo'], gone: ['long-gone'], priced: ['echo', 'long-gone'] })
    expect((body.fresh as string[]).toSorted()).toEqual(modelIds.filter(model => model !== 'echo').toSorted())
  })

  test('has models that can be adopted with a price and called at once', async () => {
    await createChannel('adopts')
    expect((await callModel(setup, 'adopts/lorem')).status).toBe(404)
    const adopt = (models: object[]) => setup.ask('POST', 'web/providers/adopts/models', { models })
    const adopted = await adopt([{ id: 'lorem', price: { input: '3', output: '4' } }, { id: 'slow' }])
    expect([adopted.status, adopted.body.models]).toEqual([200, 3])
    expect((await callModel(setup, 'adopts/lorem')).status).toBe(200)
    expect(setup.harness.lastRecord()).toMatchObject({ provider: 'adopts', model: 'lorem', outcome: 'completed' })
    expect(Number(setup.harness.lastRecord()!.cost)).toBeGreaterThan(0)
    expect((await callModel(setup, 'adopts/slow')).status).toBe(503)
    const model = await setup.ask('GET', 'web/models/adopts/lorem')
    expect(model.body).toMatchObject({ available: true, price: { rates: { input: '3.00', output: '4.00' } } })
    expect((await setup.ask('GET', 'web/models?provider=adopts&available=false')).body.data).toMatchObject([
      { id: 'adopts/slow' },
    ])
    expect((await adopt([{ id: 'x' }, { id: 'x' }])).status).toBe(400)
    expect((await adopt([{ id: 'x', colour: 'red' }])).status).toBe(400)
    const repriced = await adopt([{ id: 'lorem', price: { input: '30', output: '40' } }])
    expect(repriced.status).toBe(200)
    expect((await setup.ask('GET', 'web/models/adopts/lorem')).body).toMatchObject({
      price: { rates: { input: '30.00' } },
    })
    const listed = JSON.stringify((await setup.ask('GET', 'public/models')).body)
    expect(listed).toContain('adopts/lorem')
  })

  test('that the upstream does not serve is answered with 502, without the secret', async () => {
    const id = await createChannel('mute')
    setup.harness.upstream.plan(fail(404, { error: { message: `no list for ${canary}`, type: 'x' } }))
    const refused = await setup.ask('POST', channelPath(id, '/fetch-models'))
    expect([refused.status, refused.error.code]).toEqual([502, 'upstream_unusable'])
    expect(refused.text).not.toContain(canary)
    const odd = await createChannel('odd', { speaks: { 'openai-chat': '/talk' } })
    expect((await setup.ask('POST', channelPath(odd, '/fetch-models'))).status).toBe(502)
  })
})

describe('a custom provider', () => {
  test('replaces a shipped one until it is deleted', async () => {
    const shipped = (await setup.ask('GET', 'web/providers/openai')).body
    expect(shipped).toMatchObject({ from: 'shipped', problem: null })
    const definition = { ...(shipped.definition as object), name: 'Mine' }
    expect((await setup.ask('POST', 'web/providers', { definition })).body).toMatchObject({ from: 'own over shipped' })
    expect((await setup.ask('POST', 'web/providers', { definition })).error.code).toBe('name_taken')
    expect((await setup.ask('GET', 'web/providers/openai')).body).toMatchObject({ name: 'Mine' })
    expect((await setup.ask('DELETE', 'web/providers/openai')).status).toBe(200)
    expect((await setup.ask('GET', 'web/providers/openai')).body).toMatchObject({ name: shipped.name, from: 'shipped' })
    expect((await setup.ask('DELETE', 'web/providers/openai')).status).toBe(404)
    expect((await callModel(setup, 'openai/gpt-4o-mini')).status).toBe(200)
  })

  test('is checked like a provider file, and by its version', async () => {
    const bad = await setup.ask('POST', 'web/providers', { definition: { id: 'x' } })
    expect([bad.status, bad.error.message]).toEqual([
      400,
      expect.stringContaining('"baseUrl" must be a non-empty string'),
    ])
    const id = await setup.ask('PATCH', 'web/providers/adopts', { definition: { id: 'other' } })
    expect(id.status).toBe(400)
    expect((await setup.ask('PATCH', 'web/providers/nobody', { definition: {} })).status).toBe(404)
    const { headers } = await setup.ask('GET', 'web/providers/adopts')
    const stale = await setup.ask('PATCH', 'web/providers/adopts', { definition: {} }, { 'if-match': '"1"' })
    expect(stale.error.code).toBe('version_stale')
    const etag = { 'if-match': headers.get('etag')! }
    expect((await setup.ask('PATCH', 'web/providers/adopts', { definition: { tags: ['x'] } }, etag)).status).toBe(200)
  })
})

describe('a route name', () => {
  const route = (name: string) => `web/routes/${encodeURIComponent(name)}`

  test('is set, shown, listed and removed', async () => {
    await createChannel('named')
    const set = await setup.ask('PUT', route('smart'), { members: [{ model: 'named/echo' }], policy: 'fastest' })
    expect(set.body).toMatchObject({ name: 'smart', policy: 'fastest', warnings: [] })
    expect((await callModel(setup, 'smart')).status).toBe(200)
    const group = await setup.ask('PUT', 'web/routes/team/fast', { members: [{ model: 'smart' }] })
    expect(group.status).toBe(200)
    expect((await setup.ask('GET', 'web/routes?name=team%2F')).body.data).toMatchObject([{ name: 'team/fast' }])
    const gone = await setup.ask('DELETE', route('smart'))
    expect(gone.body.warnings).toEqual([
      expect.stringContaining('members that no longer exist, and ignore them: team/fast'),
    ])
    expect((await setup.ask('GET', route('smart'))).status).toBe(404)
    expect((await setup.ask('DELETE', route('smart'))).status).toBe(404)
  })

  test.each([
    [{ members: [] }],
    [{ members: [{ model: 'named/nothing' }] }],
    [{ members: [{ model: 'nobody/echo' }] }],
    [{ members: [{ model: 'named/echo' }, { model: 'named/echo' }] }],
    [{ members: [{ model: 'loop' }] }],
    [{ members: [{ model: 'named/echo', weight: 0 }] }],
    [{ members: [{ model: 'named/echo' }], policy: 'best' }],
  ])('cannot be set to %j', async body => {
    expect((await setup.ask('PUT', route('loop'), body)).status).toBe(400)
  })
})
