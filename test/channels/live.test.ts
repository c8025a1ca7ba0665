// Channels change while calls run. No call fails because of it, active calls keep their channel, and the health of the
// other channels stays.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { fail, plain } from '../../tools/fake-upstream/answers.ts'
import { gate, scripted } from '../../tools/fake-upstream/script.ts'
import { until } from '../support/gateway.ts'
import type { ChannelSetup } from './channel-setup.ts'
import { callModel, channelPath, defineProvider, idsOf, startChannelSetup } from './channel-setup.ts'

let setup: ChannelSetup
beforeAll(async () => {
  setup = await startChannelSetup()
  await defineProvider(setup, 'river')
})
afterAll(() => setup.stop())

const create = (credentials: readonly string[], provider = 'river') =>
  setup.ask('POST', 'web/channels', { provider, credentials })

test('no call fails while channels are created, changed, disabled and deleted', async () => {
  await create(['stays-0'])
  let [isOver, calls] = [false, 0]
  const statuses = new Map<number, number>()
  const caller = async (): Promise<void> => {
    while (!isOver) {
      const response = await callModel(setup, 'river/echo')
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
    await setup.ask('PATCH', channelPath(first!), {
      credential: `c-${round}`,
      weight: 5,
      headers: { 'x-round': String(round) },
    })
    await setup.ask('POST', channelPath(second!, '/disable'))
    const more = { tags: [`t${round}`], models: [{ id: 'echo', price: { input: '1', output: String(round + 2) } }] }
    expect((await setup.ask('PATCH', 'web/providers/river', { definition: more })).status).toBe(200)
    for (const id of ids) expect((await setup.ask('DELETE', channelPath(id))).status).toBe(204)
  }
  isOver = true
  await Promise.all(callers)
  expect([...statuses]).toEqual([[200, calls]])
  expect(calls).toBeGreaterThan(50)
  await setup.harness.idle()
  expect(setup.harness.openHolds()).toBe(0)
})

test('an active call ends on its channel, although the channel is deleted meanwhile', async () => {
  const [id] = idsOf(await create(['goes'], 'river'))
  const others = idsOf(await setup.ask('GET', 'web/channels?provider=river')).filter(one => one !== id)
  for (const other of others) await setup.ask('POST', channelPath(other, '/disable'))
  const { promise, resolve } = Promise.withResolvers<void>()
  setup.harness.upstream.plan(scripted(request => [gate(promise), ...plain('late and well').steps(request)]))
  const call = callModel(setup, 'river/echo')
  const lastCredential = () => setup.harness.upstream.requests.at(-1)?.headers.get('authorization')
  await until(() => lastCredential() === 'Bearer goes', 'the upstream has the call')
  expect((await setup.ask('DELETE', channelPath(id!))).status).toBe(204)
  resolve()
  const response = await call
  expect(response.status).toBe(200)
  expect(JSON.stringify(await response.json())).toContain('late and well')
  for (const other of others) await setup.ask('POST', channelPath(other, '/enable'))
})

test('the health of a channel stays when other channels change, and is reset with a new credential', async () => {
  await defineProvider(setup, 'pond')
  const [id] = idsOf(await create(['bad-key'], 'pond'))
  setup.harness.upstream.plan(fail(401))
  expect((await callModel(setup, 'pond/echo')).status).toBe(502)
  const state = async () => ((await setup.ask('GET', channelPath(id!))).body.health as { state: string }).state
  expect(await state()).toBe('credential_bad')
  const [other] = idsOf(await create(['another'], 'river'))
  await setup.ask('PATCH', channelPath(id!), { weight: 9, name: 'renamed' })
  expect(await state()).toBe('credential_bad')
  await setup.ask('PATCH', channelPath(id!), { credential: 'good-key' })
  expect(await state()).toBe('available')
  await setup.ask('DELETE', channelPath(other!))
})

test('the reset-health endpoint makes a channel available again', async () => {
  await defineProvider(setup, 'lake')
  const [id] = idsOf(await create(['lake-key'], 'lake'))
  setup.harness.upstream.plan(fail(401))
  await callModel(setup, 'lake/echo')
  const health = async () => (await setup.ask('GET', channelPath(id!))).body.health as { state: string }
  expect((await health()).state).toBe('credential_bad')
  expect((await setup.ask('POST', channelPath(id!, '/reset-health'))).status).toBe(204)
  expect((await health()).state).toBe('available')
})

test('a thousand channels are created, listed page by page, and used by calls', async () => {
  await defineProvider(setup, 'sea')
  const credentials = Array.from({ length: 1_000 }, (_, at) => `sea-${at}`)
  const created = await create(credentials, 'sea')
  expect([created.status, created.error]).toEqual([201, {}] as never)
  const seen = new Set<string>()
  for (let after = ''; ; ) {
    const page = await setup.ask('GET', `web/channels?provider=sea&limit=200${after}`)
    for (const id of idsOf(page)) seen.add(id)
    if (page.body.next === null) break
    after = `&after=${String(page.body.next)}`
  }
  expect(seen.size).toBe(1_000)
  const answers = await Promise.all(Array.from({ length: 50 }, () => callModel(setup, 'sea/echo')))
  const failures = answers.filter(({ status }) => status !== 200).map(answer => answer.text())
  expect(await Promise.all(failures)).toEqual([])
  const one = [...seen][500]!
  expect((await setup.ask('PATCH', channelPath(one), { weight: 0 })).status).toBe(200)
  const disabled = await setup.ask('POST', 'web/channels/bulk', {
    filter: { provider: 'sea' },
    change: { disabled: true },
  })
  expect([disabled.status, disabled.error]).toEqual([200, {}] as never)
  expect(idsOf(disabled)).toHaveLength(1_000)
  expect((await callModel(setup, 'sea/echo')).status).toBe(503)
})
