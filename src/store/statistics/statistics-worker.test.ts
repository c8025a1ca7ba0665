// Tests the worker of the statistics: requests that fail, and requests that wait when the worker is closed.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writer } from '../engine/writer.ts'
import { StatisticsWorker } from './statistics-worker.ts'

const folder = mkdtempSync(join(tmpdir(), 'weir-statistics-'))
let writer: Writer
const errors: string[] = []

beforeAll(async () => {
  ;[writer] = await Writer.open({ path: join(folder, 'weir.db'), ballastBytes: 0 }, () => {})
})
afterAll(async () => {
  await writer.close()
  rmSync(folder, { recursive: true, force: true })
})

const open = (database: string): StatisticsWorker =>
  new StatisticsWorker({
    database: join(folder, database),
    statistics: join(folder, `statistics of ${database}`),
    writer,
    onError: detail => errors.push(detail),
  })

const errorOf = (work: Promise<void>): Promise<string> => work.then(String, (fault: Error) => fault.message)

test('a request resolves when its work is done, and the progress is known then', async () => {
  const worker = open('weir.db')
  await worker.ready()
  expect(worker.progress).toEqual({ seq: 0, scanned: 1 })
  await Promise.all([worker.catchUp(), worker.eraseEndUser('ann', undefined), worker.catchUp(), worker.ready()])
  await worker.close()
  expect(errors).toEqual([])
})

test('a step that fails rejects the requests that wait for it, and is reported', async () => {
  const worker = open('none.db')
  const failed = await Promise.all([worker.ready(), worker.catchUp(), worker.eraseEndUser('ann', 1)].map(errorOf))
  for (const text of failed) expect(text).toContain('unable to open database file')
  expect(errors.length).toBeGreaterThanOrEqual(3)
  await worker.close()
})

test('requests that wait are rejected when the worker closes, and so are later ones', async () => {
  const worker = open('weir.db')
  const waiting = [worker.ready(), worker.catchUp(), worker.eraseEndUser('ann', 1)].map(errorOf)
  const closing = worker.close()
  const closed = 'the statistics were closed'
  expect(await Promise.all(waiting)).toEqual([closed, closed, closed])
  await closing
  expect(await errorOf(worker.catchUp())).toBe(closed)
})
