// The query worker: queries that fail, queries whose thread cannot start, and queries right after a write.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bounds } from '../../base/bounds.ts'
import { Writer } from '../engine/writer.ts'
import { QueryWorker } from './query-worker.ts'

const folder = mkdtempSync(join(tmpdir(), 'weir-worker-'))
const path = join(folder, 'weir.db')
let writer: Writer
let worker: QueryWorker

beforeAll(async () => {
  ;[writer] = await Writer.open({ path, ballastBytes: 0 }, () => {})
  worker = new QueryWorker(path)
})
afterAll(async () => {
  worker.close()
  await writer.close()
  rmSync(folder, { recursive: true, force: true })
})

const tier = (name: string) => worker.query('tier', { name })

test('a query sees every row that was written before it', async () => {
  for (let index = 0; index < 200; index++) {
    const name = `t${index}`
    await writer.run('setTier', { name, isNew: true, qpm: 5, pricePerMille: 1_000 }, { actor: 'test' })
    expect(await tier(name)).toMatchObject({ name })
  }
})

test('a failing query is rejected, and other queries are not', async () => {
  const wrong = worker.query('tier', null as never)
  const right = tier('pro')
  await expect(wrong).rejects.toThrow()
  expect(await right).toMatchObject({ name: 'pro' })
})

const tierFor = (actorId: number, name = 'pro') => worker.query('tier', { name, scope: { actorId, rank: 1 } } as never)

test('people take turns, and the staff has room of its own', async () => {
  const order: string[] = []
  const asked = (who: string, query: Promise<unknown>): Promise<unknown> => query.then(() => order.push(who))
  const first = Array.from({ length: bounds.queriesOfPersonMax }, () => asked('first', tierFor(1)))
  const all = [...first, asked('second', tierFor(2)), asked('staff', tier('pro')), asked('second', tierFor(2))]
  await Promise.all(all)
  // The first query was sent before the others came.
  expect(order.slice(0, 6)).toEqual(['first', 'first', 'second', 'staff', 'first', 'second'])

  const people = Math.ceil(bounds.queriesMax / bounds.queriesOfPersonMax) + 1
  const flood = Array.from({ length: people * bounds.queriesOfPersonMax * 2 }, (_, at) => tierFor(1 + (at % people)))
  const [ofStaff] = [tier('pro')]
  const ended = await Promise.allSettled(flood)
  expect(await ofStaff).toMatchObject({ name: 'pro' })
  const refused = ended.filter(({ status }) => status === 'rejected')
  expect(refused).toHaveLength(flood.length - bounds.queriesMax - 1)
  expect(refused[0]).toMatchObject({ reason: { code: 'overloaded' } })
})

test('a query of a member without a scope takes the turn of the member', async () => {
  const flood = Array.from({ length: bounds.queriesOfStaffMax + 2 }, () => worker.query('tier', { name: 'pro' }, 1))
  const ended = Promise.allSettled(flood)
  expect(await tier('pro')).toMatchObject({ name: 'pro' })
  const refused = (await ended).filter(({ status }) => status === 'rejected')
  expect(refused).toHaveLength(flood.length - bounds.queriesOfPersonMax - 1)
})

test('waiting queries are rejected when the worker closes, and the next query is answered', async () => {
  const waiting = Promise.allSettled([tier('pro'), tier('free')])
  worker.close()
  const rejected = { status: 'rejected', reason: { code: 'storage_away' } }
  expect(await waiting).toMatchObject([rejected, rejected])
  expect(await tier('pro')).toMatchObject({ name: 'pro' })
})

test('queries are rejected where the database file is missing', async () => {
  const none = new QueryWorker(join(folder, 'none.db'))
  await expect(none.query('tier', { name: 'pro' })).rejects.toMatchObject({ code: 'storage_away' })
  await expect(none.query('tier', { name: 'pro' })).rejects.toMatchObject({ code: 'storage_away' })
  none.close()
})
