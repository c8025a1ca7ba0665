// The ledger's operations on a real SQLite file, without the writer thread, for tests that run many operations.

import type { Database } from 'bun:sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrate, openWriter } from '../../src/store/engine/database.ts'
import type { OperationRunner } from '../../src/store/engine/operation-runner.ts'
import { buildOperations } from '../../src/store/engine/operation-runner.ts'
import type { OperationHandlers } from '../../src/store/engine/operations.ts'
import type { Books } from '../../src/store/ledger/books.ts'
import { openBooks } from '../../src/store/ledger/books.ts'
import type { HoldInput, RecordRow } from '../../src/store/ledger/hold-types.ts'
import type { MoneyText } from '../../src/store/ledger/money-text.ts'
import { recoverHolds } from '../../src/store/ledger/recovery.ts'

export interface TestBooks {
  readonly db: Database
  readonly books: Books
  /** Runs each operation in a transaction of its own, as the writer thread does. */
  readonly run: OperationHandlers
  /** The clock of the ledger; a test may set it. */
  nowMs: number
  /** Creates an account with this id and one key, whose id is 1,000 more. */
  account(id: number, credit: MoneyText): void
  row(id: number): { balance: bigint; held: bigint }
  count(table: 'hold' | 'record' | 'transfer' | 'idempotency' | 'kept_answer' | 'code'): number
  /** Releases the holds that were left open, as a start of the gateway does. */
  recover(): number
  close(): void
}

export function openTestBooks(options: { readonly sync?: boolean } = {}): TestBooks {
  const folder = mkdtempSync(join(tmpdir(), 'weir-books-'))
  const db = openWriter(join(folder, 'weir.db'))
  if (options.sync === false) db.run('PRAGMA synchronous = OFF') // a hundred thousand commits, and no power loss
  migrate(db)
  const test: TestBooks = {
    db,
    nowMs: Date.UTC(2026, 10, 15, 12),
    books: openBooks(db, () => test.nowMs),
    get run() {
      return run
    },
    account(id, credit) {
      const key = { id: id + 1_000, accountId: id, existing: false, digest: id.toString(16).padStart(64, '0') }
      const about = { pepper: 'aabbccdd', suffix: 'abcd', name: 'x', tier: 'pro', qpm: null }
      const created = run.createKey({ ...key, ...about, credit, creditRef: id })
      if (created.done !== 'created') throw new Error(created.done)
    },
    row: id => db.query('SELECT balance, held FROM account WHERE id = ?1').get(id) as { balance: bigint; held: bigint },
    count: table => Number((db.query('SELECT count(*) AS n FROM '.concat(table)).get() as { n: bigint }).n),
    recover: () => recoverHolds(test.books),
    close() {
      db.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
  const run = committed(db, buildOperations(test.books))
  return test
}

function committed(db: Database, runner: OperationRunner): OperationHandlers {
  const names = Object.keys(runner.run) as (keyof OperationHandlers)[]
  const wrapped = names.map(name => {
    const operation = runner.run[name] as (input: unknown) => unknown
    const transaction = db.transaction((input: unknown) => {
      const result = operation(input)
      runner.writeOperatorBalances()
      return result
    })
    const runAndReset = (input: unknown): unknown => {
      try {
        return transaction.immediate(input)
      } catch (fault) {
        runner.reset()
        throw fault
      }
    }
    return [name, runAndReset]
  })
  return Object.fromEntries(wrapped) as OperationHandlers
}

export const draft = {
  dialect: 'openai-chat',
  provider: 'p',
  model: 'm',
  streamed: true,
  priceVersion: 1,
  endUser: null,
  tags: null,
} as const

export function holdOf(callId: number, accountId: number, amount: MoneyText, more: Partial<HoldInput> = {}): HoldInput {
  return { callId, kind: 'call', accountId, keyId: accountId + 1_000, amount, wants: '0', draft, ...more }
}

export function recordOf(callId: number, accountId: number, more: Partial<RecordRow> = {}): RecordRow {
  return {
    ...draft,
    callId,
    keyId: accountId + 1_000,
    accountId,
    channel: 'p#1',
    status: 200,
    error: null,
    outcome: 'completed',
    rule: 'completed',
    usageSource: 'reported',
    inputTokens: 3,
    cacheReadTokens: 2,
    cacheWriteTokens: 0,
    outputTokens: 3,
    reasoningTokens: 1,
    lines: null,
    attempts: null,
    timings: null,
    firstContentMs: 2,
    durationMs: 5,
    ...more,
  }
}

/** Violations of the invariants that hold in every committed state of the ledger. */
export function bookFaults(db: Database): string[] {
  const rows = (sql: string): unknown[] => db.query(sql).all()
  const faults = [
    ...rows('SELECT sum(balance) AS off FROM account HAVING sum(balance) <> 0'),
    ...rows(
      `SELECT a.id, a.balance, m.moved FROM account a JOIN (
         SELECT id, sum(amount) AS moved FROM (
           SELECT credit AS id, amount FROM transfer UNION ALL SELECT debit, -amount FROM transfer
           UNION ALL SELECT id, 0 FROM account) GROUP BY id) m ON m.id = a.id WHERE a.balance <> m.moved`,
    ),
    ...rows(
      `SELECT id, held FROM account
       WHERE held <> (SELECT coalesce(sum(amount), 0) FROM hold WHERE account_id = account.id)`,
    ),
    ...rows(
      `SELECT b.* FROM budget b WHERE b.held <>
         (SELECT coalesce(sum(amount), 0) FROM hold WHERE key_id = b.scope_id OR account_id = b.scope_id)`,
    ),
    ...rows(
      `SELECT call_id, cost FROM record r WHERE cost <>
         (SELECT coalesce(sum(amount), 0) FROM transfer WHERE ref = r.call_id AND kind = 'charge')`,
    ),
    ...rows(
      `SELECT ref, amount FROM transfer t WHERE kind = 'charge' AND amount IS NOT
         (SELECT cost FROM record WHERE call_id = t.ref)`,
    ),
    ...rows('SELECT h.call_id FROM hold h JOIN record r ON r.call_id = h.call_id'),
  ]
  return faults.map(fault => Bun.inspect(fault))
}
