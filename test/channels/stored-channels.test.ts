// Channels and providers that are stored over the web: created, used, changed, deleted, while the gateway runs.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { ChannelSetup } from './channel-setup.ts'
import { allRows, callModel, canary, channelPath, defineProvider, idsOf, startChannelSetup } from './channel-setup.ts'

let setup: ChannelSetup
beforeAll(async () => {
  setup = await startChannelSetup()
  expect((await defineProvider(setup, 'brook')).status).toBe(201)
})
afterAll(() => setup.stop())

const create = (more: object = {}) => setup.ask('POST', 'web/channels', { provider: 'brook', ...more })
const lastKey = () => setup.harness.upstream.requests.at(-1)!.headers.get('authorization')

describe('a channel', () => {
  test('takes calls as soon as it is created, and none after it is deleted', async () => {
    expect((await callModel(setup, 'brook/echo')).status).toBe(503)
    const created = await create({ credentials: [canary], name: 'first' })
    expect(created.status).toBe(201)
    const [id] = idsOf(created)
    expect(id).toMatch(/^brook#ch_[0-9a-z]{11}$/)
    expect((await callModel(setup, 'brook/echo')).status).toBe(200)
    expect(lastKey()).toBe(`Bearer ${canary}`)
    expect(setup.harness.lastRecord()).toMatchObject({ channel: id, provider: 'brook', outcome: 'completed' })
    expect((await setup.ask('DELETE', channelPath(id!))).status).toBe(204)
    expect((await callModel(setup, 'brook/echo')).status).toBe(503)
    expect((await setup.ask('GET', channelPath(id!))).status).toBe(404)
  })

  test('keeps its id and settings when its credential is replaced', async () => {
    const [id] = idsOf(await create({ credentials: ['sk-one-0123456789'], weight: 7, tags: ['eu'] }))
    await callModel(setup, 'brook/echo')
    expect(lastKey()).toBe('Bearer sk-one-0123456789')
    const before = (await setup.ask('GET', channelPath(id!))).body
    const changed = await setup.ask('PATCH', channelPath(id!), { credential: 'sk-two-0123456789' })
    expect(changed.status).toBe(200)
    expect(changed.body).toMatchObject({ id, weight: 7, tags: ['eu'], state: 'enabled' })
    const print = (body: Record<string, unknown>) => (body.credential as { fingerprint: string }).fingerprint
    expect(print(changed.body)).not.toBe(print(before))
    await callModel(setup, 'brook/echo')
    expect(lastKey()).toBe('Bearer sk-two-0123456789')
    await setup.ask('DELETE', channelPath(id!))
  })

  test('is created for each credential of a request, or for none of them', async () => {
    const created = await create({ credentials: ['k-a', 'k-b', 'k-c'], name: 'many' })
    const names = (created.body.data as { name: string }[]).map(({ name }) => name).sort()
    expect(names).toEqual(['many 1', 'many 2', 'many 3'])
    const bad = await create({ credentials: ['k-d', 'with space'], name: 'bad' })
    expect([bad.status, bad.error.code]).toEqual([400, 'field_invalid'])
    for (const name of ['a\0b', 'a\nb', 'a\ud800b']) {
      const unstorable = await create({ credentials: ['k-d'], name })
      expect([name, unstorable.status, unstorable.error.param]).toEqual([name, 400, 'name'])
    }
    const taken = await create({ credentials: ['k-e', 'k-f'], name: 'many' })
    expect([taken.status, taken.error.code]).toEqual([409, 'name_taken'])
    const twice = await create({ credentials: ['k-g', 'k-g'] })
    expect(twice.status).toBe(400)
    const listed = await setup.ask('GET', 'web/channels?provider=brook')
    expect(idsOf(listed)).toHaveLength(3)
    for (const id of idsOf(listed)) await setup.ask('DELETE', channelPath(id))
  })

  test('of the environment is listed with stored ones, and its credential cannot be changed', async () => {
    const [environmentChannel] = idsOf(await setup.ask('GET', 'web/channels?provider=openai&from=environment'))
    const shown = await setup.ask('GET', channelPath(environmentChannel!))
    expect(shown.body).toMatchObject({ from: 'environment', name: null, state: 'enabled', version: 0 })
    for (const change of [{ credential: 'sk-other' }, { baseUrl: 'https://x.example' }, { headers: { 'x-a': 'b' } }]) {
      const refused = await setup.ask('PATCH', channelPath(environmentChannel!), change)
      expect([refused.status, refused.error.code]).toEqual([409, 'state_unfit'])
    }
    expect((await setup.ask('DELETE', channelPath(environmentChannel!))).error.code).toBe('state_unfit')
    const weighed = await setup.ask('PATCH', channelPath(environmentChannel!), { weight: 3 })
    expect(weighed.body).toMatchObject({ weight: 3, from: 'environment' })
    const [stored] = idsOf(await setup.ask('POST', 'web/channels', { provider: 'openai', credentials: ['sk-stored'] }))
    const both = idsOf(await setup.ask('GET', 'web/channels?provider=openai'))
    expect(both.sort()).toEqual([environmentChannel!, stored!].sort())
    await setup.ask('POST', channelPath(environmentChannel!, '/disable'))
    await callModel(setup, 'openai/gpt-4o-mini')
    expect(lastKey()).toBe('Bearer sk-stored')
    await setup.ask('POST', channelPath(environmentChannel!, '/enable'))
    await setup.ask('DELETE', channelPath(stored!))
  })

  test('that somebody else has changed is refused with a stale If-Match', async () => {
    const [id] = idsOf(await create({ credentials: ['k-etag'] }))
    const { headers } = await setup.ask('GET', channelPath(id!))
    const etag = headers.get('etag')!
    const ok = await setup.ask('PATCH', channelPath(id!), { weight: 2 }, { 'if-match': etag })
    expect(ok.status).toBe(200)
    for (const [method, body] of [
      ['PATCH', { weight: 9 }],
      ['PATCH', { name: 'x' }],
      ['DELETE', undefined],
    ] as const) {
      const late = await setup.ask(method, channelPath(id!), body, { 'if-match': etag })
      expect([late.status, late.error.code]).toEqual([412, 'version_stale'])
    }
    expect((await setup.ask('GET', channelPath(id!))).body).toMatchObject({ weight: 2 })
    expect(
      (await setup.ask('DELETE', channelPath(id!), undefined, { 'if-match': ok.headers.get('etag')! })).status,
    ).toBe(204)
  })

  test('is changed in bulk with others, or none of them is', async () => {
    const ids = idsOf(await create({ credentials: ['b-1', 'b-2', 'b-3'] }))
    const named = (version?: number) => ids.map((id, n) => ({ id, ...(n === 2 && version && { version }) }))
    const bulk = (body: object) => setup.ask('POST', 'web/channels/bulk', body)
    const stale = await bulk({ channels: named(5), change: { weight: 4, priority: 2 } })
    expect([stale.status, stale.error.code]).toEqual([412, 'version_stale'])
    const strange = await bulk({ channels: [...named(), { id: 'brook#ch_00000000001' }], change: { weight: 4 } })
    expect(strange.status).toBe(404)
    const fixed = await bulk({ channels: named(), change: { parameters: { 'openai-chat': { set: { model: 'x' } } } } })
    expect(fixed.status).toBe(400)
    const weights = async () =>
      ((await setup.ask('GET', 'web/channels?provider=brook')).body.data as { weight: number }[]).map(row => row.weight)
    expect(await weights()).toEqual([1, 1, 1])
    expect((await bulk({ channels: named(), change: { weight: 4, disabled: true } })).status).toBe(200)
    expect(await weights()).toEqual([4, 4, 4])
    const filtered = await bulk({ filter: { provider: 'brook', state: 'disabled' }, change: { disabled: false } })
    expect(idsOf(filtered).sort()).toEqual(ids.sort())
    expect((await bulk({ change: { weight: 1 } })).status).toBe(400)
    for (const id of ids) await setup.ask('DELETE', channelPath(id))
  })
})

describe('the credential of a channel', () => {
  test('is in no answer, no log, no row and no error', async () => {
    const secret = 'sk-CANARY-never-shown-42'
    const created = await create({ credentials: [secret] })
    const [id] = idsOf(created)
    const answers = [
      created,
      await setup.ask('GET', channelPath(id!)),
      await setup.ask('GET', 'web/channels'),
      await setup.ask('PATCH', channelPath(id!), { credential: `${secret}\n` }),
      await setup.ask('PATCH', channelPath(id!), { credential: secret, colour: secret }),
      await setup.ask('PATCH', channelPath(id!), { credential: { secret } }),
      await setup.ask('POST', channelPath(id!, '/test'), {}),
      await setup.ask('POST', channelPath(id!, '/fetch-models')),
      await create({ credentials: [secret, secret] }),
      await setup.ask('GET', 'web/audit-log'),
    ]
    for (const { text, status } of answers) expect([status, text.includes(secret)]).toEqual([status, false])
    expect(setup.harness.logs.join('\n')).not.toContain(secret)
    expect(allRows(setup.harness)).not.toContain(secret)
    await setup.ask('DELETE', channelPath(id!))
  })
})
