// Webhooks end to end: what is delivered, when, how often and to whom; and what happens when the receiver fails.

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { bounds } from '../../src/base/bounds.ts'
import type { HintData } from '../../src/base/hints.ts'
import { parseTextId } from '../../src/base/ids.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness, until } from '../support/gateway.ts'
import type { ApiAnswer, Ask } from '../support/management.ts'
import { askAsOwner } from '../support/management.ts'
import type { Receiver } from './receiver.ts'
import { isSignedWith, startReceiver } from './receiver.ts'

let harness: Harness
let ask: Ask
let receiver: Receiver
/** The gateway's clock stands still, so that a slow machine neither repeats a delivery nor refills a limit. Tests move it on. */
const startMs = Date.now()
let aheadMs = 0
const nowMs = (): number => startMs + aheadMs

beforeAll(async () => {
  harness = await startHarness({
    env: { WEIR_PRIVATE_HOSTS: '127.0.0.1' },
    world: { clock: { nowMs, dateMs: nowMs }, webhooksEveryMs: 10, random: () => 0.5 },
  })
  ask = await askAsOwner(harness)
  receiver = startReceiver()
})
afterEach(() => {
  receiver.received.length = 0
  receiver.answer = () => new Response('thanks')
})
afterAll(async () => {
  await harness.stop()
  receiver.stop()
})

async function account(credit = '10'): Promise<{ id: string; key: string }> {
  const key = await harness.key({ credit })
  return { id: String((await harness.weir('balance', { account: key })).id), key }
}

interface Hook {
  readonly id: string
  readonly secret: string
}

async function hook(path: string, events: readonly string[], url = receiver.url): Promise<Hook> {
  const created = await ask('POST', path, { url, events })
  expect(created.status).toBe(201)
  return created.body as unknown as Hook
}

const ofAccount = (id: string, events: readonly string[], url?: string): Promise<Hook> =>
  hook(`web/accounts/${id}/webhooks`, events, url)

let posted = 0
const take = (id: string, usd: string): Promise<ApiAnswer> =>
  ask('POST', `web/accounts/${id}/adjustments`, { amount: `-${usd}`, reference: `take ${posted++}` })
const give = (id: string, usd: string): Promise<ApiAnswer> =>
  ask('POST', `web/accounts/${id}/top-ups`, { amount: usd, reference: `give ${posted++}` })
const alertAt = (id: string, threshold: string): Promise<ApiAnswer> =>
  ask('PUT', `web/accounts/${id}/balance-alert`, { threshold })

const types = (): string[] => receiver.received.map(({ event }) => event.type)

interface DeliveryRow {
  readonly id: string
  readonly state: string
  readonly attempts: number
  readonly status: number | null
  readonly error: string | null
}

const deliveries = async (id: string): Promise<readonly DeliveryRow[]> =>
  (await ask('GET', `web/webhooks/${id}/deliveries`)).body.data as DeliveryRow[]

/** The newest delivery of a webhook, after so many attempts. */
async function attempted(id: string, attempts: number): Promise<DeliveryRow> {
  for (;;) {
    const [row] = await deliveries(id)
    if (row !== undefined && row.attempts >= attempts) return row
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

/** Writes events for the account of the newest webhook. */
function raiseEvents(times: number): void {
  const db = openDatabase(join(harness.folder, 'weir.db'), { readwrite: true, safeIntegers: true })
  const { id } = db.query('SELECT account_id AS id FROM webhook ORDER BY id DESC LIMIT 1').get() as { id: bigint }
  // One statement: on PostgreSQL the gateway stands still meanwhile, and would miss the time to renew its lease.
  const raise = db.query(
    `WITH RECURSIVE number (at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM number WHERE at < ?2)
     INSERT INTO event (name, account_id, data) SELECT 'balance.low', CAST(?1 AS BIGINT), '{}' FROM number`,
  )
  raise.run(id, times)
  db.close()
}

describe('a webhook', () => {
  test('is notified once when a call takes a balance below its threshold, with a valid signature', async () => {
    const { id, key } = await account('1')
    const { secret } = await ofAccount(id, ['balance.low', 'balance.empty'])
    await alertAt(id, '0.99999999')
    for (let at = 0; at < 3; at++) {
      await (await chat(harness, key, { model: 'openai/gpt-4o-mini', messages: hello })).text()
    }
    await until(() => receiver.received.length > 0, 'the webhook is notified')
    const [notification] = receiver.received
    expect(notification!.event).toMatchObject({ type: 'balance.low', account: id, data: { threshold: '0.99999999' } })
    expect(notification!.headers.get('x-weir-event')).toBe('balance.low')
    expect(notification!.headers.get('x-weir-event-id')).toBe(notification!.event.id)
    expect(await isSignedWith(secret, notification!)).toBeTrue()
    expect(await isSignedWith(`${secret}x`, notification!)).toBeFalse()
    await give(id, '1')
    await take(id, '1.5')
    await until(() => types().length === 2, 'the webhook is notified of the next crossing')
    await take(id, '0.49')
    await until(() => types().includes('balance.empty'), 'the webhook is notified of the empty balance')
    expect(types()).toEqual(['balance.low', 'balance.low', 'balance.empty'])
  })

  test('is not notified again of small changes around a threshold', async () => {
    const { id } = await account('10')
    const { id: hookId } = await ofAccount(id, ['balance.low'])
    await alertAt(id, '5')
    await take(id, '5.1')
    for (const usd of ['0.2', '0.3']) {
      await give(id, usd) // beyond the threshold, and by less than a tenth of it
      await take(id, usd)
    }
    await give(id, '0.7')
    await take(id, '0.7')
    await until(() => receiver.received.length === 2, 'two crossings are delivered')
    expect(await deliveries(hookId)).toHaveLength(2)
  })

  test('is notified at once when a threshold is set above the balance', async () => {
    const { id } = await account('3')
    await ofAccount(id, ['balance.low'])
    expect((await alertAt(id, '5')).body).toEqual({ threshold: '5.00', state: 'low', version: expect.any(Number) })
    await until(() => receiver.received.length === 1, 'the webhook is notified')
    expect((await ask('DELETE', `web/accounts/${id}/balance-alert`)).status).toBe(204)
    expect((await ask('GET', `web/accounts/${id}/balance-alert`)).body).toEqual({
      threshold: null,
      state: null,
      version: 0,
    })
  })

  test('is notified of budgets, keys and accounts, and a webhook of the site of all accounts', async () => {
    const { id, key } = await account('10')
    const site = await hook('web/webhooks', ['budget.low', 'key.revoked', 'account.frozen', 'ledger.drift'])
    const budget = (amount: string) => harness.weir('budgets set', { scope: key, span: 'total', amount })
    await budget('1')
    await (await chat(harness, key, { model: 'openai/gpt-4o-mini', messages: hello })).text()
    await budget('0.0000015') // as much as the call has cost
    await harness.weir('keys revoke', { key })
    await harness.weir('accounts freeze', { account: id })
    const expectedTypes = ['budget.low', 'key.revoked', 'account.frozen']
    await until(() => expectedTypes.every(type => types().includes(type)), 'all events are delivered')
    expect(types().toSorted()).toEqual(expectedTypes.toSorted())
    const low = receiver.received.find(({ event }) => event.type === 'budget.low')!.event
    expect(low).toMatchObject({ account: id, data: { key: expect.stringMatching(/^key_/), cap: '0.0000015' } })
    await ask('DELETE', `web/webhooks/${site.id}`)
  })

  test('of one account is not notified of another', async () => {
    const [first, second] = [await account(), await account()]
    const { id: hookId } = await ofAccount(first.id, ['balance.low'])
    await alertAt(second.id, '5')
    await take(second.id, '9')
    await alertAt(first.id, '5')
    await take(first.id, '9')
    await until(() => receiver.received.length === 1, 'its own event is delivered')
    expect(receiver.received[0]!.event.account).toBe(first.id)
    expect(await deliveries(hookId)).toHaveLength(1)
  })

  test('is not notified while it is disabled or when it was removed', async () => {
    const { id } = await account()
    const off = await ofAccount(id, ['balance.low'], `${receiver.url}/off`)
    const gone = await ofAccount(id, ['balance.low'], `${receiver.url}/gone`)
    const enabled = await ofAccount(id, ['balance.low'])
    expect((await ask('PATCH', `web/webhooks/${off.id}`, { disabled: true })).body.disabled).toBeTrue()
    expect((await ask('DELETE', `web/webhooks/${gone.id}`)).status).toBe(204)
    await alertAt(id, '50')
    await until(() => receiver.received.length === 1, 'the last event is delivered')
    expect([await deliveries(off.id), (await deliveries(enabled.id)).length]).toEqual([[], 1])
    expect((await ask('GET', `web/webhooks/${gone.id}`)).status).toBe(404)
  })
})

describe('a webhook whose delivery fails', () => {
  const faults: readonly (readonly [name: string, answer: Receiver['answer'], error: string, hint: HintData])[] = [
    [
      'answers 500',
      () => new Response('no', { status: 500 }),
      'the response has status 500',
      {
        code: 'url_status',
        values: { status: 500 },
      },
    ],
    [
      'sends us to where credentials are',
      () => Response.redirect('http://169.254.169.254/latest/meta-data/', 302),
      'the response is a redirect, which Weir does not follow',
      { code: 'url_redirect', values: {} },
    ],
    [
      'never answers',
      () => new Promise<Response>(() => {}),
      'it did not answer in time',
      { code: 'url_late', values: {} },
    ],
  ]
  test.each(faults)(
    'because the receiver %s, is notified again later, with the same id and body',
    async (_, answer, error, errorHint) => {
      const { id } = await account()
      const { id: hookId } = await ofAccount(id, ['balance.low'])
      receiver.answer = answer
      await alertAt(id, '50')
      const first = await attempted(hookId, 1)
      expect(first).toMatchObject({ state: 'waiting', attempts: 1, error, errorHint })
      receiver.answer = () => new Response(null, { status: 204 })
      const before = receiver.received.length
      aheadMs += 10_001
      await until(() => receiver.received.length > before, 'the event is delivered again')
      const [original, repeated] = [receiver.received[0]!, receiver.received.at(-1)!]
      expect([repeated.body, repeated.event.id]).toEqual([original.body, original.event.id])
      expect(await attempted(hookId, 2)).toMatchObject({
        state: 'delivered',
        status: 204,
        error: null,
        errorHint: null,
      })
      ask = await askAsOwner(harness)
    },
  )

  test('is not notified sooner because of a later event', async () => {
    const { id } = await account()
    const { id: hookId } = await ofAccount(id, ['balance.low', 'key.revoked'])
    receiver.answer = () => new Response(null, { status: 500 })
    await alertAt(id, '50')
    await attempted(hookId, 1)
    receiver.answer = () => new Response()
    receiver.received.length = 0
    for (const { id: key } of (await ask('GET', `web/keys?account=${id}`)).body.data as { id: string }[]) {
      await ask('DELETE', `web/keys/${key}`)
    }
    const otherAccount = await account()
    await ofAccount(otherAccount.id, ['balance.low'], `${receiver.url}/other`)
    await alertAt(otherAccount.id, '50')
    await until(() => receiver.received.length > 0, 'another webhook is notified')
    expect(receiver.received.map(({ path }) => path)).toEqual(['/hook/other'])
    aheadMs += 10_001
    await until(() => receiver.received.length === 3, 'both events are delivered')
    expect(types().slice(1)).toEqual(['balance.low', 'key.revoked'])
    ask = await askAsOwner(harness)
  })

  test('is not read further if its answer has no end', async () => {
    const { id } = await account()
    const { id: hookId } = await ofAccount(id, ['balance.low'])
    let written = 0
    receiver.answer = () =>
      new Response(
        new ReadableStream({
          pull(controller) {
            written += 65_536
            controller.enqueue(new Uint8Array(65_536))
          },
        }),
      )
    await alertAt(id, '50')
    expect(await attempted(hookId, 1)).toMatchObject({ state: 'delivered', status: 200 })
    expect(written).toBeLessThan(16 * 1024 * 1024)
  })

  test('waits longer each time, and its delivery is given up after a day', async () => {
    const { id } = await account()
    const { id: hookId } = await ofAccount(id, ['balance.low'])
    receiver.answer = () => new Response(null, { status: 503 })
    await alertAt(id, '50')
    let attempts = 1
    for (let pauseMs = 10_000; (await attempted(hookId, attempts)).state === 'waiting'; attempts++) {
      aheadMs += pauseMs + 1
      pauseMs = Math.min(pauseMs * 2, bounds.webhookPauseMsMax)
      ask = await askAsOwner(harness)
    }
    const [row] = await deliveries(hookId)
    expect(row).toMatchObject({ state: 'given up', error: 'the response has status 503' })
    expect(row!.attempts).toBeGreaterThan(25)
    expect(row!.attempts).toBeLessThanOrEqual(bounds.webhookAttemptsMax)
    expect(harness.logs.join('')).toContain('a webhook delivery was given up')
  })

  test('has a bounded queue, and the number of dropped events is reported', async () => {
    const { id } = await account()
    const { id: hookId } = await ofAccount(id, ['balance.low'])
    receiver.answer = () => new Response(null, { status: 500 })
    await alertAt(id, '50')
    await attempted(hookId, 1)
    raiseEvents(1_005)
    expect((await ask('GET', `web/webhooks/${hookId}`)).body).toMatchObject({ waiting: 1_000, dropped: 6 })
    await ask('DELETE', `web/webhooks/${hookId}`)
  })

  test('keeps its last hundred deliveries', async () => {
    const { id } = await account()
    const { id: hookId } = await ofAccount(id, ['balance.low'])
    raiseEvents(130)
    await until(() => receiver.received.length === 130, 'all events are delivered')
    expect(new Set(receiver.received.map(({ event }) => event.id)).size).toBe(130)
    const count = async (): Promise<number> => {
      const { body } = await ask('GET', `web/webhooks/${hookId}/deliveries?limit=200`)
      return (body.data as unknown[]).length
    }
    while ((await count()) > bounds.finishedDeliveriesMax) await new Promise(resolve => setTimeout(resolve, 5))
    expect(await count()).toBe(bounds.finishedDeliveriesMax)
  })
})

describe('a test delivery', () => {
  test('is sent at once, and its result is returned', async () => {
    const { id } = await account()
    const { id: hookId, secret } = await ofAccount(id, ['balance.low'])
    const answer = await ask('POST', `web/webhooks/${hookId}/test`)
    expect(answer.body).toMatchObject({ delivered: true, status: 200, error: null })
    expect(receiver.received.map(({ event }) => event.type)).toEqual(['webhook.test'])
    expect(await isSignedWith(secret, receiver.received[0]!)).toBeTrue()
    receiver.answer = () => new Response(null, { status: 404 })
    expect((await ask('POST', `web/webhooks/${hookId}/test`)).body).toMatchObject({
      delivered: false,
      status: 404,
      error: 'the response has status 404',
    })
    expect((await deliveries(hookId)).map(({ state }) => state)).toEqual(['given up', 'delivered'])
    const renewed = (await ask('POST', `web/webhooks/${hookId}/secret`)).body.secret as string
    expect(renewed).not.toBe(secret)
    receiver.answer = () => new Response()
    await ask('POST', `web/webhooks/${hookId}/test`)
    expect(await isSignedWith(renewed, receiver.received.at(-1)!)).toBeTrue()
    expect(await isSignedWith(secret, receiver.received.at(-1)!)).toBeFalse()
  })

  test('cannot be used for port scans: it is limited per minute', async () => {
    aheadMs += 60_000
    ask = await askAsOwner(harness)
    const { id } = await account()
    const { id: hookId } = await ofAccount(id, ['balance.low'])
    const statuses: number[] = []
    for (let at = 0; at <= bounds.webhookTestsPerMinuteMax; at++) {
      statuses.push((await ask('POST', `web/webhooks/${hookId}/test`)).status)
    }
    expect(statuses.filter(status => status === 429)).toHaveLength(1)
  })
})

describe('other webhooks', () => {
  test('are notified although many deliveries wait for disabled ones', async () => {
    const { id } = await account()
    for (let at = 0; at < 3; at++) {
      const full = await ofAccount(id, ['balance.low'], `${receiver.url}/never/${at}`)
      await setDisabled(full.id, true)
      fill(full.id)
    }
    const { id: otherId, key } = await account()
    await ofAccount(otherId, ['key.revoked'])
    await harness.weir('keys revoke', { key })
    await until(() => types().includes('key.revoked'), 'the webhook is notified')
    expect(receiver.received.map(({ path }) => path)).toEqual(['/hook'])
  })

  test('are notified while many are slow', async () => {
    const slow: string[] = []
    const slowReceiver = startReceiver() // the last requests to it may come after the test
    slowReceiver.answer = async () => {
      await Bun.sleep(100)
      return new Response()
    }
    for (let at = 0; at < bounds.webhookCallsMax + 2; at++) {
      const { id } = await account()
      slow.push((await ofAccount(id, ['balance.low'], slowReceiver.url)).id)
      fill(slow.at(-1)!)
    }
    const { id, key } = await account()
    await ofAccount(id, ['key.revoked'])
    await harness.weir('keys revoke', { key })
    await until(() => types().includes('key.revoked'), 'the webhook is notified')
    for (const one of slow) await ask('DELETE', `web/webhooks/${one}`)
    slowReceiver.stop()
  })
})

const setDisabled = (id: string, disabled: boolean): Promise<ApiAnswer> =>
  ask('PATCH', `web/webhooks/${id}`, { disabled })

/** Fills the queue of a webhook up to its bound. */
function fill(hookId: string): void {
  const db = openDatabase(join(harness.folder, 'weir.db'), { readwrite: true, safeIntegers: true })
  const insert = db.query(
    `WITH RECURSIVE n (at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM n WHERE at < 1000)
     INSERT INTO webhook_delivery (webhook_id, event, data, made_ms, due_ms) SELECT ?1, 'balance.low', '{}', ?2, 0 FROM n`,
  )
  insert.run(parseTextId('hook', hookId)!, nowMs())
  db.close()
}

describe('a delivery', () => {
  const again = (webhook: string, delivery: string): Promise<ApiAnswer> =>
    ask('POST', `web/webhooks/${webhook}/deliveries/${delivery}/send-again`)
  const revokedKey = async (of: string): Promise<void> => {
    const { body } = await ask('POST', 'web/keys', { account: of })
    await ask('DELETE', `web/keys/${String(body.id)}`)
  }

  test('is shown as it was sent, without its signature, and is sent again with the same id and body', async () => {
    const { id } = await account()
    aheadMs += 61_000 // as many tests as a minute allows have been sent above
    const { id: webhook, secret } = await ofAccount(id, ['key.revoked'], `${receiver.url}?token=t0ken`)
    await revokedKey(id)
    const { id: delivery } = await attempted(webhook, 1)
    const [sent] = receiver.received
    const shown = await ask('GET', `web/webhooks/${webhook}/deliveries/${delivery}`)
    expect(shown.body).toMatchObject({
      state: 'delivered',
      request: {
        url: `${receiver.url}?token=t0ken`,
        headers: { 'Content-Type': 'application/json', 'X-Weir-Event': 'key.revoked', 'X-Weir-Event-Id': delivery },
        body: sent!.body,
      },
    })
    expect(shown.text).not.toMatch(/signature/i)
    expect((await again(webhook, delivery)).body).toMatchObject({ id: delivery })
    await until(() => receiver.received.length === 2, 'the second request')
    const [, second] = receiver.received
    expect([second!.body, await isSignedWith(secret, second!)]).toEqual([sent!.body, true])
    expect(await attempted(webhook, 1)).toMatchObject({ id: delivery, state: 'delivered', attempts: 1 })
  })

  test('that waits is sent at once, with those that wait behind it, in their order', async () => {
    const { id } = await account()
    const { id: webhook } = await ofAccount(id, ['key.revoked'])
    receiver.answer = () => new Response('no', { status: 500 })
    await revokedKey(id)
    await revokedKey(id)
    await until(() => receiver.received.length === 1, 'the first attempt')
    while ((await deliveries(webhook)).at(-1)!.attempts === 0) await Bun.sleep(5)
    const [later, first] = await deliveries(webhook)
    expect([first!.state, later!.state]).toEqual(['waiting', 'waiting'])
    receiver.answer = () => new Response('thanks')
    receiver.received.length = 0
    await again(webhook, later!.id)
    await until(() => receiver.received.length === 2, 'both requests')
    expect(receiver.received.map(({ event }) => event.id)).toEqual([first!.id, later!.id])
  })

  test('is not sent again for a webhook that is disabled, or from another webhook', async () => {
    const { id } = await account()
    const [{ id: webhook }, { id: other }] = [
      await ofAccount(id, ['key.revoked']),
      await ofAccount(id, ['balance.empty'], `${receiver.url}/other`),
    ]
    await revokedKey(id)
    const { id: delivery } = await attempted(webhook, 1)
    const path = `web/webhooks/${other}/deliveries/${delivery}`
    expect((await ask('GET', path)).error.code).toBe('resource_unknown')
    expect((await again(other, delivery)).error.code).toBe('resource_unknown')
    await ask('PATCH', `web/webhooks/${webhook}`, { disabled: true })
    expect((await again(webhook, delivery)).error.code).toBe('state_unfit')
  })
})
