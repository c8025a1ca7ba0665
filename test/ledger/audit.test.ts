// The auditor on a ledger that was damaged by hand: each kind of damage is found, named and attributed to the right
// account, by a full audit and by an incremental one that had read everything before the damage.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { Writer } from '../../src/store/engine/writer.ts'
import type { MoneyText } from '../../src/store/ledger/money-text.ts'
import { LedgerAudit } from '../../src/store/ledger-audit/audit.ts'
import { AuditWorker, auditDatabase } from '../../src/store/ledger-audit/audit-worker.ts'
import type { AuditReport } from '../../src/store/ledger-audit/findings.ts'
import { damages, damagesOfOldRows, REVENUE } from './damages.ts'
import type { SampleBooks } from './sample-books.ts'
import { alice, aliceKey, bob, bobKey, calls, holdOf, openSampleBooks, recordOf, spoil } from './sample-books.ts'

let books: SampleBooks

beforeEach(() => {
  books = openSampleBooks()
})
afterEach(() => {
  books.db.close()
  rmSync(books.folder, { recursive: true, force: true })
})

const failedChecks = ({ findings }: AuditReport): readonly string[] =>
  findings.map(({ check, accountId }) => `${check} ${accountId ?? '-'}`).sort()

const options = { lagMs: 0, rests: false, deep: false }

test('an undamaged ledger is consistent', async () => {
  const { findings, ...seen } = await auditDatabase(books.path, { deep: true })
  expect(findings).toEqual([])
  expect(seen).toMatchObject({ transfers: 11, records: 4, accounts: 6, holds: 1 })
})

describe('a full audit finds that', () => {
  test.each([...damages, ...damagesOfOldRows])('%s', async (_, sql, found) => {
    spoil(books.db, sql)
    expect(failedChecks(await auditDatabase(books.path))).toEqual([...found].sort())
  })

  const schema = [
    ['a trigger is missing', 'DROP TRIGGER transfer_is_kept', 'trigger transfer_is_kept is missing'],
    ['an index is missing', 'DROP INDEX transfer_once', 'index transfer_once is missing'],
    [
      'a trigger has been added',
      'CREATE TRIGGER more AFTER INSERT ON transfer BEGIN SELECT 1; END',
      'trigger more was not created by Weir',
    ],
  ] as const
  test.each(schema)('%s', async (_, sql, text) => {
    books.db.run(sql)
    const { findings } = await auditDatabase(books.path)
    expect(findings.map(finding => finding.text)).toEqual([text])
  })
})

describe('an incremental audit', () => {
  let audit: LedgerAudit
  beforeEach(async () => {
    audit = new LedgerAudit({ ...options, path: books.path })
    expect((await audit.pass()).findings).toEqual([])
  })
  afterEach(() => audit.close())

  /** Old records and charges were read once; only new ones are read again. */
  const everyTime = damages.filter(([, , found]) => !found.some(line => line.startsWith('call ')))
  test.each(everyTime)('finds at its next pass that %s', async (what, sql, found) => {
    spoil(books.db, sql)
    // Only an audit that has read a hold can miss its record.
    const expected = [...found, ...(what === 'a hold is lost' ? [`call ${alice}`] : [])].sort()
    for (let pass = 0; pass < 2; pass++) expect(failedChecks(await audit.pass())).toEqual(expected)
  })

  test('reads what is new, and nothing twice', async () => {
    const owner = { accountId: alice, keyId: aliceKey }
    books.run(run => {
      run.hold(holdOf(7_001, owner, '90'))
      run.settle({ record: recordOf(7_001, owner), cost: '80' })
    })
    const report = await audit.pass()
    expect(report).toMatchObject({ findings: [], transfers: 12, records: 5 })
    expect(await audit.pass()).toMatchObject({ findings: [], transfers: 12, records: 5 })
  })

  const fresh = [
    ['a charge without a record', 'DELETE FROM record WHERE call_id = 7001'],
    ['a record without its charge', 'UPDATE record SET cost = 0 WHERE call_id = 7001'],
    ['another cost', 'UPDATE record SET cost = cost - 1 WHERE call_id = 7001'],
  ] as const
  test.each(fresh)('finds %s among the new rows, and reports it until it is repaired', async (_, sql) => {
    const owner = { accountId: bob, keyId: bobKey }
    books.run(run => {
      run.post({ kind: 'top_up', ref: 3_009, accountId: bob, amount: '500', reference: null, author: 'cli' })
      run.hold(holdOf(7_001, owner, '90'))
      run.settle({ record: recordOf(7_001, owner), cost: '80' })
    })
    const row = books.db.query('SELECT * FROM record WHERE call_id = 7001').values()[0] as (string | bigint | null)[]
    spoil(books.db, sql)
    for (let pass = 0; pass < 2; pass++) expect(failedChecks(await audit.pass())).toEqual([`call ${bob}`])
    books.db.run('DELETE FROM record WHERE call_id = 7001')
    const marks = row.map((_, index) => `?${index + 1}`).join()
    books.db.run('INSERT INTO record VALUES ('.concat(marks, ')'), row)
    expect(failedChecks(await audit.pass())).toEqual([])
  })

  test('starts again when the newest transfers are gone', async () => {
    spoil(books.db, 'DELETE FROM transfer WHERE seq = (SELECT max(seq) FROM transfer)')
    expect(failedChecks(await audit.pass())).toEqual([`balance ${REVENUE}`, `balance ${alice}`])
  })
})

test('a late record, of a call with a long hold, is audited when it arrives', async () => {
  // A lag of 1 ms: every id of the sample is older than the horizon.
  const audit = new LedgerAudit({ ...options, lagMs: 1, path: books.path })
  expect((await audit.pass()).findings).toEqual([])
  books.run(run => run.settle({ record: recordOf(calls.open, { accountId: alice, keyId: aliceKey }), cost: '11' }))
  spoil(books.db, `UPDATE record SET cost = 0 WHERE call_id = ${calls.open}`)
  expect(failedChecks(await audit.pass())).toEqual([`call ${alice}`])
  audit.close()

  const secondAudit = new LedgerAudit({ ...options, lagMs: 1, path: books.path })
  await secondAudit.pass()
  spoil(books.db, `DELETE FROM record WHERE call_id = ${calls.open}`)
  expect(failedChecks(await secondAudit.pass())).toEqual([`call ${alice}`])
  secondAudit.close()
})

test('a ledger that is being written to is consistent at every pass', async () => {
  const onFault = (fault: string): void => expect(fault).toBe('')
  // On a slow machine no hold is refused because the queue is too old.
  const [writer] = await Writer.open({ path: books.path, ballastBytes: 0 }, onFault, () => 0)
  const audits = [0, 1].map(lagMs => new AuditWorker({ ...options, lagMs, path: books.path }))
  let [next, working] = [20_000_000, true]
  const caller = async (owner: { accountId: number; keyId: number }): Promise<void> => {
    while (working) {
      const callId = next++
      const ref = next++
      await writer.run('hold', holdOf(callId, owner, '900'))
      const posted = { kind: 'top_up', ref, accountId: owner.accountId, amount: '600', reference: null } as const
      const cost = `${BigInt(callId % 1_000)}` as const
      const settled = writer.run('settle', { record: recordOf(callId, owner), cost })
      await Promise.all([settled, writer.run('post', { ...posted, author: 'cli' }, { actor: 'test' })])
      if (callId % 7 === 0) {
        const part = { kind: 'refund', ref: callId, amount: 'all', reference: null, author: 'cli' } as const
        await writer.run('post', { ...part, accountId: owner.accountId }, { actor: 'test' })
      }
    }
  }
  const owners = [
    { accountId: alice, keyId: aliceKey },
    { accountId: bob, keyId: bobKey },
  ]
  const callers = Array.from({ length: 8 }, (_, at) => caller(owners[at % 2]!))
  let last: AuditReport | undefined
  for (let round = 0; round < 60 || last!.transfers < 2_000; round++) {
    for (const audit of audits) {
      last = await audit.pass()
      expect(last.findings).toEqual([])
    }
  }
  working = false
  await Promise.all(callers)
  for (const audit of audits) await audit.close()
  await writer.close()
  const { findings, transfers } = await auditDatabase(books.path, { deep: true })
  expect(findings).toEqual([])
  expect(transfers).toBeGreaterThanOrEqual(last!.transfers)
})

test('sums of more than 64 bits are added up exactly', async () => {
  const post = (ref: number, amount: MoneyText): void => {
    const posting = { kind: 'adjustment', ref, accountId: bob, amount, reference: null, author: 'cli' } as const
    expect(books.run(run => run.post(posting)).done).toBe('posted')
  }
  const much = 2n ** 60n
  // Back and forth: each balance stays in its bounds, and the sum of the transfers does not.
  for (let ref = 8_000; ref < 8_020; ref++) {
    post(ref, `${much}`)
    post(ref + 100, `${-much}`)
  }
  post(8_200, `${much + 1n}`)
  expect((await auditDatabase(books.path)).findings).toEqual([])
})
