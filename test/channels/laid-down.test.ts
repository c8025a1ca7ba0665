// Channels and providers that are laid down over the web: made, used, changed, removed, while the gateway runs.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { ChannelDesk } from './desk.ts'
import { allRows, at, canary, defineProvider, idsOf, openChannelDesk, say } from './desk.ts'

let desk: ChannelDesk
beforeAll(async () => {
  desk = await openChannelDesk()
  expect((await defineProvider(desk, 'brook')).status).toBe(201)
})
afterAll(() => desk.stop())

const create = (more: object = {}) => desk.ask('POST', 'web/channels', { provider: 'brook', ...more })
const lastKey = () => desk.harness.upstream.requests.at(-1)!.headers.get('authorization')

describe('a channel', () => {
  test('takes calls as soon as it is made, and none when it is gone', async () => {
    expect((await say(desk, 'brook/echo')).status).toBe(503)
    const made = await create({ credentials: [canary], name: 'first' })
    expect(made.status).toBe(201)
    const [id] = idsOf(made)
    expect(id).toMatch(/^brook#ch_[0-9a-z]{11}$/)
    expect((await say(desk, 'brook/echo')).status).toBe(200)
    expect(lastKey()).toBe(`Bearer ${canary}`)
    expect(desk.harness.records().at(-1)).toMatchObject({ channel: id, provider: 'brook', outcome: 'completed' })
    expect((await desk.ask('DELETE', at(id!))).status).toBe(204)
    expect((await say(desk, 'brook/echo')).status).toBe(503)
    expect((await desk.ask('GET', at(id!))).status).toBe(404)
  })

  test('keeps its id and what is said of it when its credential is replaced', async () => {
    const [id] = idsOf(await create({ credentials: ['sk-one-0123456789'], weight: 7, tags: ['eu'] }))
    await say(desk, 'brook/echo')
    expect(lastKey()).toBe('Bearer sk-one-0123456789')
    const before = (await desk.ask('GET', at(id!))).body
    const changed = await desk.ask('PATCH', at(id!), { credential: 'sk-two-0123456789' })
    expect(changed.status).toBe(200)
    expect(changed.body).toMatchObject({ id, weight: 7, tags: ['eu'], state: 'enabled' })
    const print = (body: Record<string, unknown>) => (body.credential as { fingerprint: string }).fingerprint
    expect(print(changed.body)).not.toBe(print(before))
    await say(desk, 'brook/echo')
    expect(lastKey()).toBe('Bearer sk-two-0123456789')
    await desk.ask('DELETE', at(id!))
  })

  test('is one for each credential, all or none', async () => {
    const made = await create({ credentials: ['k-a', 'k-b', 'k-c'], name: 'many' })
    const names = (made.body.data as { name: string }[]).map(({ name }) => name).sort()
    expect(names).toEqual(['many 1', 'many 2', 'many 3'])
    const bad = await create({ credentials: ['k-d', 'with space'], name: 'bad' })
    expect([bad.status, bad.error.code]).toEqual([400, 'field_invalid'])
    const taken = await create({ credentials: ['k-e', 'k-f'], name: 'many' })
    expect([taken.status, taken.error.code]).toEqual([409, 'name_taken'])
    const twice = await create({ credentials: ['k-g', 'k-g'] })
    expect(twice.status).toBe(400)
    const listed = await desk.ask('GET', 'web/channels?provider=brook')
    expect(idsOf(listed)).toHaveLength(3)
    for (const id of idsOf(listed)) await desk.ask('DELETE', at(id))
  })

  test('of the environment is shown beside it, and its key is not to be changed', async () => {
    const [env] = idsOf(await desk.ask('GET', 'web/channels?provider=openai&from=environment'))
    const shown = await desk.ask('GET', at(env!))
    expect(shown.body).toMatchObject({ from: 'environment', name: null, state: 'enabled', version: 0 })
    for (const change of [{ credential: 'sk-other' }, { baseUrl: 'https://x.example' }, { headers: { 'x-a': 'b' } }]) {
      const refused = await desk.ask('PATCH', at(env!), change)
      expect([refused.status, refused.error.code]).toEqual([409, 'state_unfit'])
    }
    expect((await desk.ask('DELETE', at(env!))).error.code).toBe('state_unfit')
    const weighed = await desk.ask('PATCH', at(env!), { weight: 3 })
    expect(weighed.body).toMatchObject({ weight: 3, from: 'environment' })
    const [stored] = idsOf(await desk.ask('POST', 'web/channels', { provider: 'openai', credentials: ['sk-stored'] }))
    const both = idsOf(await desk.ask('GET', 'web/channels?provider=openai'))
    expect(both.sort()).toEqual([env!, stored!].sort())
    await desk.ask('POST', at(env!, '/disable'))
    await say(desk, 'openai/gpt-4o-mini')
    expect(lastKey()).toBe('Bearer sk-stored')
    await desk.ask('POST', at(env!, '/enable'))
    await desk.ask('DELETE', at(stored!))
  })

  test('that somebody else has changed is not changed', async () => {
    const [id] = idsOf(await create({ credentials: ['k-etag'] }))
    const { headers } = await desk.ask('GET', at(id!))
    const etag = headers.get('etag')!
    const ok = await desk.ask('PATCH', at(id!), { weight: 2 }, { 'if-match': etag })
    expect(ok.status).toBe(200)
    for (const [method, body] of [
      ['PATCH', { weight: 9 }],
      ['PATCH', { name: 'x' }],
      ['DELETE', undefined],
    ] as const) {
      const late = await desk.ask(method, at(id!), body, { 'if-match': etag })
      expect([late.status, late.error.code]).toEqual([412, 'version_stale'])
    }
    expect((await desk.ask('GET', at(id!))).body).toMatchObject({ weight: 2 })
    expect((await desk.ask('DELETE', at(id!), undefined, { 'if-match': ok.headers.get('etag')! })).status).toBe(204)
  })

  test('is changed with many others, or none of them is', async () => {
    const ids = idsOf(await create({ credentials: ['b-1', 'b-2', 'b-3'] }))
    const named = (version?: number) => ids.map((id, n) => ({ id, ...(n === 2 && version && { version }) }))
    const bulk = (body: object) => desk.ask('POST', 'web/channels/bulk', body)
    const stale = await bulk({ channels: named(5), change: { weight: 4, priority: 2 } })
    expect([stale.status, stale.error.code]).toEqual([412, 'version_stale'])
    const strange = await bulk({ channels: [...named(), { id: 'brook#ch_00000000001' }], change: { weight: 4 } })
    expect(strange.status).toBe(404)
    const fixed = await bulk({ channels: named(), change: { parameters: { 'openai-chat': { set: { model: 'x' } } } } })
    expect(fixed.status).toBe(400)
    const weights = async () =>
      ((await desk.ask('GET', 'web/channels?provider=brook')).body.data as { weight: number }[]).map(row => row.weight)
    expect(await weights()).toEqual([1, 1, 1])
    expect((await bulk({ channels: named(), change: { weight: 4, disabled: true } })).status).toBe(200)
    expect(await weights()).toEqual([4, 4, 4])
    const filtered = await bulk({ filter: { provider: 'brook', state: 'disabled' }, change: { disabled: false } })
    expect(idsOf(filtered).sort()).toEqual(ids.sort())
    expect((await bulk({ change: { weight: 1 } })).status).toBe(400)
    for (const id of ids) await desk.ask('DELETE', at(id))
  })
})

describe('a secret', () => {
  test('is in no answer, no log, no row and no error', async () => {
    const secret = 'sk-CANARY-never-shown-42'
    const made = await create({ credentials: [secret] })
    const [id] = idsOf(made)
    const answers = [
      made,
      await desk.ask('GET', at(id!)),
      await desk.ask('GET', 'web/channels'),
      await desk.ask('PATCH', at(id!), { credential: `${secret}\n` }),
      await desk.ask('PATCH', at(id!), { credential: secret, colour: secret }),
      await desk.ask('PATCH', at(id!), { credential: { secret } }),
      await desk.ask('POST', at(id!, '/test'), {}),
      await desk.ask('POST', at(id!, '/fetch-models')),
      await create({ credentials: [secret, secret] }),
      await desk.ask('GET', 'web/audit-log'),
    ]
    for (const { text, status } of answers) expect([status, text.includes(secret)]).toEqual([status, false])
    expect(desk.harness.logs.join('\n')).not.toContain(secret)
    expect(allRows(desk.harness)).not.toContain(secret)
    await desk.ask('DELETE', at(id!))
  })
})
