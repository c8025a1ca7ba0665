// Several processes deliver the events of one database: each event arrives once, in order, and one at a time.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { buildLog } from '../../src/base/log.ts'
import { Seal } from '../../src/base/secrets/seal.ts'
import { buildSecretRing } from '../../src/base/secrets/secret-ring.ts'
import { PrivateHosts } from '../../src/http/address/private-hosts.ts'
import { openWebhookClient } from '../../src/http/client/webhook-client.ts'
import type { WebhookSecretText } from '../../src/identity/webhook-secret.ts'
import { sealWebhookSecret } from '../../src/identity/webhook-secret.ts'
import type { DelivererParts } from '../../src/management/webhooks/deliverer.ts'
import { WebhookDeliverer } from '../../src/management/webhooks/deliverer.ts'
import { eventId } from '../../src/management/webhooks/events.ts'
import { bindReads } from '../../src/store/engine/reads.ts'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import { PostgresOperations } from '../../src/store/postgres/cold-operations.ts'
import { PostgresJobs } from '../../src/store/postgres/jobs.ts'
import { Membership } from '../../src/store/postgres/membership.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { createSchema } from '../../src/store/postgres/schema.ts'
import { webhookReads } from '../../src/store/webhooks/webhook-reader.ts'
import { until } from '../support/gateway.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'
import type { Receiver } from '../webhooks/receiver.ts'
import { startReceiver } from '../webhooks/receiver.ts'

tellMissingPostgres()

const HOOKS = 5
const EVENTS = 40
const seal = new Seal(buildSecretRing('x'.repeat(40)))
const SECRET = `whsec_${'s'.repeat(43)}` as WebhookSecretText

describe.skipIf(!hasPostgres)('webhooks of several processes', () => {
  let server: TestPostgres
  let pool: PostgresPool
  let receiver: Receiver
  let operations: PostgresOperations

  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())
  beforeEach(async () => {
    pool = await server.open({ connections: 4, deadlineMs: 60_000 })
    await createSchema(pool)
    receiver = startReceiver()
    operations = new PostgresOperations(pool, { slot: 1 })
  })
  afterEach(() => receiver.stop())

  async function createHook(id: number): Promise<void> {
    const secret = sealWebhookSecret(seal, id, SECRET)
    const about = { scope: null, accountId: null, origin: 'x', events: 'channel.up', author: 'test' }
    await operations.run('createWebhook', { id, url: `${receiver.url}/${id}`, secret, ...about }, { actor: 'test' })
  }

  const raise = async (): Promise<void> => {
    await operations.run('raiseEvent', { event: 'channel.up', accountId: null, data: '{}' })
  }

  /** A process with connections, a lease and a deliverer of its own. */
  async function begin() {
    const own = server.openAgain(server.lastDatabase, { connections: 4, deadlineMs: 60_000 })
    const member = await Membership.join(own, { version: '1', address: 'x' }, { steadyMs: () => 0, dateMs: Date.now })
    const problems: string[] = []
    const jobs = new PostgresJobs(own, () => member)
    const deliverer = new WebhookDeliverer({
      reader: bindReads(webhookReads, steps => own.readPoint(steps)),
      writer: new PostgresOperations(own, { slot: member.slot }) as unknown as DelivererParts['writer'],
      jobs,
      seal,
      outside: openWebhookClient({ privateHosts: PrivateHosts.read('127.0.0.1') as PrivateHosts }),
      log: buildLog('warn', line => problems.push(line)),
      everyMs: 1,
      dateMs: Date.now,
      random: () => 0.5,
    })
    return { deliverer, jobs, member, problems }
  }

  const deliveries = postgresQuery<{ webhook_id: bigint; id: bigint; due_ms: bigint | null }>(
    'SELECT webhook_id, id, due_ms FROM webhook_delivery ORDER BY id',
  )
  async function untilDelivered(): Promise<void> {
    while ((await pool.transact(deliveries.all())).some(({ due_ms }) => due_ms !== null)) await Bun.sleep(5)
  }
  const receivedBy = (id: bigint): string[] =>
    receiver.received.filter(({ path }) => path.endsWith(`/${id}`)).map(({ event }) => event.id)

  test('each event arrives once, in order, and never two at a time', async () => {
    const busy = new Set<string>()
    let overlaps = 0
    receiver.answer = async ({ path }) => {
      if (busy.has(path)) overlaps++
      busy.add(path)
      await Bun.sleep(1)
      busy.delete(path)
      return new Response('thanks')
    }
    for (let id = 1; id <= HOOKS; id++) await createHook(id)
    const processes = [await begin(), await begin(), await begin()]
    for (const { deliverer } of processes) deliverer.start()
    for (let at = 0; at < EVENTS; at++) await raise()
    await untilDelivered()
    await Promise.all(processes.map(({ deliverer }) => deliverer.close()))
    expect(processes.flatMap(({ problems }) => problems)).toEqual([])
    expect(overlaps).toBe(0)
    const made = await pool.transact(deliveries.all())
    expect(made).toHaveLength(HOOKS * EVENTS)
    for (let hook = 1n; hook <= HOOKS; hook++) {
      const ids = made.filter(({ webhook_id }) => webhook_id === hook).map(({ id }) => eventId(Number(id)))
      expect(receivedBy(hook)).toEqual(ids)
    }
    expect(await pool.transact(postgresQuery('SELECT 1 FROM job_lease').all())).toEqual([])
  })

  test('while one process waits for the answer of a webhook, no other one sends it anything', async () => {
    const accepted = Promise.withResolvers<void>()
    receiver.answer = async () => {
      await accepted.promise
      return new Response('thanks')
    }
    await createHook(1)
    await raise()
    await raise()
    const [one, other] = [await begin(), await begin()]
    await one.deliverer.deliverDue()
    await until(() => receiver.received.length === 1, 'the first event is sent')
    await other.deliverer.deliverDue()
    // Resolves when the other process has found that the job is not its own.
    await other.deliverer.close()
    expect(receiver.received).toHaveLength(1)
    accepted.resolve()
    await untilDelivered()
    await one.deliverer.close()
    expect(receivedBy(1n)).toEqual([eventId(1), eventId(2)])
  })

  test('the delivery of a process that dies is made again by another one, with the same id', async () => {
    receiver.answer = () => new Promise<Response>(() => {})
    await createHook(1)
    await raise()
    await raise()
    const [dead, other] = [await begin(), await begin()]
    await dead.deliverer.deliverDue()
    await until(() => receiver.received.length === 1, 'the first event is sent')
    const fence = postgresQuery('UPDATE process SET is_dead = 1, epoch = epoch + 1 WHERE slot = $1')
    await pool.transact(fence.run(dead.member.slot))
    receiver.answer = () => new Response('thanks')
    await other.deliverer.deliverDue()
    await untilDelivered()
    await Promise.all([dead.deliverer.close(), other.deliverer.close()])
    expect(receivedBy(1n)).toEqual([eventId(1), eventId(1), eventId(2)])
  })

  describe('a delivery that is sent again', () => {
    const again = (id: number, webhookId = 1, scope: { actorId: number; rank: number } | null = null) =>
      operations.run('sendAgain', { id, webhookId, scope, dueMs: Date.now() }, { actor: 'test' })
    const rows = postgresQuery<{ id: bigint; attempts: bigint; delivered: bigint; is_due: boolean }>(
      'SELECT id, attempts, delivered, due_ms IS NOT NULL AS is_due FROM webhook_delivery ORDER BY id',
    )
    const states = async (): Promise<readonly (readonly unknown[])[]> =>
      (await pool.transact(rows.all())).map(({ id, attempts, delivered, is_due: isDue }) => [
        ...[Number(id), Number(attempts), Number(delivered), isDue],
      ])
    const logged = async (): Promise<readonly string[]> =>
      (
        await pool.transact(
          postgresQuery<{ changes: string }>("SELECT changes FROM audit WHERE action = 'sendAgain' ORDER BY seq").all(),
        )
      ).map(({ changes }) => changes)

    test('arrives with the same id and body, and is in the audit log', async () => {
      await createHook(1)
      await raise()
      await raise()
      const { deliverer: first } = await begin()
      await first.deliverDue()
      await untilDelivered()
      // While it gives the webhook back, it would take the next delivery, or leave it to nobody.
      await first.close()
      expect(await states()).toEqual([
        [1, 1, 1, false],
        [2, 1, 1, false],
      ])
      expect(await again(1)).toEqual({ done: 'due' })
      expect(await states()).toEqual([
        [1, 0, 0, true],
        [2, 1, 1, false],
      ])
      const { deliverer } = await begin()
      await deliverer.deliverDue()
      await untilDelivered()
      await deliverer.close()
      expect(receivedBy(1n)).toEqual([eventId(1), eventId(2), eventId(1)])
      expect(receiver.received[2]!.body).toBe(receiver.received[0]!.body)
      expect(await states()).toEqual([
        [1, 1, 1, false],
        [2, 1, 1, false],
      ])
      expect(await logged()).toEqual([JSON.stringify({ delivery: eventId(1) })])
    })

    test('brings those that wait forward, in their order, and no test event', async () => {
      await createHook(1)
      await raise()
      await raise()
      const inTenMinutes = Date.now() + 600_000
      await pool.runScript(`UPDATE webhook_delivery SET due_ms = ${inTenMinutes}, attempts = 3`)
      const made = await operations.run('testWebhook', { id: 1, scope: null, dueMs: inTenMinutes }, { actor: 'test' })
      expect(made).toEqual({ done: 'made', delivery: 3 })
      expect(await again(2)).toEqual({ done: 'due' })
      const { deliverer } = await begin()
      await deliverer.deliverDue()
      // A deliverer that is closed gives up what it has not noted as delivered.
      while ((await states()).filter(([, , delivered]) => delivered === 1).length < 2) await Bun.sleep(5)
      await deliverer.close()
      expect(receivedBy(1n)).toEqual([eventId(1), eventId(2)])
      expect(await states()).toEqual([
        [1, 4, 1, false],
        [2, 1, 1, false],
        [3, 0, 0, true],
      ])
    })

    test('must be of this webhook, which is enabled and which the actor reaches', async () => {
      await createHook(1)
      await createHook(2)
      await raise()
      const { deliverer } = await begin()
      await deliverer.deliverDue()
      await untilDelivered()
      await deliverer.close()
      const before = await states()
      expect(before).toHaveLength(2)
      const [{ id: ofSecond } = { id: 0n }] = (await pool.transact(deliveries.all())).filter(
        ({ webhook_id: webhook }) => webhook === 2n,
      )
      expect(await again(Number(ofSecond), 1)).toEqual({ done: 'unknown' })
      expect(await again(999, 1)).toEqual({ done: 'unknown' })
      // A webhook of the site is in no scope of an account.
      expect(await again(Number(ofSecond), 2, { actorId: 31, rank: 3 })).toEqual({ done: 'unknown' })
      await operations.run('setWebhook', { id: 2, scope: null, disabled: true }, { actor: 'test' })
      expect(await again(Number(ofSecond), 2)).toEqual({ done: 'disabled' })
      expect([await states(), await logged()]).toEqual([before, []])
    })
  })

  test('an event that is written while a refusal is noted does not overtake the refused one', async () => {
    await createHook(1)
    await raise()
    await raise()
    await pool.runScript(`UPDATE webhook_delivery SET due_ms = ${Date.now() + 600_000} WHERE id = 1`)
    const { deliverer } = await begin()
    await deliverer.deliverDue()
    await deliverer.close()
    expect(receiver.received).toEqual([])
  })
})
