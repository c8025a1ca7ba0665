// Tests the vault on a real file: rows belong to an account, replace older ones, are limited per account, and expire.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type { TestBooks } from '../../../test/support/books.ts'
import { bookFaults, holdOf, openTestBooks, recordOf } from '../../../test/support/books.ts'
import { bounds } from '../../base/bounds.ts'
import type { OperationInput } from '../engine/operations.ts'
import type { BoundReads } from '../engine/reads.ts'
import { bindReads } from '../engine/reads.ts'
import type { RunSteps } from '../engine/sqlite-steps.ts'
import { sqliteSteps } from '../engine/sqlite-steps.ts'
import { vaultReads } from './vault-reader.ts'
import { VaultTable } from './vault-table.ts'

const [alice, bob] = [11, 12]

let books: TestBooks
let runSteps: RunSteps
let reader: BoundReads<typeof vaultReads>
let nowMs: number

beforeEach(() => {
  books = openTestBooks()
  reader = bindReads(vaultReads, sqliteSteps(books.db))
  runSteps = sqliteSteps(books.db)
  nowMs = books.nowMs
})
afterEach(() => {
  expect(bookFaults(books.db)).toEqual([])
  books.close()
})

const count = (table: string): number =>
  Number((books.db.query('SELECT count(*) AS n FROM '.concat(table)).get() as { n: bigint }).n)
const base64Of = (text: string): string => Buffer.from(text).toString('base64')
const textOf = (bytes: Uint8Array | null | undefined): string => Buffer.from(bytes ?? []).toString()

function response(id: string, more: Partial<OperationInput<'keepResponse'>> = {}): OperationInput<'keepResponse'> {
  return {
    accountId: alice,
    id,
    keyId: 1,
    status: 'completed',
    model: 'p/m',
    channel: null,
    upstreamId: null,
    previousId: null,
    createdMs: nowMs,
    expiresMs: nowMs + 1_000,
    sealed: base64Of('words'),
    ...more,
  }
}

const findResponse = (id: string, accountId = alice) => reader.response({ accountId, id }, nowMs)

describe('a response', () => {
  test('is found by its own account only, also when another account has the same id', () => {
    books.run.keepResponse(response('resp_1', { previousId: 'resp_0' }))
    expect(findResponse('resp_1')).toMatchObject({ status: 'completed', model: 'p/m', previousId: 'resp_0', bytes: 5 })
    expect(findResponse('resp_1', bob)).toBeUndefined()
    expect(books.run.dropResponse({ accountId: bob, id: 'resp_1' })).toEqual({ done: 'unknown' })
    books.run.keepResponse(response('resp_1', { accountId: bob, sealed: base64Of('of bob') }))
    expect([textOf(findResponse('resp_1')?.sealed), textOf(findResponse('resp_1', bob)?.sealed)]).toEqual([
      'words',
      'of bob',
    ])
    expect(books.run.dropResponse({ accountId: alice, id: 'resp_1' })).toEqual({ done: 'dropped' })
    expect([findResponse('resp_1'), count('kept_response')]).toEqual([undefined, 1])
  })

  test('that is stored again replaces the one before', () => {
    books.run.keepResponse(response('resp_1', { status: 'queued' }))
    books.run.keepResponse(response('resp_1', { channel: 'p#1', upstreamId: 'resp_up', sealed: null }))
    expect(findResponse('resp_1')).toMatchObject({
      status: 'completed',
      channel: 'p#1',
      upstreamId: 'resp_up',
      sealed: null,
    })
    expect(count('kept_response')).toBe(1)
  })

  test('can be changed until it has ended', () => {
    books.run.keepResponse(response('resp_1', { status: 'queued' }))
    const change = (status: 'in_progress' | 'completed' | 'cancelled', sealed: string | null = null) =>
      books.run.changeResponse({ accountId: alice, id: 'resp_1', status, sealed }).done
    const done = [change('in_progress'), change('completed', base64Of('whole')), change('cancelled')]
    expect(done).toEqual(['changed', 'changed', 'over'])
    expect([findResponse('resp_1')?.status, textOf(findResponse('resp_1')?.sealed)]).toEqual(['completed', 'whole'])
    const other = { accountId: bob, id: 'resp_1', status: 'failed' as const, sealed: null }
    expect(books.run.changeResponse(other)).toEqual({ done: 'unknown' })
  })

  test('without content and without an upstream id is not stored', () => {
    expect(() => books.run.keepResponse(response('resp_1', { sealed: null }))).toThrow('CHECK')
    expect(() => books.run.keepResponse(response('resp_1', { upstreamId: 'resp_up' }))).toThrow('CHECK')
    expect(findResponse('resp_1')).toBeUndefined()
  })

  test('that was in progress at a crash has failed, unless its upstream continues', () => {
    books.run.keepResponse(response('ours', { status: 'in_progress' }))
    books.run.keepResponse(response('theirs', { status: 'in_progress', channel: 'p#1', upstreamId: 'x' }))
    books.run.keepResponse(response('over'))
    books.recover()
    expect(['ours', 'theirs', 'over'].map(id => findResponse(id)?.status)).toEqual([
      'failed',
      'in_progress',
      'completed',
    ])
  })

  test('is not found after it has expired, and expired rows are deleted some at a time', () => {
    for (let index = 0; index < 70; index++) books.run.keepResponse(response(`resp_${index}`))
    books.run.keepResponse(response('young', { expiresMs: nowMs + 1_001 }))
    const sweep = (): number => books.run.forgetKept({ nowMs }).count
    expect(sweep()).toBe(0)
    nowMs += 1_000
    expect([findResponse('resp_1'), findResponse('young')?.id]).toEqual([undefined, 'young'])
    expect([sweep(), sweep(), sweep(), sweep()]).toEqual([32, 32, 6, 0])
    expect(count('kept_response')).toBe(1)
  })
})

describe('the quota of an account', () => {
  test('limits its bytes: its oldest rows are deleted, and never those of another account', () => {
    const sealed = Buffer.alloc(bounds.storedResponseBytesMax).toString('base64')
    const fitCount = bounds.storedResponsesBytesMax / bounds.storedResponseBytesMax
    books.db.run('PRAGMA synchronous = OFF')
    books.run.keepResponse(response('of bob', { accountId: bob }))
    for (let index = 0; index < fitCount + 2; index++) books.run.keepResponse(response(`resp_${index}`, { sealed }))
    expect([findResponse('resp_0'), findResponse('resp_1')]).toEqual([undefined, undefined])
    expect([
      findResponse('resp_2')?.id,
      findResponse(`resp_${fitCount + 1}`)?.id,
      findResponse('of bob', bob)?.id,
    ]).toEqual([...['resp_2', `resp_${fitCount + 1}`, 'of bob']])
    expect(count('kept_response')).toBe(fitCount + 1)
  })

  test('is counted correctly after replacing, deleting, expiry, a rollback and a restart', () => {
    const insert = books.db.query(
      "INSERT INTO kept_reasoning (account_id, id, expires_ms, bytes, sealed) VALUES (?1, ?2, ?3, ?4, x'00')",
    )
    let rows = new VaultTable('kept_reasoning', { rowsMax: 4, bytesMax: 100 })
    const storeRow = (id: string, bytes: number, expiresMs = nowMs + 10): void => {
      runSteps(rows.drop({ accountId: alice, id }))
      insert.run(alice, id, expiresMs, bytes)
      runSteps(rows.addRow(alice, bytes))
    }
    const storedIds = (): unknown[] => books.db.query('SELECT id FROM kept_reasoning ORDER BY seq').values().flat()
    for (const id of ['a', 'b', 'c', 'd', 'e']) storeRow(id, 10)
    expect(storedIds()).toEqual(['b', 'c', 'd', 'e'])
    storeRow('b', 60) // b is the newest now
    storeRow('f', 10)
    expect(storedIds()).toEqual(['d', 'e', 'b', 'f'])
    storeRow('g', 40)
    expect(storedIds()).toEqual(['f', 'g']) // all five would have 130 bytes, and without d and e still 110
    runSteps(rows.drop({ accountId: alice, id: 'f' }))
    runSteps(rows.drop({ accountId: alice, id: 'g' }))
    storeRow('h', 100, nowMs)
    expect(runSteps(rows.deleteExpired(nowMs))).toBe(1)
    for (const id of ['i', 'j', 'k']) storeRow(id, 30)
    const rolledBack = books.db.transaction(() => {
      storeRow('never', 10)
      throw new Error('rolled back')
    })
    expect(rolledBack).toThrow('rolled back')
    rows.reset()
    storeRow('l', 10)
    expect(storedIds()).toEqual(['i', 'j', 'k', 'l'])
    rows = new VaultTable('kept_reasoning', { rowsMax: 4, bytesMax: 100 })
    storeRow('m', 10)
    expect(storedIds()).toEqual(['j', 'k', 'l', 'm'])
  })
})

describe('the total of all accounts', () => {
  const insert = () =>
    books.db.query(
      "INSERT INTO kept_reasoning (account_id, id, expires_ms, bytes, sealed) VALUES (?1, ?2, ?3, ?4, x'00')",
    )
  const storedIds = (): unknown[] => books.db.query('SELECT id FROM kept_reasoning ORDER BY seq').values().flat()
  const open = (allBytesMax: number): VaultTable =>
    new VaultTable('kept_reasoning', { rowsMax: 100, bytesMax: 1_000, allBytesMax })
  const storeRow = (rows: VaultTable, accountId: number, id: string, bytes = 10): void => {
    insert().run(accountId, id, nowMs + 10, bytes)
    runSteps(rows.addRow(accountId, bytes))
  }

  test('is limited: the oldest rows of the largest account are deleted', () => {
    let rows = open(50)
    for (const id of ['a1', 'a2', 'a3']) storeRow(rows, alice, id)
    for (const id of ['b1', 'b2']) storeRow(rows, bob, id)
    storeRow(rows, 13, 'c1')
    expect(storedIds()).toEqual(['a2', 'a3', 'b1', 'b2', 'c1'])
    storeRow(rows, bob, 'b3')
    expect(storedIds()).toEqual(['a2', 'a3', 'b2', 'c1', 'b3'])
    // Rows of another process are counted too, and rolled-back rows are not.
    rows = open(50)
    const rolledBack = books.db.transaction(() => {
      storeRow(rows, 13, 'never', 40)
      throw new Error('rolled back')
    })
    expect(rolledBack).toThrow('rolled back')
    rows.reset()
    runSteps(rows.drop({ accountId: 13, id: 'c1' }))
    storeRow(rows, alice, 'a4')
    expect(storedIds().length).toBe(5)
    storeRow(rows, alice, 'a5')
    expect(storedIds()).not.toContain('a2')
    expect(storedIds()).toContain('b2')
  })

  test('shrinks some rows at a time after the limit was lowered, also without writes', () => {
    for (let index = 0; index < 90; index++) storeRow(open(1_000), index % 2 === 0 ? alice : bob, `r${index}`)
    const rows = open(100)
    expect([
      runSteps(rows.deleteExpired(nowMs)),
      runSteps(rows.deleteExpired(nowMs)),
      runSteps(rows.deleteExpired(nowMs)),
      runSteps(rows.deleteExpired(nowMs)),
    ]).toEqual([32, 32, 16, 0])
    expect(storedIds()).toEqual(Array.from({ length: 10 }, (_none, index) => `r${80 + index}`))
  })
})

test('reasoning state and files are replaced by newer ones, belong to an account, and expire', () => {
  const reasoning = (sealed: string, accountId = alice) =>
    books.run.keepReasoning({ accountId, id: 'call_1', expiresMs: nowMs + 10, sealed: base64Of(sealed) })
  reasoning('old')
  reasoning('new')
  reasoning('of bob', bob)
  expect(textOf(reader.reasoning({ accountId: alice, id: 'call_1' }, nowMs))).toBe('new')
  expect(textOf(reader.reasoning({ accountId: bob, id: 'call_1' }, nowMs))).toBe('of bob')
  const file = { accountId: alice, id: 'file-1', expiresMs: nowMs + 10, bytes: 7 }
  books.run.keepFile({ ...file, channel: 'p#1' })
  books.run.keepFile({ ...file, channel: 'p#2' })
  expect(reader.file(file, nowMs)).toBe('p#2')
  expect(reader.filesSum(alice, nowMs)).toEqual({ files: 1, bytes: 7 })
  expect(reader.filesSum(bob, nowMs)).toEqual({ files: 0, bytes: 0 })
  expect(reader.file({ ...file, accountId: bob }, nowMs)).toBeUndefined()
  nowMs += 10
  expect(reader.reasoning({ accountId: alice, id: 'call_1' }, nowMs)).toBeUndefined()
  expect(reader.file(file, nowMs)).toBeUndefined()
  expect(books.run.forgetKept({ nowMs })).toEqual({ done: 'forgotten', count: 3 })
  expect(books.run.dropFile(file)).toEqual({ done: 'unknown' })
})

describe('a task', () => {
  const task = (callId: number, more: Partial<OperationInput<'createTask'>> = {}): OperationInput<'createTask'> => ({
    callId,
    accountId: alice,
    id: `cgt-${callId}`,
    keyId: 1,
    provider: 'p',
    model: 'm',
    channel: 'p#1',
    admitted: '{}',
    createdMs: nowMs,
    dueMs: nowMs + 100,
    expiresMs: nowMs + 1_000,
    ...more,
  })
  const change = (callId: number, more: Partial<OperationInput<'changeTask'>>) =>
    books.run.changeTask({ callId, status: 'running', dueMs: nowMs + 5, updatedMs: nowMs, sealed: null, ...more }).done

  test('survives a crash with its hold, is due at its time, and ends once', () => {
    books.account(alice, '1000')
    expect(books.run.createTask(task(7)).done).toBe('created')
    books.run.hold(holdOf(7, alice, '400', { kind: 'task' }))
    expect(change(7, { upstreamId: 'up-7' })).toBe('changed')
    books.recover()
    expect([reader.dueTasks(nowMs + 4, 10).length, reader.dueTasks(nowMs + 5, 10)[0]?.upstreamId]).toEqual([0, 'up-7'])
    books.run.settle({ record: recordOf(7, alice), cost: '100' })
    expect(change(7, { status: 'succeeded', dueMs: null, sealed: base64Of('{}') })).toBe('changed')
    expect(change(7, { status: 'failed', dueMs: null })).toBe('over')
    expect(change(8, {})).toBe('unknown')
    expect(reader.task({ accountId: alice, id: 'cgt-7' })).toMatchObject({ status: 'succeeded', dueMs: null })
    expect(reader.dueTasks(nowMs + 10_000, 10)).toEqual([])
    expect(books.row(alice)).toEqual({ balance: 900n, held: 0n })
  })

  test('that is open can neither be deleted by its owner nor expire', () => {
    books.run.createTask(task(7))
    nowMs += 2_000
    expect(books.run.forgetKept({ nowMs }).count).toBe(0)
    expect(books.run.dropTask({ accountId: alice, id: 'cgt-7' }).done).toBe('under_way')
    expect(books.run.dropTask({ accountId: bob, id: 'cgt-7' }).done).toBe('unknown')
    expect(() => change(7, { dueMs: null })).toThrow('CHECK')
    change(7, { status: 'cancelled', dueMs: null })
    expect(books.run.dropTask({ accountId: alice, id: 'cgt-7' }).done).toBe('dropped')
    books.run.createTask(task(8, { expiresMs: nowMs }))
    change(8, { status: 'failed', dueMs: null })
    expect(books.run.forgetKept({ nowMs }).count).toBe(1)
  })

  test('is listed for its account, newest first, once its upstream has confirmed it', () => {
    for (const callId of [7, 8, 9]) books.run.createTask(task(callId, { model: callId === 9 ? 'n' : 'm' }))
    books.run.createTask(task(10, { accountId: bob }))
    const listed = (more: object) => {
      const [rows, total] = reader.tasks(alice, { limit: 10, offset: 0, ...more })
      return [rows.map(row => row.callId), total]
    }
    expect(listed({})).toEqual([[], 0])
    for (const callId of [7, 8, 9, 10]) change(callId, { upstreamId: `up-${callId}` })
    expect(listed({})).toEqual([[9, 8, 7], 3])
    expect(listed({ limit: 1, offset: 1 })).toEqual([[8], 3])
    expect(listed({ model: 'm' })).toEqual([[8, 7], 2])
    expect(listed({ status: 'succeeded' })).toEqual([[], 0])
    expect(listed({ ids: ['cgt-7', 'cgt-10'] })).toEqual([[7], 1])
  })

  test('gets new terms if its call is admitted again, unless it was started or has ended', () => {
    const admitted = (): unknown => books.db.query('SELECT admitted, channel, due_ms FROM task').values()
    const again = (words: string) =>
      books.run.createTask(task(7, { isAgain: true, admitted: words, channel: words, dueMs: nowMs + 9 })).done
    expect(again('none')).toBe('exists')
    books.run.createTask(task(7))
    expect(again('new')).toBe('created')
    expect(admitted()).toEqual([['new', 'new', BigInt(nowMs + 9)]])
    change(7, { upstreamId: 'up-7' })
    expect(again('newer')).toBe('exists')
    expect(admitted()).toEqual([['new', 'new', BigInt(nowMs + 5)]])
  })

  test('has a unique id, and the number of open tasks is limited', () => {
    books.db.run('PRAGMA synchronous = OFF')
    expect(books.run.createTask(task(7)).done).toBe('created')
    expect(books.run.createTask(task(8, { id: 'cgt-7' })).done).toBe('exists')
    for (let index = 1; index < bounds.tasksOpenMax; index++) books.run.createTask(task(100 + index))
    expect(books.run.createTask(task(9)).done).toBe('too_many')
    expect(books.run.createTask(task(10, { accountId: bob })).done).toBe('created')
    books.db.run("UPDATE task SET due_ms = NULL, status = 'failed'")
    const first = (): unknown => books.db.query('SELECT min(call_id) FROM task WHERE account_id = 11').values()[0]
    for (let index = 0; index < bounds.tasksOpenMax; index++) books.run.createTask(task(10_000 + index))
    expect([count('task'), first()]).toEqual([bounds.storedTasksMax + 1, [7n]])
    books.db.run("UPDATE task SET due_ms = NULL, status = 'failed' WHERE call_id = 10000")
    books.run.createTask(task(20_000))
    expect([count('task'), first()]).toEqual([bounds.storedTasksMax + 1, [101n]])
  })
})

test('a token factor is learned from batches, and new samples still count', () => {
  const learn = (n: number, mean: number) =>
    books.run.learnFactors({ factors: [{ model: 'p/m', n, mean, m2: n / 100 }] })
  learn(10, 1)
  learn(30, 2)
  const factor = reader.factors().get('p/m')!
  expect([factor.n, factor.mean, factor.m2]).toEqual([40, 1.75, expect.closeTo(0.4 + (10 * 30) / 40, 9)])
  learn(bounds.countSamplesMax, 2)
  expect(reader.factors().get('p/m')!.n).toBe(bounds.countSamplesMax / 2)
})

test('a record stores its losses and hashes, or null', () => {
  books.account(alice, '1000')
  const [requestHash, upstreamHash] = ['ab'.repeat(16), 'cd'.repeat(16)]
  books.run.record({ record: recordOf(7, alice, { loss: 'top_k,citations', requestHash, upstreamHash }) })
  books.run.record({ record: recordOf(8, alice) })
  const row = (id: number) => books.db.query('SELECT loss, came_hash, went_hash FROM record WHERE call_id = ?1').get(id)
  expect(row(7)).toEqual({ loss: 'top_k,citations', came_hash: requestHash, went_hash: upstreamHash })
  expect(row(8)).toEqual({ loss: null, came_hash: null, went_hash: null })
})

test('every lookup uses an index', () => {
  const plans = (
    [
      'SELECT * FROM kept_response WHERE account_id = 1 AND id = 2 AND expires_ms > 3',
      'SELECT seq FROM kept_response WHERE expires_ms <= 1 ORDER BY expires_ms, seq LIMIT 2',
      'SELECT count(*), sum(bytes) FROM kept_response WHERE account_id = 1',
      'SELECT seq FROM kept_reasoning WHERE account_id = 1 ORDER BY seq LIMIT 1',
      'SELECT * FROM task WHERE due_ms <= 1 ORDER BY due_ms, call_id LIMIT 2',
      'SELECT count(*) FROM task WHERE account_id = 1 AND due_ms IS NOT NULL',
      "UPDATE kept_response SET status = 'failed' WHERE status IN ('queued', 'in_progress') AND upstream_id IS NULL",
    ] as const
  ).map(sql => (books.db.query('EXPLAIN QUERY PLAN '.concat(sql)).all() as { detail: string }[]).map(row => row.detail))
  for (const plan of plans) {
    expect(plan.join()).toMatch(/SEARCH .* USING /)
    expect(plan.join()).not.toMatch(/SCAN|TEMP B-TREE/)
  }
})
