// Versions of prices in a running gateway: what a record refers to, what an operator changes, and what a restart finds.

import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { plain, streamHead } from '../../tools/fake-upstream/answers.ts'
import { chunk, end, gate, script } from '../../tools/fake-upstream/script.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello } from '../support/gateway.ts'
import { model, openCall, startHasty } from './caller.ts'
import { done, finish, piece, role, usageOnly } from './wire.ts'

const price = '{"input":"1","output":"2"}'
const usage = { input: 7, output: 5 }

async function withFolder(run: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-prices-'))
  try {
    await run(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function rowsIn(folder: string): readonly Record<string, unknown>[] {
  const db = openDatabase(join(folder, 'weir.db'), { readonly: true })
  try {
    return db.query('SELECT * FROM price ORDER BY version').all() as Record<string, unknown>[]
  } finally {
    db.close()
  }
}

/** The price version, cost and price lines of a call of seven and five tokens. */
async function priceOfCall(harness: Harness, key: string): Promise<readonly unknown[]> {
  harness.upstream.plan(plain('hi', { usage }))
  expect((await openCall(harness, key, {}).whole()).status).toBe(200)
  await harness.idle()
  const { price_version: version, cost, lines } = harness.lastRecord()!
  return [version, cost, JSON.parse(lines as string)]
}

const shippedLines = [
  ['input', 7, '0.15'],
  ['output', 5, '0.60'],
]
const ownLines = [
  ['input', 7, '1.00'],
  ['output', 5, '2.00'],
]

test('an operator sets the price of a model, which applies at once and after a restart, and resets it', async () => {
  await withFolder(async folder => {
    const first = await startHasty({ folder })
    const key = await first.key()
    const shipped = rowsIn(folder)
    const shippedPrice = shipped.find(row => row.model === model)!
    expect(shippedPrice).toMatchObject({ origin: 'shipped', author: expect.stringContaining('weir ') })
    expect(await priceOfCall(first, key)).toEqual([shippedPrice.version, 7 * 150 + 5 * 600, shippedLines])
    const set = await first.weir('prices set', { model, price })
    expect(set.version).toBe(shipped.length + 1)
    expect(await priceOfCall(first, key)).toEqual([set.version, 7 * 1_000 + 5 * 2_000, ownLines])
    const pricing = await (await fetch(`${first.url}/api/public/pricing`)).text()
    expect(pricing).toContain(`"model":"${model}","free":false,"input":"1.00"`)
    await first.stop()

    const second = await startHasty({ folder })
    expect(rowsIn(folder)).toHaveLength(shipped.length + 1) // a restart alone creates no versions
    expect(await priceOfCall(second, key)).toEqual([set.version, 7 * 1_000 + 5 * 2_000, ownLines])
    await second.weir('prices withdraw', { model })
    expect(await priceOfCall(second, key)).toEqual([shippedPrice.version, 7 * 150 + 5 * 600, shippedLines])
    await second.stop()
  })
})

test('a call keeps the price that it started with', async () => {
  const harness = await startHasty()
  try {
    const key = await harness.key()
    const changed = Promise.withResolvers<void>()
    const [content, rest] = [role() + piece('Hello'), finish() + usageOnly(7, 5) + done]
    harness.upstream.plan(script(streamHead, chunk(content), gate(changed.promise), chunk(rest), end))
    const caller = openCall(harness, key, { stream: true })
    await caller.until(({ text }) => text.includes('Hello'), 'content has arrived')
    await harness.weir('prices set', { model, price })
    changed.resolve()
    await caller.whole()
    expect(harness.lastRecord()).toMatchObject({ cost: 7 * 150 + 5 * 600 })
  } finally {
    await harness.stop()
  }
})

test('a malformed price is refused, and the old one stays', async () => {
  const harness = await startHasty()
  try {
    const key = await harness.key()
    const fault = await harness.weir('prices set', { model, price: '{"input":-1,"output":"2"}' }).then(
      () => 'taken',
      (thrown: Error) => thrown.message,
    )
    expect(fault).toContain('<price> (input) ')
    expect((await priceOfCall(harness, key))[1]).toBe(7 * 150 + 5 * 600)
  } finally {
    await harness.stop()
  }
})

test('a price for a pattern is that of every model without one of its own, also of new ones', async () => {
  const priceAt = (input: string, output: string): string => JSON.stringify({ input, output })
  await withFolder(async folder => {
    const first = await startHasty({ folder })
    const key = await first.key()
    const ask = (harness: Harness, name: string): Promise<Response> =>
      chat(harness, key, { model: name, messages: hello, max_tokens: 20 })
    const costOf = async (harness: Harness, name: string): Promise<unknown> => {
      harness.upstream.plan(plain('hi', { usage }))
      expect((await ask(harness, name)).status).toBe(200)
      await harness.idle()
      return harness.lastRecord()!.cost
    }
    const cost = (input: number, output: number): number => 7 * input * 1_000 + 5 * output * 1_000
    expect((await ask(first, 'openai/gpt-99')).status).toBe(404)
    await first.weir('prices set', { model: 'openai/*', price: priceAt('1', '2') })
    expect(await costOf(first, 'openai/gpt-99')).toBe(cost(1, 2))
    expect(await costOf(first, model)).toBe(cost(0.15, 0.6)) // a price of its own
    expect((await ask(first, 'gpt-99')).status).toBe(404) // nobody has said that there is such a model
    await first.weir('prices set', { model: 'openai/gpt-9*', price: priceAt('3', '4') })
    expect(await costOf(first, 'openai/gpt-99')).toBe(cost(3, 4)) // the longer pattern
    await first.weir('prices set', { model: 'openai/gpt-99', price: priceAt('5', '6') })
    expect(await costOf(first, 'gpt-99')).toBe(cost(5, 6))
    expect(await (await fetch(`${first.url}/v1/models`)).text()).toContain('"id":"gpt-99"')
    await first.stop()

    const second = await startHasty({ folder })
    expect(await costOf(second, 'gpt-99')).toBe(cost(5, 6))
    await second.weir('prices withdraw', { model: 'openai/gpt-99' })
    expect((await ask(second, 'gpt-99')).status).toBe(404)
    expect(await costOf(second, 'openai/gpt-99')).toBe(cost(3, 4))
    await second.weir('prices withdraw', { model: 'openai/gpt-9*' })
    expect(await costOf(second, 'openai/gpt-99')).toBe(cost(1, 2))
    await second.weir('prices withdraw', { model: 'openai/*' })
    expect((await ask(second, 'openai/gpt-99')).status).toBe(404)
    expect((await second.weir('audit')).findings).toEqual([])
    await second.stop()
  })
})
