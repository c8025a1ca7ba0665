// Deletion of records, step by step: no record is deleted before it is in the statistics, deletion orders wait for
// running calls, and the auditor knows what was deleted and still finds what was lost.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import type { OperationResult } from '../../src/store/engine/operations.ts'
import { sqliteSteps } from '../../src/store/engine/sqlite-steps.ts'
import { LedgerAudit } from '../../src/store/ledger-audit/audit.ts'
import { auditDatabase } from '../../src/store/ledger-audit/audit-worker.ts'
import { ledgerQueries } from '../../src/store/queries/ledger.ts'
import type { SampleBooks } from '../ledger/sample-books.ts'
import { alice, aliceKey, calls, openSampleBooks, recordOf, spoil } from '../ledger/sample-books.ts'

let books: SampleBooks
beforeEach(() => {
  books = openSampleBooks()
})
afterEach(() => {
  books.db.close()
  rmSync(books.folder, { recursive: true, force: true })
})

const ALL = Number.MAX_SAFE_INTEGER
const aliceIds = { accountId: alice, keyId: aliceKey }
const rule = { accountId: alice, keyId: null, endUser: null, from: 0, before: 1_000_000, scope: null, author: 'x' }
const valueOf = (sql: string): unknown => books.db.query(sql).values()[0]?.[0]
const findings = async (): Promise<readonly string[]> =>
  (await auditDatabase(books.path)).findings.map(({ text }) => text)

interface More {
  readonly rolledSeq?: number
  readonly order?: { readonly id: number; readonly next: number | null }
}

function remove(ids: readonly number[], more: More = {}) {
  return books.run(run => run.deleteRecords({ ids, rolledSeq: ALL, ...more }))
}

const order = (): number =>
  (books.run(run => run.orderDeletion(rule)) as OperationResult<'orderDeletion'> & { id: number }).id

describe('a deleted record', () => {
  test('is not missed by the auditor, and its money is still in the ledger', async () => {
    const audit = new LedgerAudit({ path: books.path, lagMs: 0, rests: false, deep: false })
    await audit.pass()
    expect(remove([calls.refunded, calls.plain, calls.short, calls.free])).toEqual({ done: 'deleted', count: 4 })
    expect((await audit.pass()).findings).toEqual([])
    expect(await findings()).toEqual([])
    audit.close()
    expect(valueOf(`SELECT sum(cost) FROM deleted_sum WHERE account_id = ${alice}`)).toBe(270n)
    const shortfall = valueOf("SELECT sum(amount) FROM transfer WHERE kind = 'shortfall'")
    expect(valueOf('SELECT sum(shortfall) FROM deleted_sum')).toBe(shortfall)
    expect(valueOf("SELECT count(*) FROM transfer WHERE kind = 'charge'")).toBe(3n)
  })

  test('that was deleted by age leaves no row of its own', async () => {
    remove([calls.plain])
    books.run(run => run.keepRecordsFrom({ id: calls.plain + 1 }))
    expect(remove([calls.refunded, calls.short])).toEqual({ done: 'deleted', count: 2 })
    expect(await findings()).toEqual([])
    expect(valueOf('SELECT count(*) FROM deleted_record')).toBe(0n)
    books.run(run => run.keepRecordsFrom({ id: 5 }))
    expect(valueOf("SELECT value FROM setting WHERE name = 'records_from'")).toBe(String(calls.plain + 1))
  })

  test('that is too old leaves its row for a while where there are many of them', async () => {
    const first = 500_000
    books.db.run(`INSERT INTO deleted_record WITH RECURSIVE n (n) AS (VALUES (0) UNION ALL SELECT n + 1 FROM n WHERE n < 2499)
      SELECT ${first} + n, ${alice}, 0, 0 FROM n`)
    const count = (): unknown => valueOf('SELECT count(*) FROM deleted_record')
    books.run(run => run.keepRecordsFrom({ id: first + 2_400 }))
    expect(count()).toBe(1_500n)
    // The next sweep continues, and so does each step of it.
    books.run(run => run.keepRecordsFrom({ id: first + 2_400 }))
    expect(count()).toBe(500n)
    remove([])
    expect(count()).toBe(100n)
    remove([])
    expect(count()).toBe(100n)
    expect(valueOf('SELECT min(call_id) FROM deleted_record')).toBe(BigInt(first + 2_400))
  })

  test('keeps its line in the statement', () => {
    const read = () =>
      sqliteSteps(books.db)(ledgerQueries.statement({ accountId: alice, scope: null, limit: 50 }))!.lines
    const before = read()
    remove([calls.plain])
    expect(read()).toEqual(before)
    const sum = before.reduce((all, { amount }) => all + BigInt(amount), 0n)
    expect(sum).toBe(valueOf(`SELECT balance FROM account WHERE id = ${alice}`) as bigint)
  })

  test('leaves no stored answer behind', () => {
    books.db.run(`INSERT INTO kept_answer VALUES (${calls.plain}, zeroblob(40)), (${calls.open}, zeroblob(40))`)
    remove([calls.plain])
    expect(books.db.query('SELECT call_id FROM kept_answer').values()).toEqual([[BigInt(calls.open)]])
  })

  test('that was not deleted by the gateway is still found by the auditor', async () => {
    remove([calls.plain])
    spoil(books.db, `DELETE FROM record WHERE call_id = ${calls.refunded}`)
    expect(await findings()).toEqual([expect.stringContaining('without a record')])
    spoil(books.db, `UPDATE deleted_record SET cost = cost + 1 WHERE call_id = ${calls.plain}`)
    expect((await findings()).length).toBe(2)
  })

  test('can still be refunded', async () => {
    remove([calls.plain])
    const refund = { kind: 'refund', ref: calls.plain, accountId: alice, amount: 'all' } as const
    const posted = books.run(run => run.post({ ...refund, reference: null, author: 'x' }))
    expect(posted.done).toBe('posted')
    expect(await findings()).toEqual([])
  })
})

describe('a record that is not in the statistics', () => {
  test('is kept until the statistics have it', () => {
    const rolledSeq = Number(valueOf('SELECT max(seq) FROM record_log'))
    books.run(run => run.record({ record: recordOf(7_000, aliceIds) }))
    const id = order()
    const ids = [calls.plain, 7_000]
    expect(remove(ids, { rolledSeq, order: { id, next: null } })).toEqual({ done: 'behind', count: 1 })
    expect(valueOf('SELECT count(*) FROM record WHERE call_id = 7000')).toBe(1n)
    expect(valueOf('SELECT next_id FROM record_deletion')).toBe(7_000n)
    expect(remove(ids, { order: { id, next: null } })).toEqual({ done: 'deleted', count: 1 })
    expect(valueOf('SELECT deleted FROM record_deletion')).toBe(2n)
  })

  test('is kept, too, while its refund is not in the statistics', () => {
    const rolledSeq = Number(valueOf('SELECT max(seq) FROM record_log'))
    const refund = { kind: 'refund', ref: calls.plain, accountId: alice, amount: 'all' } as const
    books.run(run => run.post({ ...refund, reference: null, author: 'x' }))
    expect(remove([calls.plain], { rolledSeq })).toEqual({ done: 'behind', count: 0 })
  })
})

describe('a deletion order', () => {
  test('is not done while a call that it covers is running', () => {
    const id = order()
    remove([], { order: { id, next: null } })
    expect([valueOf('SELECT next_id FROM record_deletion'), valueOf('SELECT done_ms FROM record_deletion')]).toEqual([
      ...[BigInt(calls.open), null],
    ])
    books.run(run => run.settle({ record: recordOf(calls.open, aliceIds), cost: '0' }))
    remove([calls.open], { order: { id, next: null } })
    expect(valueOf('SELECT done_ms FROM record_deletion')).not.toBeNull()
  })

  test('for an unknown account or key, or one of others, is refused', () => {
    const orderWith = (more: object) => books.run(run => run.orderDeletion({ ...rule, ...more })).done
    expect(orderWith({})).toBe('ordered')
    expect(orderWith({ accountId: 77 })).toBe('unknown')
    expect(orderWith({ keyId: 77 })).toBe('unknown')
    expect(orderWith({ keyId: aliceKey })).toBe('ordered')
    expect(orderWith({ scope: { actorId: 9, rank: 1 } })).toBe('unknown')
    expect(orderWith({ accountId: null, scope: { actorId: 9, rank: 1 } })).toBe('unknown')
  })

  test('forgets whose records it was for', () => {
    const { id } = books.run(run => run.orderDeletion({ ...rule, endUser: 'ann', before: 10 })) as { id: number }
    expect(valueOf('SELECT end_user FROM record_deletion')).toBe('ann')
    remove([], { order: { id, next: null } })
    expect(valueOf('SELECT end_user FROM record_deletion')).toBe('')
  })
})
