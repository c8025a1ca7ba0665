// Operations of people on the same accounts as the batches of calls, from many connections: money stays exact, and nobody
// waits for ever.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { bounds } from '../../src/base/bounds.ts'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import { PostgresOperations } from '../../src/store/postgres/cold-operations.ts'
import { LedgerWriter } from '../../src/store/postgres/ledger.ts'
import { Membership } from '../../src/store/postgres/membership.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { createSchema } from '../../src/store/postgres/schema.ts'
import { holdOf, recordOf } from '../support/books.ts'
import { randomFrom } from '../support/chance.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'
import { postgresFaults } from './ledger-run.ts'

tellMissingPostgres()

const by = { actor: 'test' }
const ACCOUNTS = [11, 12, 13, 14]
const CONNECTIONS = 8
const ROUNDS = 20

describe.skipIf(!hasPostgres)('operations at the same time', () => {
  let server: TestPostgres
  let pool: PostgresPool
  let operations: PostgresOperations

  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())
  beforeEach(async () => {
    pool = await server.open({ connections: 4, deadlineMs: 60_000 })
    await createSchema(pool)
    operations = new PostgresOperations(pool, { slot: 0 })
  })

  /** As many processes as there are connections, each with its own. */
  const connections = (): PostgresOperations[] =>
    Array.from({ length: CONNECTIONS }, () => {
      const own = server.openAgain(server.lastDatabase, { connections: 1, deadlineMs: 60_000 })
      return new PostgresOperations(own, { slot: 0 })
    })
  const openWriter = async (): Promise<LedgerWriter> => {
    const owner = await Membership.join(pool, { version: '1', address: 'test' })
    const own = server.openAgain(server.lastDatabase, { connections: 1, deadlineMs: 60_000 })
    return new LedgerWriter(own, { owner, onFenced: () => expect.unreachable(), retryMs: 1, waitedMs: () => 0 })
  }
  async function createAccount(id: number, credit: `${bigint}`): Promise<void> {
    const key = { id: id + 1_000, accountId: id, existing: false, digest: id.toString(16).padStart(64, '0') }
    const about = { pepper: 'aabbccdd', suffix: 'abcd', name: 'x', tier: 'pro', qpm: null }
    await operations.run('createKey', { ...key, ...about, credit, creditRef: id }, by)
  }
  const one = async <Row>(sql: string): Promise<Row> => (await pool.transact(postgresQuery<Row>(sql).get()))!
  const untilWaiting = async (lock: string): Promise<void> => {
    const waiting = `SELECT count(*) AS n FROM pg_locks WHERE NOT granted AND locktype IN (${lock})`
    while ((await one<{ n: bigint }>(waiting)).n === 0n) await Bun.sleep(5)
  }

  const noDeadlock = async (): Promise<void> => {
    // The counter is written when a connection is idle or ends.
    await pool.transact(postgresQuery('SELECT pg_stat_force_next_flush()').get())
    const { deadlocks } = await one<{ deadlocks: bigint }>(
      'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
    )
    expect(deadlocks).toBe(0n)
  }

  test('leave exact sums while batches hold and settle on the same accounts', async () => {
    for (const id of ACCOUNTS) await createAccount(id, '1000000')
    const codes = Array.from({ length: 60 }, (_, at) => ({
      id: 500_000 + at,
      digest: createHash('sha256').update(String(at)).digest('hex'),
    }))
    await operations.run(
      'createCodes',
      { codes, pepper: 'aabbccdd', batch: 'b', amount: '777', author: 'a', expiresMs: null },
      by,
    )
    const webhook = { accountId: 11, scope: null, url: 'https://h/x', origin: 'https://h', events: 'balance.low' }
    const secret = Buffer.alloc(50).toString('base64')
    await operations.run('createWebhook', { ...webhook, id: 90, secret, author: 'a' }, by)
    const writers = await Promise.all([openWriter(), openWriter(), openWriter()])
    const random = randomFrom(7)
    const accountAt = (): number => ACCOUNTS[random(ACCOUNTS.length)]!
    let lastId = 1_000_000
    const charged: number[] = []
    let isOver = false

    const call = async (writer: LedgerWriter): Promise<void> => {
      while (!isOver) {
        const calls = Array.from({ length: 1 + random(12) }, () => [++lastId, accountAt()] as const)
        const held = await Promise.all(calls.map(([id, account]) => writer.run('hold', holdOf(id, account, '900'))))
        await Promise.all(
          calls.map(async ([id, account], at) => {
            if (held[at]!.done !== 'held') return
            const settled = await writer.run('settle', {
              record: recordOf(id, account),
              cost: `${BigInt(random(900))}`,
            })
            if (settled.done === 'settled' && settled.charged !== '0') charged.push(id)
          }),
        )
      }
    }
    const refund = async (people: PostgresOperations): Promise<unknown> => {
      const ref = charged.at(-1 - random(5))
      if (ref === undefined) return undefined
      const row = postgresQuery<{ debit: bigint }>("SELECT debit FROM transfer WHERE ref = $1 AND kind = 'charge'")
      const accountId = Number((await pool.transact(row.get(ref)))!.debit)
      return people.run('post', { kind: 'refund', ref, accountId, amount: 'all', reference: null, author: 'a' }, by)
    }
    const work = async (people: PostgresOperations): Promise<void> => {
      // The calls get fewer turns than people on some machines.
      for (let round = 0; round < ROUNDS || charged.length <= 50; round++) {
        const accountId = accountAt()
        const post = { ref: ++lastId, accountId, reference: null, author: 'a' }
        switch (random(8)) {
          case 0:
            await people.run('post', { ...post, kind: 'top_up', amount: '5000' }, by)
            break
          case 1:
            await people.run('post', { ...post, kind: 'adjustment', amount: `${BigInt(-1 - random(300_000))}` }, by)
            break
          case 2:
            await refund(people)
            break
          case 3:
            await people.run('redeemCode', { digests: [codes[random(codes.length)]!.digest], accountId }, by)
            break
          case 4: {
            const creditLimit = random(2) === 0 ? '0' : '200000'
            await people.run('setAccount', { id: accountId, creditLimit, frozen: random(4) === 0 }, by)
            break
          }
          case 5: {
            const scopeId = accountId + (random(2) === 0 ? 1_000 : 0)
            const cap = random(2) === 0 ? null : (`${BigInt(random(2_000_000))}` as const)
            await people.run('setBudget', { scopeId, span: 'day', cap }, by)
            break
          }
          case 6:
            await people.run('setAlert', { accountId, threshold: `${BigInt(1 + random(1_500_000))}`, scope: null }, by)
            break
          case 7: {
            const id = ++lastId
            const other = { ...webhook, url: `https://h/${id}`, accountId: null }
            await people.run('createWebhook', { ...other, id, secret, author: 'a' }, by)
            await people.run('removeWebhook', { id, scope: null }, by)
          }
        }
      }
    }
    const calls = writers.map(call)
    await Promise.all(connections().map(work)).finally(() => (isOver = true))
    await Promise.all(calls)
    for (const id of ACCOUNTS) await operations.run('setAccount', { id, frozen: false }, by)

    expect(charged.length).toBeGreaterThan(50)
    expect(await postgresFaults(pool)).toEqual([])
    expect(await one('SELECT count(*) AS open FROM hold')).toEqual({ open: 0n })
    expect(
      await one(`SELECT count(*) AS below FROM account WHERE kind = 'prepaid' AND balance + credit_limit - held < 0`),
    ).toEqual({ below: 0n })
    // Each code was paid out once, to the account that is written in it.
    expect(
      await one(`SELECT (SELECT count(*) FROM code WHERE redeemed_ms IS NOT NULL) =
          (SELECT count(*) FROM transfer t JOIN code c ON c.id = t.ref AND c.account_id = t.credit
           WHERE t.kind = 'redemption' AND t.amount = 777) AS same`),
    ).toEqual({ same: true })
    await noDeadlock()
  })

  test('read money only after the batch that is changing it', async () => {
    const digest = createHash('sha256').update('code').digest('hex')
    const codes = { codes: [{ id: 500_000, digest }], pepper: 'aabbccdd', batch: 'b', author: 'a', expiresMs: null }
    await operations.run('createCodes', { ...codes, amount: '50' }, by)
    const post = { accountId: 11, reference: null, author: 'a' }
    const batch = server.openAgain(server.lastDatabase, { connections: 1, deadlineMs: 60_000 })
    const [people] = connections()
    /** The result of an operation that begins while a batch has changed the account and is not committed. */
    const during = async <T>(change: string, operation: () => Promise<T>): Promise<T> => {
      await batch.runScript(`BEGIN; UPDATE account SET ${change} WHERE id = 11`)
      const result = operation()
      await untilWaiting("'transactionid', 'tuple'")
      await batch.runScript('COMMIT')
      return result
    }
    await createAccount(11, '1000')
    expect(
      await during('balance = balance - 300', () =>
        people!.run('post', { ...post, kind: 'top_up', ref: 1, amount: '100' }, by),
      ),
    ).toMatchObject({ done: 'posted', balance: '800' })
    expect(
      await during('held = 700', () =>
        people!.run('post', { ...post, kind: 'adjustment', ref: 2, amount: '-200' }, by),
      ),
    ).toEqual({ done: 'balance_too_low' })
    expect(
      await during('balance = balance + 10', () => people!.run('redeemCode', { digests: [digest], accountId: 11 }, by)),
    ).toMatchObject({ done: 'redeemed', balance: '860' })
    await people!.run('setAccount', { id: 11, creditLimit: '500' }, by)
    expect(await during('held = 1300', () => people!.run('setAccount', { id: 11, creditLimit: '0' }, by))).toEqual({
      done: 'balance_too_low',
    })
  })

  test('settle a call although the webhook that it is told to is being removed', async () => {
    await createAccount(11, '1000000000')
    await operations.run('setAlert', { accountId: 11, threshold: '900000000', scope: null }, by)
    const webhook = { accountId: 11, scope: null, url: 'https://h/x', origin: 'https://h', events: 'balance.low' }
    const secret = Buffer.alloc(50).toString('base64')
    await operations.run('createWebhook', { ...webhook, id: 90, secret, author: 'a' }, by)
    const writer = await openWriter()
    await writer.run('hold', holdOf(1, 11, '500000000'))
    const remover = server.openAgain(server.lastDatabase, { connections: 1, deadlineMs: 60_000 })
    await remover.runScript('BEGIN; DELETE FROM webhook WHERE id = 90')
    const settled = writer.run('settle', { record: recordOf(1, 11), cost: '400000000' })
    await untilWaiting("'transactionid', 'tuple'")
    await remover.runScript('COMMIT')
    expect(await settled).toEqual({ done: 'settled', charged: '400000000', shortfall: '0' })
    expect(await one('SELECT count(*) AS n FROM webhook_delivery')).toEqual({ n: 0n })
  })

  test('of many accounts wait for those of one account', async () => {
    const call = server.openAgain(server.lastDatabase, { connections: 1, deadlineMs: 60_000 })
    await call.runScript('BEGIN; SELECT pg_advisory_xact_lock_shared(7311580426)')
    const swept = operations.run('forgetKept', { nowMs: 5 })
    await untilWaiting("'advisory'")
    await call.runScript('COMMIT')
    expect(await swept).toEqual({ done: 'forgotten', count: 0 })
  })

  test('keep the bounds of each account', async () => {
    const many = connections()
    const task = (callId: number, accountId: number) => ({
      ...{ callId, accountId, id: `t${callId}`, keyId: 1, provider: 'p', model: 'm', channel: 'c', admitted: '{}' },
      ...{ createdMs: 1, dueMs: 1, expiresMs: 2 },
    })
    const LEFT = 10
    for (const [first, account] of [
      [1, 11],
      [10_001, 12],
    ] as const) {
      await operations.run('createTask', task(first, account))
      await pool.runScript(`INSERT INTO task (call_id, account_id, id, key_id, provider, model, channel, admitted, status,
          created_ms, updated_ms, due_ms, expires_ms)
        SELECT call_id + n, account_id, id || '-' || n, key_id, provider, model, channel, admitted, status,
          created_ms, updated_ms, due_ms, expires_ms
        FROM task, generate_series(1, ${bounds.tasksOpenMax - LEFT - 1}) n WHERE call_id = ${first}`)
    }
    const created = await Promise.all(
      Array.from({ length: 80 }, (_, at) =>
        many[at % CONNECTIONS]!.run('createTask', task(20_001 + at, at % 2 === 0 ? 11 : 12)),
      ),
    )
    expect(created.filter(({ done }) => done === 'created')).toHaveLength(2 * LEFT)
    const file = (at: number) => ({
      accountId: 11 + (at % 2),
      id: `f${at % 40}`,
      channel: 'c',
      expiresMs: 9,
      bytes: at,
    })
    const sweep = (at: number) => many[at % CONNECTIONS]!.run('forgetKept', { nowMs: 8 })
    await Promise.all(
      Array.from({ length: 200 }, (_, at) =>
        at % 20 === 0 ? sweep(at) : many[at % CONNECTIONS]!.run(at % 5 === 0 ? 'dropFile' : 'keepFile', file(at)),
      ),
    )
    const shares = `SELECT coalesce(sum(abs(k.rows - coalesce(f.rows, 0)) + abs(k.bytes - coalesce(f.bytes, 0))), 0) AS off
      FROM kept_share k LEFT JOIN
        (SELECT account_id, count(*) AS rows, sum(bytes) AS bytes FROM kept_file GROUP BY account_id) f USING (account_id)
      WHERE k.kind = 'kept_file'`
    expect(String((await one<{ off: unknown }>(shares)).off)).toBe('0')
    await noDeadlock()
  })

  test('renew a session once, whichever process gets the same cookie, and again after a lost answer', async () => {
    const [first, ...digests] = Array.from({ length: 20 }, (_, at) =>
      createHash('sha256').update(`${at}`).digest('hex'),
    )
    const person = { id: 21, email: 'a@b.test', name: 'A', password: 'hash' }
    const account = { id: 31, tier: 'standard', credit: '0', creditRef: 32 } as const
    const session = { id: 41, refresh: first!, address: '::1', place: '::1', agent: '' }
    await operations.run('register', { person, account, session, nowMs: 1 }, by)
    const many = connections()
    /** All processes get the cookie at the same time. Each has made another next token; all return the same. */
    const renewAll = async (digest: string, nowMs: number): Promise<string> => {
      const made = new Map(many.map((_, at) => [Buffer.from(`sealed at ${nowMs} by ${at}`).toString('base64'), at]))
      const nexts = digests.splice(0, many.length)
      const results = await Promise.all(
        many.map((process, at) =>
          process.run('renewSession', { digest, next: nexts[at]!, sealed: [...made.keys()][at]!, nowMs }),
        ),
      )
      const [winner] = results.flatMap(({ done }, at) => (done === 'renewed' ? [at] : []))
      const repeated = results.flatMap(result => (result.done === 'again' ? [made.get(result.sealed)] : []))
      expect(repeated).toEqual(Array(CONNECTIONS - 1).fill(winner))
      return nexts[winner!]!
    }
    const lost = await renewAll(first!, 1_000)
    const next = await renewAll(first!, 61_000)
    const used = { next: 'ab'.repeat(32), sealed: 'AAAA', nowMs: 100_000 }
    expect(await many[0]!.run('renewSession', { digest: next, ...used })).toMatchObject({ done: 'renewed' })
    expect(await many[1]!.run('renewSession', { digest: lost, ...used })).toMatchObject({ done: 'stolen' })
    expect(await many[2]!.run('renewSession', { digest: used.next, ...used })).toEqual({ done: 'over' })
  })

  test('of one account do not wait for those of others', async () => {
    const [people, calls] = connections()
    const blocked = server.openAgain(server.lastDatabase, { connections: 1, deadlineMs: 60_000 })
    let release!: () => void
    const isReleased = new Promise<void>(resolve => (release = resolve))
    const holding = (async () => {
      await blocked.runScript('SELECT pg_advisory_lock(7311580423)')
      await isReleased
      await blocked.runScript('SELECT pg_advisory_unlock(7311580423)')
    })()
    const tryLock = postgresQuery<{ free: boolean }>('SELECT pg_try_advisory_xact_lock(7311580423) AS free')
    while ((await pool.transact(tryLock.get()))!.free) await Bun.sleep(5)
    const waiting = people!.run('setSetting', { name: 'a', value: 'b' })
    const kept = { accountId: 11, id: 'f', channel: 'c', expiresMs: 9, bytes: 1 }
    expect(await calls!.run('keepFile', kept)).toEqual({ done: 'kept' })
    release()
    await holding
    expect(await waiting).toEqual({ done: 'set' })
  })
})
