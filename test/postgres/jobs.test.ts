// Jobs that one process does for all: who does them, and who does them when that process is dead.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import { PostgresJobs, recoverDeadJobs } from '../../src/store/postgres/jobs.ts'
import { Membership } from '../../src/store/postgres/membership.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { createSchema } from '../../src/store/postgres/schema.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'

tellMissingPostgres()

describe.skipIf(!hasPostgres)('jobs', () => {
  let server: TestPostgres
  let pool: PostgresPool

  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())
  afterEach(() => server.closeAll())
  beforeEach(async () => {
    pool = await server.open({ connections: 8, deadlineMs: 60_000 })
    await createSchema(pool)
  })

  /** The own clock of the process stands still, so that a slow machine does not end its lease. */
  const clocks = { steadyMs: () => 0, dateMs: Date.now }
  const join = (): Promise<Membership> => Membership.join(pool, { version: '1', address: 'test' }, clocks)
  const begin = async (): Promise<PostgresJobs> => {
    const member = await join()
    return new PostgresJobs(pool, () => member)
  }
  const fence = ({ slot }: Membership): Promise<number> =>
    pool.transact(postgresQuery('UPDATE process SET is_dead = 1, epoch = epoch + 1 WHERE slot = $1').run(slot))
  const leases = async (): Promise<string[]> => {
    const rows = await pool.transact(postgresQuery<{ name: string }>('SELECT name FROM job_lease ORDER BY name').all())
    return rows.map(({ name }) => name)
  }

  test('each job has one process, however many want it at once', async () => {
    const processes = await Promise.all(Array.from({ length: 8 }, join))
    const all = processes.map(member => new PostgresJobs(pool, () => member))
    for (const job of ['statistics', 'audit', 'webhook 5', 'task 7'] as const) {
      const isOurs = await Promise.all(all.map(jobs => jobs.isOurs(job)))
      expect(isOurs.filter(Boolean)).toHaveLength(1)
      // Nobody loses it, and nobody else gets it.
      expect(await Promise.all(all.map(jobs => jobs.isOurs(job)))).toEqual(isOurs)
      expect(await Promise.all(all.map(jobs => jobs.isElsewhere(job)))).toEqual(isOurs.map(mine => !mine))
    }
  })

  test('a job is free when its process gives it back, or closes', async () => {
    const [one, other] = [await begin(), await begin()]
    expect([await one.isOurs('webhook 1'), await one.isOurs('audit'), await one.isOurs('reseal')]).toEqual([
      true,
      true,
      true,
    ])
    await one.giveBack('webhook 1')
    expect([await other.isOurs('webhook 1'), await one.isOurs('webhook 1')]).toEqual([true, false])
    // It is not its job any more.
    await one.giveBack('webhook 1')
    expect(await one.isOurs('webhook 1')).toBe(false)
    await one.close()
    expect([await other.isOurs('audit'), await other.isOurs('reseal')]).toEqual([true, true])
    expect(await one.isOurs('statistics')).toBe(false)
  })

  test('the process that makes a response learns what others ask of it, and the most of it counts', async () => {
    const [maker, member] = [await join(), await join()]
    const [its, jobs] = [new PostgresJobs(pool, () => maker), new PostgresJobs(pool, () => member)]
    const job = 'response 1/resp_1'
    await jobs.ask(job, 'cancel') // nobody makes it
    await its.isOurs(job)
    await its.ask(job, 'cancel') // one does not ask oneself
    expect([...(await its.takeWishes())]).toEqual([])
    for (const [wish, counts] of [
      ['events', 'events'],
      ['cancel', 'cancel'],
      ['events', 'cancel'],
      ['delete', 'delete'],
      ['cancel', 'delete'],
    ] as const) {
      await jobs.ask(job, wish)
      expect([...(await its.takeWishes())]).toEqual([[job, counts]])
    }
    expect([...(await jobs.takeWishes())]).toEqual([])
    await fence(maker)
    expect([await jobs.isOurs(job), [...(await jobs.takeWishes())]]).toEqual([true, []])
  })

  test('the wish for events ends when it is taken, and that for the end of a response stays', async () => {
    const [its, jobs] = [await begin(), await begin()]
    const job = 'response 1/resp_1'
    await its.isOurs(job)
    for (const wish of ['events', 'events', 'cancel', 'delete'] as const) {
      await jobs.ask(job, wish)
      await jobs.ask(job, wish)
      expect([...(await its.takeWishes())]).toEqual([[job, wish]])
      expect([...(await its.takeWishes())]).toEqual(wish === 'events' ? [] : [[job, wish]])
    }
  })

  test('no wish is lost that comes while others are taken', async () => {
    const [maker, jobs] = [await join(), await begin()]
    let meanwhile: () => Promise<unknown> = async () => {}
    const its = new PostgresJobs(
      {
        transact: steps => pool.transact(steps),
        async readPoint(steps) {
          const found = await pool.readPoint(steps)
          await meanwhile()
          return found
        },
      },
      () => maker,
    )
    for (const wish of ['cancel', 'delete'] as const) {
      const [one, other] = ['response 1/followed', `response 1/${wish}`] as const
      await its.isOurs(one)
      await its.isOurs(other)
      await jobs.ask(other, 'events')
      meanwhile = () => Promise.all([jobs.ask(one, 'events'), jobs.ask(other, wish)])
      const taken = new Map(await its.takeWishes())
      meanwhile = async () => {}
      for (const [job, found] of await its.takeWishes()) taken.set(job, found)
      await its.giveBack(other)
      expect(taken).toEqual(
        new Map([
          [one, 'events'],
          [other, wish],
        ]),
      )
    }
  })

  test('a wish that is there already is not written again', async () => {
    const [its, jobs] = [await begin(), await begin()]
    const job = 'response 1/resp_1'
    const version = async (): Promise<string> =>
      (await pool.readPoint(
        postgresQuery<{ version: string }>('SELECT CAST(xmin AS TEXT) AS version FROM job_lease').get(),
      ))!.version
    await its.isOurs(job)
    for (const wish of ['events', 'cancel', 'delete'] as const) {
      const before = await version()
      await jobs.ask(job, wish)
      const asked = await version()
      expect(asked).not.toBe(before)
      await jobs.ask(job, wish)
      expect(await version()).toBe(asked)
    }
  })

  test('the jobs of a fenced process are free at once, and it does not take them back', async () => {
    const [dead, member] = [await join(), await join()]
    const [its, jobs] = [new PostgresJobs(pool, () => dead), new PostgresJobs(pool, () => member)]
    await its.isOurs('audit')
    await fence(dead)
    expect(await jobs.isElsewhere('audit')).toBe(false)
    expect(await jobs.isOurs('audit')).toBe(true)
    // It has not noticed yet that it is fenced.
    expect(await its.isOurs('statistics')).toBe(false)
    expect(await jobs.isOurs('statistics')).toBe(true)
    await dead.renew()
    expect(await its.isOurs('audit')).toBe(false)
    await its.close()
    expect(await leases()).toEqual(['audit', 'statistics'])
  })

  test('a process that was fenced and has joined again has lost its jobs', async () => {
    let member = await join()
    const jobs = new PostgresJobs(pool, () => member)
    expect(await jobs.isOurs('audit')).toBe(true)
    await fence(member)
    const other = await begin()
    expect(await other.isOurs('audit')).toBe(true)
    member = await join()
    expect(await jobs.isOurs('audit')).toBe(false)
    expect(await jobs.isOurs('statistics')).toBe(true)
    await jobs.giveBack('audit')
    expect(await other.isElsewhere('audit')).toBe(false)
    expect(await leases()).toEqual(['audit', 'statistics'])
  })

  test('a process that begins in the slot of a dead one does not lose its jobs as if it were dead', async () => {
    const [dead, member] = [await join(), await join()]
    await new PostgresJobs(pool, () => dead).isOurs('audit')
    await fence(dead)
    const { slot, epoch } = dead
    await pool.runScript('UPDATE process SET ids_until_ms = 0 WHERE is_dead = 1')
    const next = await join()
    expect(next.slot).toBe(slot)
    expect(next.epoch).toBeGreaterThan(epoch + 1)
    const jobs = new PostgresJobs(pool, () => next)
    expect(await jobs.isOurs('audit')).toBe(true)
    // A statement that began earlier sees the process row as it was before, but the new lease.
    await pool.runScript(`UPDATE process SET epoch = ${epoch + 1}, is_dead = 1 WHERE slot = ${slot}`)
    expect(await new PostgresJobs(pool, () => member).isOurs('audit')).toBe(false)
  })

  test('a job that was taken without an answer is given back', async () => {
    const member = await join()
    const jobs = new PostgresJobs(
      {
        async transact(steps) {
          await pool.transact(steps)
          throw new Error('the answer of the COMMIT is lost')
        },
        readPoint: steps => pool.readPoint(steps),
      },
      () => member,
    )
    const job = 'response 1/resp_1'
    expect(await jobs.isOurs(job)).toBe(false)
    expect(await leases()).toEqual([job])
    await jobs.giveBack(job)
    const others = await begin()
    while (!(await others.isOurs(job))) await Bun.sleep(20)
    await jobs.close()
  })

  test('without the database no job is ours, and later it is', async () => {
    let isAway = true
    const member = await join()
    const jobs = new PostgresJobs(
      {
        transact: steps => (isAway ? Promise.reject(new Error('away')) : pool.transact(steps)),
        readPoint: steps => pool.readPoint(steps),
      },
      () => member,
    )
    expect(await jobs.isOurs('audit')).toBe(false)
    isAway = false
    expect(await jobs.isOurs('audit')).toBe(true)
    isAway = true
    expect(await jobs.isOurs('audit')).toBe(true)
    await jobs.giveBack('audit')
    // The lease could not be deleted. It is still one of this process, and of no other.
    const others = await begin()
    expect(await others.isOurs('audit')).toBe(false)
    isAway = false
    expect(await jobs.isOurs('audit')).toBe(true)
    isAway = true
    await jobs.giveBack('audit')
    isAway = false
    while (!(await others.isOurs('audit'))) await Bun.sleep(20)
    expect(await jobs.isOurs('audit')).toBe(false)
  })

  test('responses that a dead process made in the background have failed, and those of others go on', async () => {
    const [dead, member] = [await join(), await join()]
    const row = (id: string, status: string, upstream: string): string =>
      `INSERT INTO kept_response (account_id, id, key_id, status, model, channel, upstream_id, created_ms, expires_ms,
         bytes, sealed) VALUES (11, '${id}', 1, '${status}', 'm', 'c', ${upstream}, 1, 2, 1, 'x')`
    const its = new PostgresJobs(pool, () => dead)
    await its.isOurs('response 11/a')
    await its.isOurs('response 11/b')
    await its.isOurs('webhook 3')
    const jobs = new PostgresJobs(pool, () => member)
    await jobs.isOurs('response 11/c')
    await jobs.isOurs('audit')
    await pool.runScript(
      [
        row('a', 'queued', 'NULL'),
        row('b', 'in_progress', 'NULL'),
        row('c', 'queued', 'NULL'),
        row('upstream', 'in_progress', "'u'"),
        row('done', 'completed', 'NULL'),
      ].join(';'),
    )
    expect(await recoverDeadJobs(pool)).toBe(0)
    await fence(dead)
    expect(await recoverDeadJobs(pool)).toBe(2)
    expect(await recoverDeadJobs(pool)).toBe(0)
    const states = postgresQuery<{ id: string; status: string }>('SELECT id, status FROM kept_response ORDER BY id')
    expect((await pool.transact(states.all())).map(({ id, status }) => `${id} ${status}`)).toEqual([
      'a failed',
      'b failed',
      'c queued',
      'done completed',
      'upstream in_progress',
    ])
    expect(await leases()).toEqual(['audit', 'response 11/c'])
  })
})
