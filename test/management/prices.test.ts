// Prices over the web: the current ones, the past ones, a change that applies at once, and a backtest of a change.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { formatUsd, nanos } from '../../src/base/money/money.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'
import type { ApiAnswer, Ask } from '../support/management.ts'
import { askAsOwner } from '../support/management.ts'

let harness: Harness
let ask: Ask

beforeAll(async () => {
  harness = await startHarness()
  ask = await askAsOwner(harness)
})
afterAll(() => harness.stop())

const MODEL = 'openai/gpt-4o-mini'
const OTHER = 'openai/gpt-4o'

async function call(key: string, model = MODEL): Promise<bigint> {
  const answer = await chat(harness, key, { model, messages: hello })
  await answer.text()
  return harness.lastRecord()!.cost as bigint
}

const hourAgo = new Date(Date.now() - 3_600_000).toISOString()
const trial = (body: object): Promise<ApiAnswer> => ask('POST', 'web/prices/backtest', { from: hourAgo, ...body })
const usd = (amount: bigint | number): string => formatUsd(nanos(BigInt(amount)))

describe('a price', () => {
  test('is listed by model, and found by the beginning of its name', async () => {
    const { body } = await ask('GET', `web/prices?model=${MODEL}`)
    const rows = body.data as { model: string; origin: string; price: { input: string } }[]
    expect(rows.every(({ model }) => model.startsWith(MODEL))).toBeTrue()
    expect(rows[0]).toMatchObject({ model: MODEL, origin: 'shipped', inUse: true, price: { input: '0.15' } })
    expect((await ask('GET', 'web/prices?model=%25')).body.data).toEqual([])
    expect((await ask('GET', 'web/prices?limit=1000')).headers.get('x-weir-clamped')).toBe('limit=200')
  })

  test('of the operator applies from the next call on, and the shipped one after it is withdrawn', async () => {
    const key = await harness.key()
    const before = await call(key)
    const shipped = await ask('GET', `web/prices/${MODEL}`)
    const price = { input: '15', output: '60' }
    const put = await ask('PUT', `web/prices/${MODEL}`, { price }, { 'if-match': shipped.headers.get('etag')! })
    expect(put.body).toMatchObject({ origin: 'operator', price: { input: '15.00', output: '60.00' } })
    expect(await call(key)).toBeGreaterThan(before)
    const stale = await ask('PUT', `web/prices/${MODEL}`, { price }, { 'if-match': shipped.headers.get('etag')! })
    expect([stale.status, stale.error.code]).toEqual([412, 'version_stale'])
    expect((await ask('GET', 'web/prices?origin=operator')).body.data).toHaveLength(1)
    expect((await ask('DELETE', `web/prices/${MODEL}`)).status).toBe(204)
    expect((await ask('DELETE', `web/prices/${MODEL}`)).status).toBe(404)
    expect(await call(key)).toBe(before)
    const { body } = await ask('GET', `web/prices/history/${MODEL}`)
    expect((body.data as { origin: string }[]).map(({ origin }) => origin)).toEqual([
      ...['withdrawn', 'operator', 'shipped'],
    ])
    const audit = (await ask('GET', 'web/audit-log?action=addPrices&limit=2')).body.data as { target: string }[]
    expect(audit.map(({ target }) => target)).toEqual([MODEL, MODEL])
  })

  test('that two people set at once from the same version is set once', async () => {
    const etag = (await ask('GET', `web/prices/${OTHER}`)).headers.get('etag')!
    const sent = ['1', '2', '3', '4'].map(input =>
      ask('PUT', `web/prices/${OTHER}`, { price: { input, output: '9' } }, { 'if-match': etag }),
    )
    const statuses = (await Promise.all(sent)).map(({ status }) => status)
    expect(statuses.toSorted()).toEqual([200, 412, 412, 412])
    await ask('DELETE', `web/prices/${OTHER}`)
  })

  const invalid: readonly (readonly [price: unknown, says: string])[] = [
    [{ input: '1' }, 'output'],
    [{ input: '1', output: '-2' }, 'output'],
    [{ input: 1, output: '2' }, 'input'],
    [{ input: '1', output: '1e3' }, 'output'],
    [{ input: '1', output: '2', inptu: '1' }, 'inptu'],
    [{ input: '0', output: '0' }, 'a price of 0 is not allowed'],
    ['free', 'it must be an object'],
  ]
  test.each(invalid)('%j is refused, and the error names the field', async (price, message) => {
    const { status, error } = await ask('PUT', `web/prices/${MODEL}`, { price })
    expect([status, error.param!.startsWith('price')]).toEqual([400, true])
    expect(error.message).toContain(message)
  })

  test('may name tools that cost nothing, as in a provider file', async () => {
    const price = { input: '1.00', output: '2.00', included: ['mcp'] }
    const set = await ask('PUT', `web/prices/${OTHER}`, { price })
    expect([set.status, set.body.price]).toEqual([200, price])
    await ask('DELETE', `web/prices/${OTHER}`)
  })

  test('is refused with the path of the wrong field, and with what is allowed', async () => {
    const cases = [
      { class: 'flex', input: '1' },
      { hours: ['1'], input: '1' },
    ]
    const { error } = await ask('PUT', `web/prices/${MODEL}`, { price: { input: '1', output: '2', cases } })
    expect(error.param).toBe('price.cases[1].hours')
    expect(error.message).toContain('"price.cases[1].hours" must be two different times of the day in UTC')
  })

  test('of an unknown model is a 404', async () => {
    for (const name of ['nothing', 'openai/', 'openai/none-such', '%E0%A4%A']) {
      expect((await ask('GET', `web/prices/${name}`)).status).toBe(404)
    }
    expect((await ask('PUT', 'web/prices/nothing', { price: { input: '1', output: '2' } })).status).toBe(404)
  })
})

describe('a backtest', () => {
  let key: string
  let costs: bigint[]
  let account: string
  const today = (): string => new Date().toISOString().slice(0, 10)
  /** The days of the calls: two of them if a day ends meanwhile. */
  let days: readonly string[]

  beforeAll(async () => {
    const firstDay = today()
    await ask('POST', 'web/tiers', { name: 'dear', qpm: 1_000, pricePerMille: 1_337 })
    key = await harness.key({ tier: 'dear' })
    account = String((await harness.weir('balance', { account: key })).id)
    costs = []
    for (const model of [MODEL, OTHER, MODEL]) costs.push(await call(key, model))
    days = [firstDay, today()]
  })

  const sum = (some: readonly (bigint | undefined)[]): bigint =>
    some.reduce<bigint>((all, one) => all + BigInt(one!), 0n)

  test('of the current prices comes to what was settled, to the last digit', async () => {
    const current = await ask('GET', `web/prices/${MODEL}`)
    const { body } = await trial({ model: MODEL, price: current.body.price, account })
    const was = usd(sum([costs[0], costs[2]]))
    expect(body).toMatchObject({ calls: 2, was, wouldBe: was, difference: '0.00', complete: true, leftOut: [] })
    expect(body.byModel).toEqual([{ model: MODEL, calls: 2, was, wouldBe: was, difference: '0.00' }])
    for (const { day } of body.byDay as { day: string }[]) expect(days).toContain(day)
    expect(body.byDay as unknown[]).not.toEqual([])
    const same = await trial({ tier: 'dear', pricePerMille: 1_337, account })
    expect(same.body).toMatchObject({ calls: 3, was: usd(sum(costs)), wouldBe: usd(sum(costs)) })
  })

  test('comes to what the same calls cost once the price applies', async () => {
    const price = { input: '7.77', output: '31.3', perRequest: '0.0001' }
    const { body } = await trial({ model: MODEL, price, account })
    await ask('PUT', `web/prices/${MODEL}`, { price })
    const each = await call(key)
    expect(body.wouldBe).toBe(usd(2n * BigInt(each)))
    await ask('DELETE', `web/prices/${MODEL}`)
  })

  test('of a multiplier comes to what the same calls cost with it', async () => {
    const { body } = await trial({ tier: 'dear', pricePerMille: 2_000, account, model: OTHER })
    await ask('PATCH', 'web/tiers/dear', { pricePerMille: 2_000 })
    expect(body.wouldBe).toBe(usd(await call(key, OTHER)))
  })

  const wrong: readonly object[] = [
    {},
    { model: MODEL },
    { price: { input: '1', output: '1' } },
    { tier: 'dear' },
    { model: MODEL, price: { input: '1' } },
    { model: 'nothing', price: { input: '1', output: '1' } },
    { model: MODEL, price: { input: '1', output: '1' }, from: '1999-01-01T00:00:00Z' },
    { model: MODEL, price: { input: '1', output: '1' }, before: '1999-01-01T00:00:00Z' },
    { model: MODEL, price: { input: '1', output: '1' }, pricePerMille: 5 },
    { model: 'nothing/echo', price: { input: '1', output: '1' } },
    { tier: 'nothing', pricePerMille: 5 },
  ]
  test.each(wrong)('of %j is refused', async body => expect((await trial(body)).status).toBe(400))
})

test('prices are compared with public price data', async () => {
  const { body } = await ask('POST', 'web/prices/check')
  expect(body.compared).toBeTrue()
  expect(body.prices as number).toBeGreaterThan(100)
  expect(body.without).toBeArray()
})
