// GET /v1/key: what a key can read about itself, that nobody else can, and that the figures are those of the ledger.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { mintKey } from '../../src/identity/key-format.ts'
import { Limits } from '../../src/limits/limits.ts'
import { buildKeyReport } from '../../src/management/public/key-report.ts'
import { openCallReader } from '../../src/store/engine/reader.ts'
import { answer } from '../../tools/fake-upstream/answers.ts'
import { after } from '../forwarding/wire.ts'
import type { Funded } from '../support/funds.ts'
import { fundKeys } from '../support/funds.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'
import { awaitMidnightIfNear } from '../support/midnight.ts'
import type { RawAnswer } from '../support/raw.ts'
import { rawRequest } from '../support/raw.ts'
import { ask, bearer, expectChatError, expectRequestId, expectStages, lines, MODEL, reached } from './asking.ts'

const USD = 1_000_000_000n

const funds = {
  plain: { credit: '5.25', name: 'mill', tier: 'standard', qpm: 77 },
  credited: { credit: '1', account: { creditLimit: `${3n * USD}` } },
  postpaid: { credit: '0', account: { kind: 'postpaid' } },
  frozen: { credit: '2', account: { frozen: true }, strictCap: true },
  budgeted: {
    credit: '10',
    strictCap: true, // its calls hold their highest possible cost
    budgets: [
      { of: 'account', span: 'month', cap: 4n * USD },
      { of: 'key', span: 'day', cap: USD / 1_000n },
      { of: 'key', span: 'total', cap: 7n * USD },
    ],
  },
} as const

let harness: Harness
let funded: Funded<keyof typeof funds>

beforeAll(async () => {
  funded = await fundKeys(funds)
  harness = await startHarness({ folder: funded.folder })
})
afterAll(async () => {
  await harness.stop()
  rmSync(funded.folder, { recursive: true, force: true })
})

const get = (headers: Record<string, string>, method = 'GET'): Promise<RawAnswer> =>
  rawRequest(harness.url, ask(method, '/v1/key', headers))

interface Report {
  readonly id: string
  readonly account: Readonly<Record<string, unknown>>
  readonly budgets: readonly Readonly<Record<string, unknown>>[]
}

async function report(key: string): Promise<Report> {
  const result = await get(bearer(key))
  expect(result.status).toBe(200)
  return JSON.parse(result.body.toString()) as Report
}

describe('a key reads', () => {
  test('its id, its rights and its balance', async () => {
    const result = await get(bearer(funded.keys.plain))
    expect(result.status).toBe(200)
    expect(result.header('content-type')).toBe('application/json')
    expectRequestId(result)
    expectStages(result, [])
    const body = JSON.parse(result.body.toString()) as Report
    expect(body.id).toMatch(/^key_/)
    expect(body).toEqual({
      object: 'key',
      id: body.id,
      name: 'mill',
      tier: 'standard',
      limits: { requests_per_minute: 77, remaining: 77, others: [] },
      expires_at: null,
      models: { allowed: null, allowed_to_account: null, denied: null, required_tags: null },
      strict_cap: false,
      keeps_bodies: false,
      account: {
        kind: 'prepaid',
        frozen: false,
        balance: '5.25',
        held: '0.00',
        credit_limit: '0.00',
        available: '5.25',
      },
      budgets: [],
    } as never)
    expect(result.body.toString()).not.toContain(funded.keys.plain)
  })

  test('the credit of its account', async () => {
    const { account } = await report(funded.keys.credited)
    expect(account).toMatchObject({ balance: '1.00', credit_limit: '3.00', available: '4.00' })
  })

  test('that a postpaid account has no lower bound', async () => {
    harness.upstream.plan(answer('x', { usage: { input: 0, output: 200_000 } }))
    expect((await chat(harness, funded.keys.postpaid, { model: MODEL, messages: hello })).status).toBe(200)
    const { account } = await report(funded.keys.postpaid)
    expect(account).toMatchObject({ kind: 'postpaid', balance: '-0.12', available: null })
  })

  test('that its account is frozen', async () => {
    const { account, ...rest } = await report(funded.keys.frozen)
    expect(account.frozen).toBe(true)
    expect(rest).toMatchObject({ strict_cap: true })
    expect((await chat(harness, funded.keys.frozen, { model: MODEL, messages: hello })).status).toBe(403)
  })
})

describe('budgets', () => {
  const body = JSON.stringify({ model: MODEL, messages: hello, max_tokens: 100 })

  test('show what is spent, held and left, during a call and after it', async () => {
    await awaitMidnightIfNear()
    const ends = Promise.withResolvers<void>()
    harness.upstream.plan(after(ends.promise, answer('x', { usage: { input: 10, output: 10 } })))
    const received = harness.upstream.nextRequest()
    const calling = chat(harness, funded.keys.budgeted, body)
    await received
    const bound = BigInt(body.length) * 150n + 100n * 600n
    const during = await report(funded.keys.budgeted)
    ends.resolve()
    expect((await calling).status).toBe(200)
    const usd = (nanos: bigint): string =>
      `0.${String(nanos)
        .padStart(9, '0')
        .replace(/0{1,7}$/, '')}`
    const available = `9${usd(USD - bound).slice(1)}`
    expect(during.account).toMatchObject({ balance: '10.00', held: usd(bound), available })
    expect(during.budgets).toMatchObject([
      { scope: 'key', span: 'day', cap: '0.001', spent: '0.00', held: usd(bound), left: usd(USD / 1_000n - bound) },
      { scope: 'key', span: 'total', cap: '7.00', spent: '0.00', held: usd(bound), ends_at: null },
      { scope: 'account', span: 'month', cap: '4.00', spent: '0.00', held: usd(bound) },
    ])
    const { account, budgets } = await report(funded.keys.budgeted)
    expect(account).toMatchObject({ balance: '9.9999925', held: '0.00', available: '9.9999925' })
    expect(budgets).toMatchObject([
      { span: 'day', spent: '0.0000075', held: '0.00', left: '0.0009925' },
      { span: 'total', spent: '0.0000075', left: '6.9999925' },
      { span: 'month', spent: '0.0000075', left: '3.9999925' },
    ])
    const today = new Date().toISOString().slice(0, 10)
    expect(Date.parse(budgets[0]!.ends_at as string)).toBeGreaterThan(Date.parse(today))
  })

  test('start again with their period, and show when the period ends', async () => {
    const reader = openCallReader(join(harness.folder, 'weir.db'))
    const newYearsEve = Date.UTC(2099, 11, 31, 23, 59)
    const limited = { limits: new Limits(), nowMs: () => 0 }
    const reportKey = buildKeyReport({ accounts: reader.accounts, ...limited, dateMs: () => newYearsEve })
    const { keyId } = harness
      .records()
      .map(row => ({ keyId: row.key_id as number }))
      .at(-1)!
    const dates = { expiresMs: null, untilMs: newYearsEve }
    const rights = { allows: ['a/*'], accountAllows: ['*'], denies: null, requires: ['eu'], accountId: 1, ...dates }
    const counted = { tier: 'pro', qpm: 1, limitsKeyId: keyId, hasOwnLimit: false }
    const result = JSON.parse((await reportKey({ keyId, ...counted, strictCap: false, ...rights }))!) as Report
    reader.close()
    const models = { allowed: ['a/*'], allowed_to_account: ['*'], denied: null, required_tags: ['eu'] }
    expect(result).toMatchObject({ models, expires_at: '2099-12-31T23:59:00.000Z' })
    expect(result.budgets).toMatchObject([
      { span: 'day', spent: '0.00', left: '0.001', ends_at: '2100-01-01T00:00:00.000Z' },
      { span: 'total', spent: '0.0000075', ends_at: null },
      { span: 'month', spent: '0.00', left: '4.00', ends_at: '2100-01-01T00:00:00.000Z' },
    ])
  })
})

describe('GET /v1/key is refused', () => {
  test('without a key or with an unknown one', async () => {
    for (const headers of [{}, bearer(mintKey()), bearer('wk-x')]) {
      const result = await get(headers)
      expectChatError(result, 401)
      expectStages(result, reached.refusedKey)
    }
  })

  test('with a management token', async () => {
    const { token } = (await harness.weir('token')) as { token: string }
    const result = await get(bearer(token))
    expectChatError(result, 401)
    expectStages(result, [lines.authFail()])
  })

  test('with another method', async () => {
    const result = await rawRequest(harness.url, ask('POST', '/v1/key', bearer(funded.keys.plain), '{}'))
    expect(expectChatError(result, 405).error.code).toBe('method_not_allowed')
    expect(result.header('allow')).toBe('GET')
  })

  test('with a revoked key', async () => {
    const revoked = await harness.key()
    expect((await get(bearer(revoked))).status).toBe(200)
    await harness.weir('keys revoke', { key: revoked })
    expect((await get(bearer(revoked))).status).toBe(401)
  })
})
