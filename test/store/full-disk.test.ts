// A database that cannot grow: new calls are refused, and running calls are settled anyway.

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Refusal } from '../../src/base/errors.ts'
import { Writer } from '../../src/store/engine/writer.ts'
import { bookFaults, holdOf, recordOf } from '../support/books.ts'
import { openDatabase } from '../support/database.ts'
import { until } from '../support/gateway.ts'

const MEGABYTE = 1024 * 1024
let folder: string
let writer: Writer

const options = () => ({ path: join(folder, 'weir.db'), ballastBytes: MEGABYTE, databaseBytesMax: 3 * MEGABYTE })

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-full-'))
  ;[writer] = await Writer.open(options(), detail => {
    throw new Error(detail)
  })
  const digest = '00'.repeat(32)
  const key = { id: 1_011, accountId: 11, existing: false, digest, creditRef: 11, credit: '1000000' } as const
  const keyFields = { ...key, pepper: 'aabbccdd', suffix: 'x', name: 'x', tier: 'pro', qpm: null } as const
  await writer.run('createKey', keyFields, { actor: 'test' })
})
afterEach(async () => {
  await writer.close()
  rmSync(folder, { recursive: true, force: true })
})

test('a full disk refuses new calls, settles the old ones, and admits calls when there is space', async () => {
  const ballast = join(folder, 'ballast')
  await until(() => existsSync(ballast), 'the ballast is there')
  const storedResponse = {
    accountId: 11,
    id: 'resp_1',
    keyId: 1_011,
    status: 'queued',
    model: 'p/m',
    channel: null,
  } as const
  const response = {
    ...storedResponse,
    upstreamId: null,
    previousId: null,
    createdMs: 1,
    expiresMs: 9e12,
    sealed: 'AAAA',
  }
  await writer.run('keepResponse', response)
  const task = { callId: 9_000, accountId: 11, id: 't', keyId: 1_011, provider: 'p', model: 'm', channel: 'c' }
  await writer.run('createTask', { ...task, admitted: '{}', createdMs: 1, dueMs: 1, expiresMs: 9e12 })
  // Large drafts, so that few are needed.
  const tags = 'x'.repeat(3_000)
  const draft = { ...holdOf(0, 11, '0').draft, tags }
  let callId = 10_000
  let refusal: unknown
  for (; refusal === undefined && callId < 12_000; callId++) {
    const idempotency = callId === 10_000 ? { idempotency: { name: 'x', fingerprint: 'ab'.repeat(32) } } : undefined
    const input = holdOf(callId, 11, '10', { draft, ...idempotency })
    await writer.run('hold', input).catch((fault: unknown) => (refusal = fault))
  }
  expect(refusal).toBeInstanceOf(Refusal)
  expect((refusal as Refusal).code).toBe('storage_full')
  expect(writer.isDiskFull).toBe(true)
  expect(existsSync(ballast)).toBe(false)
  const last = callId - 2 // the one before was refused
  const held = Array.from({ length: last - 9_999 }, (_, at) => 10_000 + at)
  // An answer that is stored for its idempotency key must not take the space of the following calls.
  const answer = Buffer.alloc(2 * MEGABYTE).toString('base64')
  const settled = await Promise.all(
    held.map((id, at) => {
      const idempotency = at === 0 ? { idempotency: { sealed: answer } } : undefined
      return writer.run('settle', { record: recordOf(id, 11, { tags }), cost: '7', ...idempotency })
    }),
  )
  expect(settled.every(({ done }) => done === 'settled')).toBe(true)
  const codeOf = (work: Promise<unknown>): Promise<unknown> => work.catch((fault: Refusal) => fault.code)
  expect(await codeOf(writer.run('hold', holdOf(20_000, 11, '1')))).toBe('storage_full')
  // Records of refusals could otherwise take the space of calls that must be settled.
  expect(await codeOf(writer.run('record', { record: recordOf(20_000, 11) }))).toBe('storage_full')
  expect(await codeOf(writer.run('keepResponse', response))).toBe('storage_full')
  const change = { accountId: 11, id: 'resp_1', status: 'failed' } as const
  expect(await codeOf(writer.run('changeResponse', { ...change, sealed: answer }))).toBe('storage_full')
  expect(await writer.run('changeResponse', { ...change, sealed: null })).toEqual({ done: 'changed' })
  const over = { callId: 9_000, status: 'failed', dueMs: null, updatedMs: 2, sealed: answer } as const
  expect(await writer.run('changeTask', over)).toEqual({ done: 'changed' })

  const db = openDatabase(join(folder, 'weir.db'), { safeIntegers: true })
  expect(bookFaults(db)).toEqual([])
  expect(db.query('SELECT count(*) AS n FROM record').get()).toEqual({ n: BigInt(held.length) })
  expect(db.query('SELECT done FROM idempotency').all()).toEqual([{ done: 1n }])
  expect(db.query('SELECT * FROM kept_answer').all()).toEqual([])
  db.run('DELETE FROM record') // an operator makes space
  db.close()
  let firstResult = ''
  const tryHold = (): void => {
    void writer.run('hold', holdOf(20_001, 11, '1')).then(
      ({ done }) => (firstResult ||= done),
      () => {},
    )
  }
  await until(() => {
    if (firstResult === '') tryHold()
    return firstResult === 'held'
  }, 'a call is taken again')
})

test('a start ends calls that a crash cut off, even if there is no more space', async () => {
  const tags = 'x'.repeat(3_000)
  const draft = { ...holdOf(0, 11, '0').draft, tags }
  let held = 0
  for (let full = false; !full && held < 2_000; ) {
    await writer.run('hold', holdOf(10_000 + held, 11, '10', { draft })).then(
      () => held++,
      () => (full = true),
    )
  }
  expect(writer.isDiskFull).toBe(true)
  await writer.close() // and no call was ever settled
  const [reopened, start] = await Writer.open(options(), detail => {
    throw new Error(detail)
  })
  writer = reopened
  expect(start.recovered).toBe(held)
  const db = openDatabase(join(folder, 'weir.db'), { safeIntegers: true })
  expect(bookFaults(db)).toEqual([])
  db.close()
})
