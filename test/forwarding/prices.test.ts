// Versions of prices in a running gateway: what a record refers to, what an operator changes, and what a restart finds.

import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { plain, streamHead } from '../../tools/fake-upstream/answers.ts'
import { chunk, end, gate, script } from '../../tools/fake-upstream/script.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
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
  const { price_version: version, cost, lines } = harness.records().at(-1)!
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
    expect(harness.records().at(-1)).toMatchObject({ cost: 7 * 150 + 5 * 600 })
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
