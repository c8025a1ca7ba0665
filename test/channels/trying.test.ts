// Trying a channel by a real call, asking its upstream which models it has, and taking some of them over.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { fail, garbage, silence } from '../../tools/fake-upstream/answers.ts'
import { modelIds } from '../../tools/fake-upstream/demo-models.ts'
import { dialects, spoken } from '../dialects/upstreams.ts'
import type { ChannelDesk } from './desk.ts'
import { at, canary, defineProvider, idsOf, openChannelDesk, say } from './desk.ts'

let desk: ChannelDesk
beforeAll(async () => {
  desk = await openChannelDesk()
})
afterAll(() => desk.stop())

async function make(provider: string, more: object = {}, channel: object = {}): Promise<string> {
  const defined = await defineProvider(desk, provider, more)
  expect([defined.status, defined.text]).toEqual([201, defined.text])
  const made = await desk.ask('POST', 'web/channels', { provider, credentials: [canary], ...channel })
  expect([made.status, made.text]).toEqual([201, made.text])
  return idsOf(made)[0]!
}

const tryIt = (id: string, body: object = {}) => desk.ask('POST', at(id, '/test'), body)

describe('a trial', () => {
  test.each([...dialects])('speaks %s, is shown without the secret, and nobody pays for it', async dialect => {
    const { base, paths } = spoken[dialect]
    const baseUrl = desk.harness.upstream.url + base
    const id = await make(`try-${dialect}`, { baseUrl, speaks: { [dialect]: paths } }, { headers: { 'x-team': 'a' } })
    const before = desk.harness.records().length
    const trial = await tryIt(id)
    const model = `try-${dialect}/echo`
    expect(trial.body).toMatchObject({ ok: true, status: 200, verdict: 'answered', dialect, model })
    const { sent, received } = trial.body as { sent: Record<string, unknown>; received: { body: string } }
    expect(sent).toMatchObject({ method: 'POST', overrides: ['x-team'], headers: { 'x-team': 'a' } })
    expect(JSON.stringify(sent)).toContain('[secret]')
    expect(received.body.length).toBeGreaterThan(10)
    expect(trial.text).not.toContain(canary)
    expect(desk.harness.upstream.requests.at(-1)!.headers.get('authorization')).toBe(`Bearer ${canary}`)
    expect(desk.harness.records()).toHaveLength(before)
  })

  test('that fails says why and what to do, and is not held against the channel', async () => {
    const id = await make('tried')
    await say(desk, 'tried/echo')
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
        desk.harness.upstream.plan(script)
        const trial = await tryIt(id)
        expect(trial.body).toMatchObject({ ok: false, verdict, advice: expect.any(String) })
      }
      expect(((await desk.ask('GET', at(id))).body.health as { state: string }).state).toBe('available')
    }
  })

  test('that is answered opens a channel that was closed', async () => {
    const id = await make('closed')
    desk.harness.upstream.plan(fail(401))
    await say(desk, 'closed/echo')
    const state = async () => ((await desk.ask('GET', at(id))).body.health as { state: string }).state
    expect(await state()).toBe('credential_bad')
    expect((await tryIt(id)).body).toMatchObject({ ok: true })
    expect(await state()).toBe('available')
  })

  test('ends in time, and an upstream that repeats the secret is not repeated', async () => {
    const id = await make('echoing', {}, { times: { totalSeconds: 1 } })
    desk.harness.upstream.plan(silence())
    expect((await tryIt(id)).body).toMatchObject({ ok: false, verdict: 'too_slow', status: null })
    desk.harness.upstream.plan(fail(401, { error: { message: `wrong key: ${canary}`, type: 'x' } }))
    const trial = await tryIt(id)
    expect(trial.body).toMatchObject({ verdict: 'credential_bad' })
    expect(trial.text).not.toContain(canary)
  })

  test('needs a model that there is', async () => {
    const id = await make('picky')
    expect((await tryIt(id, { model: 'picky/echo' })).body).toMatchObject({ ok: true })
    expect((await tryIt(id, { model: 'nothing' })).status).toBe(400)
    expect((await tryIt('picky#ch_00000000001')).status).toBe(404)
  })
})

describe('the models of an upstream', () => {
  test.each([...dialects])('are listed in %s and held against those that are known', async dialect => {
    const { base, paths } = spoken[dialect]
    const price = { input: '1', output: '2' }
    const models = [
      { id: 'echo', price },
      { id: 'long-gone', price },
    ]
    const baseUrl = desk.harness.upstream.url + base
    const id = await make(`list-${dialect}`, { baseUrl, speaks: { [dialect]: paths }, models })
    const { body } = await desk.ask('POST', at(id, '/fetch-models'))
    expect(body).toMatchObject({ known: ['echo'], gone: ['long-gone'], priced: ['echo'] })
    expect((body.fresh as string[]).toSorted()).toEqual(modelIds.filter(model => model !== 'echo').toSorted())
  })

  test('are taken over with their prices, and called at once', async () => {
    await make('adopts')
    expect((await say(desk, 'adopts/lorem')).status).toBe(404)
    const adopt = (models: object[]) => desk.ask('POST', 'web/providers/adopts/models', { models })
    const taken = await adopt([{ id: 'lorem', price: { input: '3', output: '4' } }, { id: 'slow' }])
    expect([taken.status, taken.body.models]).toEqual([200, 3])
    expect((await say(desk, 'adopts/lorem')).status).toBe(200)
    expect(desk.harness.records().at(-1)).toMatchObject({ provider: 'adopts', model: 'lorem', outcome: 'completed' })
    expect(Number(desk.harness.records().at(-1)!.cost)).toBeGreaterThan(0)
    expect((await say(desk, 'adopts/slow')).status).toBe(503)
    const model = await desk.ask('GET', 'web/models/adopts/lorem')
    expect(model.body).toMatchObject({ available: true, price: { rates: { input: '3.00', output: '4.00' } } })
    expect((await desk.ask('GET', 'web/models?provider=adopts&available=false')).body.data).toMatchObject([
      { id: 'adopts/slow' },
    ])
    expect((await adopt([{ id: 'x' }, { id: 'x' }])).status).toBe(400)
    expect((await adopt([{ id: 'x', colour: 'red' }])).status).toBe(400)
    const repriced = await adopt([{ id: 'lorem', price: { input: '30', output: '40' } }])
    expect(repriced.status).toBe(200)
    expect((await desk.ask('GET', 'web/models/adopts/lorem')).body).toMatchObject({
      price: { rates: { input: '30.00' } },
    })
    const listed = JSON.stringify((await desk.ask('GET', 'public/models')).body)
    expect(listed).toContain('adopts/lorem')
  })

  test('of an upstream that does not tell are not known, in its own words', async () => {
    const id = await make('mute')
    desk.harness.upstream.plan(fail(404, { error: { message: `no list for ${canary}`, type: 'x' } }))
    const refused = await desk.ask('POST', at(id, '/fetch-models'))
    expect([refused.status, refused.error.code]).toEqual([502, 'upstream_unusable'])
    expect(refused.text).not.toContain(canary)
    const odd = await make('odd', { speaks: { 'openai-chat': '/talk' } })
    expect((await desk.ask('POST', at(odd, '/fetch-models'))).status).toBe(502)
  })
})

describe('a provider', () => {
  test('goes before a shipped one, and that holds again when it is gone', async () => {
    const shipped = (await desk.ask('GET', 'web/providers/openai')).body
    expect(shipped).toMatchObject({ from: 'shipped', problem: null })
    const definition = { ...(shipped.definition as object), name: 'Mine' }
    expect((await desk.ask('POST', 'web/providers', { definition })).body).toMatchObject({ from: 'own over shipped' })
    expect((await desk.ask('POST', 'web/providers', { definition })).error.code).toBe('name_taken')
    expect((await desk.ask('GET', 'web/providers/openai')).body).toMatchObject({ name: 'Mine' })
    expect((await desk.ask('DELETE', 'web/providers/openai')).status).toBe(200)
    expect((await desk.ask('GET', 'web/providers/openai')).body).toMatchObject({ name: shipped.name, from: 'shipped' })
    expect((await desk.ask('DELETE', 'web/providers/openai')).status).toBe(404)
    expect((await say(desk, 'openai/gpt-4o-mini')).status).toBe(200)
  })

  test('is refused in the words of a provider file', async () => {
    const bad = await desk.ask('POST', 'web/providers', { definition: { id: 'x' } })
    expect([bad.status, bad.error.message]).toEqual([
      400,
      expect.stringContaining('"baseUrl" must be a non-empty string'),
    ])
    const id = await desk.ask('PATCH', 'web/providers/adopts', { definition: { id: 'other' } })
    expect(id.status).toBe(400)
    expect((await desk.ask('PATCH', 'web/providers/nobody', { definition: {} })).status).toBe(404)
    const { headers } = await desk.ask('GET', 'web/providers/adopts')
    const stale = await desk.ask('PATCH', 'web/providers/adopts', { definition: {} }, { 'if-match': '"1"' })
    expect(stale.error.code).toBe('version_stale')
    const etag = { 'if-match': headers.get('etag')! }
    expect((await desk.ask('PATCH', 'web/providers/adopts', { definition: { tags: ['x'] } }, etag)).status).toBe(200)
  })
})

describe('a name for models', () => {
  const route = (name: string) => `web/routes/${encodeURIComponent(name)}`

  test('is set, shown, listed and removed', async () => {
    await make('named')
    const set = await desk.ask('PUT', route('smart'), { members: [{ model: 'named/echo' }], policy: 'fastest' })
    expect(set.body).toMatchObject({ name: 'smart', policy: 'fastest', warnings: [] })
    expect((await say(desk, 'smart')).status).toBe(200)
    const group = await desk.ask('PUT', 'web/routes/team/fast', { members: [{ model: 'smart' }] })
    expect(group.status).toBe(200)
    expect((await desk.ask('GET', 'web/routes?name=team%2F')).body.data).toMatchObject([{ name: 'team/fast' }])
    const gone = await desk.ask('DELETE', route('smart'))
    expect(gone.body.warnings).toEqual([expect.stringContaining('still lists this name')])
    expect((await desk.ask('GET', route('smart'))).status).toBe(404)
    expect((await desk.ask('DELETE', route('smart'))).status).toBe(404)
  })

  test.each([
    [{ members: [] }],
    [{ members: [{ model: 'named/nothing' }] }],
    [{ members: [{ model: 'nobody/echo' }] }],
    [{ members: [{ model: 'named/echo' }, { model: 'named/echo' }] }],
    [{ members: [{ model: 'loop' }] }],
    [{ members: [{ model: 'named/echo', weight: 0 }] }],
    [{ members: [{ model: 'named/echo' }], policy: 'best' }],
  ])('%j makes no sense', async body => {
    expect((await desk.ask('PUT', route('loop'), body)).status).toBe(400)
  })
})
