// Channels change while calls go on: none fails for it, those under way keep what they have, and what is known of the
// others stays.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { fail, plain } from '../../tools/fake-upstream/answers.ts'
import { gate, scripted } from '../../tools/fake-upstream/script.ts'
import { until } from '../support/gateway.ts'
import type { ChannelDesk } from './desk.ts'
import { at, defineProvider, idsOf, openChannelDesk, say } from './desk.ts'

let desk: ChannelDesk
beforeAll(async () => {
  desk = await openChannelDesk()
  await defineProvider(desk, 'river')
})
afterAll(() => desk.stop())

const create = (credentials: readonly string[], provider = 'river') =>
  desk.ask('POST', 'web/channels', { provider, credentials })

test('calls go on without a failure while channels are made, changed, disabled and removed', async () => {
  await create(['stays-0'])
  let [isOver, calls] = [false, 0]
  const statuses = new Map<number, number>()
  const caller = async (): Promise<void> => {
    while (!isOver) {
      const response = await say(desk, 'river/echo')
      const { status } = response
      await response.text()
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      calls++
    }
  }
  const callers = Array.from({ length: 8 }, caller)
  for (let round = 0; round < 12; round++) {
    const ids = idsOf(await create([`a-${round}`, `b-${round}`]))
    const [first, second] = ids
    await desk.ask('PATCH', at(first!), { credential: `c-${round}`, weight: 5, headers: { 'x-round': String(round) } })
    await desk.ask('POST', at(second!, '/disable'))
    const more = { tags: [`t${round}`], models: [{ id: 'echo', price: { input: '1', output: String(round + 2) } }] }
    expect((await desk.ask('PATCH', 'web/providers/river', { definition: more })).status).toBe(200)
    for (const id of ids) expect((await desk.ask('DELETE', at(id))).status).toBe(204)
  }
  isOver = true
  await Promise.all(callers)
  expect([...statuses]).toEqual([[200, calls]])
  expect(calls).toBeGreaterThan(50)
  await desk.harness.idle()
  expect(desk.harness.openHolds()).toBe(0)
})

test('a call under way ends on the channel that it has, although that is gone', async () => {
  const [id] = idsOf(await create(['goes'], 'river'))
  const others = idsOf(await desk.ask('GET', 'web/channels?provider=river')).filter(one => one !== id)
  for (const other of others) await desk.ask('POST', at(other, '/disable'))
  const { promise, resolve } = Promise.withResolvers<void>()
  desk.harness.upstream.plan(scripted(request => [gate(promise), ...plain('late and well').steps(request)]))
  const call = say(desk, 'river/echo')
  const asked = () => desk.harness.upstream.requests.at(-1)?.headers.get('authorization')
  await until(() => asked() === 'Bearer goes', 'it is asked')
  expect((await desk.ask('DELETE', at(id!))).status).toBe(204)
  resolve()
  const response = await call
  expect(response.status).toBe(200)
  expect(JSON.stringify(await response.json())).toContain('late and well')
  for (const other of others) await desk.ask('POST', at(other, '/enable'))
})

test('what is known of a channel stays when others change, and is forgotten with its credential', async () => {
  await defineProvider(desk, 'pond')
  const [id] = idsOf(await create(['bad-key'], 'pond'))
  desk.harness.upstream.plan(fail(401))
  expect((await say(desk, 'pond/echo')).status).toBe(502)
  const state = async () => ((await desk.ask('GET', at(id!))).body.health as { state: string }).state
  expect(await state()).toBe('credential_bad')
  const [other] = idsOf(await create(['another'], 'river'))
  await desk.ask('PATCH', at(id!), { weight: 9, name: 'renamed' })
  expect(await state()).toBe('credential_bad')
  await desk.ask('PATCH', at(id!), { credential: 'good-key' })
  expect(await state()).toBe('available')
  await desk.ask('DELETE', at(other!))
})

test('what closes a channel is forgotten when somebody says so', async () => {
  await defineProvider(desk, 'lake')
  const [id] = idsOf(await create(['lake-key'], 'lake'))
  desk.harness.upstream.plan(fail(401))
  await say(desk, 'lake/echo')
  const health = async () => (await desk.ask('GET', at(id!))).body.health as { state: string }
  expect((await health()).state).toBe('credential_bad')
  expect((await desk.ask('POST', at(id!, '/reset-health'))).status).toBe(204)
  expect((await health()).state).toBe('available')
})

test('a thousand channels are made, listed page by page, and called by', async () => {
  await defineProvider(desk, 'sea')
  const credentials = Array.from({ length: 1_000 }, (_, at) => `sea-${at}`)
  expect((await create(credentials, 'sea')).status).toBe(201)
  const seen = new Set<string>()
  for (let after = ''; ; ) {
    const page = await desk.ask('GET', `web/channels?provider=sea&limit=200${after}`)
    for (const id of idsOf(page)) seen.add(id)
    if (page.body.next === null) break
    after = `&after=${String(page.body.next)}`
  }
  expect(seen.size).toBe(1_000)
  const statuses = await Promise.all(Array.from({ length: 50 }, async () => (await say(desk, 'sea/echo')).status))
  expect(new Set(statuses)).toEqual(new Set([200]))
  const one = [...seen][500]!
  expect((await desk.ask('PATCH', at(one), { weight: 0 })).status).toBe(200)
  const gone = await desk.ask('POST', 'web/channels/bulk', { filter: { provider: 'sea' }, change: { disabled: true } })
  expect(idsOf(gone)).toHaveLength(1_000)
  expect((await say(desk, 'sea/echo')).status).toBe(503)
})
