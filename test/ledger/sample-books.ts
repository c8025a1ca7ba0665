// A ledger with every kind of row, made by the store's own operations, for tests that then damage it.

import type { Database } from 'bun:sqlite'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrate, openWriter } from '../../src/store/engine/database.ts'
import type { OperationRunner } from '../../src/store/engine/operation-runner.ts'
import { buildOperations } from '../../src/store/engine/operation-runner.ts'
import type { OperationInput, OperationName } from '../../src/store/engine/operations.ts'
import { openBooks } from '../../src/store/ledger/books.ts'
import type { RecordRow } from '../../src/store/ledger/hold-types.ts'
import type { MoneyText } from '../../src/store/ledger/money-text.ts'

export const alice = 1_001
export const bob = 1_002
export const aliceKey = 2_001
export const bobKey = 2_002
/** Charged with a refund, charged with a shortfall, free, still held, and plainly charged. */
export const calls = { refunded: 5_001, short: 5_002, free: 5_003, open: 5_004, plain: 5_005 } as const
export const usedCode = 6_001
export const freshCode = 6_002

export interface SampleBooks {
  readonly folder: string
  readonly path: string
  readonly db: Database
  /** Runs as the writer does: in a transaction, with the operator's balances written at its end. */
  run<T>(work: (run: OperationRunner['run']) => T): T
}

const draft = { dialect: 'openai-chat', provider: 'p', model: 'm', streamed: false, priceVersion: null }
const usage = { inputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 2, reasoningTokens: 0 }

export function recordOf(callId: number, owner: { accountId: number; keyId: number }): RecordRow {
  return {
    ...draft,
    ...usage,
    ...owner,
    callId,
    endUser: null,
    tags: null,
    lines: null,
    channel: 'p#1',
    status: 200,
    error: null,
    outcome: 'completed',
    rule: 'completed',
    usageSource: 'reported',
    attempts: null,
    timings: null,
    firstContentMs: null,
    durationMs: 5,
  }
}

export function holdOf(callId: number, owner: { accountId: number; keyId: number }, amount: MoneyText) {
  const words = { ...draft, endUser: null, tags: null }
  return { callId, kind: 'call', ...owner, amount, wants: '0', draft: words } as const
}

const digestOf = (id: number): string => id.toString(16).padStart(64, '0')

export function openSampleBooks(nowMs: () => number = Date.now): SampleBooks {
  const folder = mkdtempSync(join(tmpdir(), 'weir-books-'))
  const path = join(folder, 'weir.db')
  const db = openWriter(path)
  migrate(db)
  const operating = buildOperations(openBooks(db, nowMs))
  const books: SampleBooks = {
    folder,
    path,
    db,
    run: work =>
      db
        .transaction(() => {
          const result = work(operating.run)
          operating.writeOperatorBalances()
          return result
        })
        .immediate(),
  }
  books.run(run => {
    for (const { name, input } of sampleOperations()) (run[name] as (input: unknown) => unknown)(input)
  })
  return books
}

type SampleOperation = {
  readonly [Name in OperationName]: { readonly name: Name; readonly input: OperationInput<Name> }
}[OperationName]

/** All operations that make the sample, in their order. */
export function sampleOperations(): readonly SampleOperation[] {
  const aliceIds = { accountId: alice, keyId: aliceKey }
  const bobIds = { accountId: bob, keyId: bobKey }
  const keys = [aliceIds, bobIds].map(({ accountId, keyId }): SampleOperation => {
    const words = { suffix: 'abcd', name: 'x', tier: 'pro', qpm: null, existing: false, creditRef: keyId + 500 }
    const key = { id: keyId, accountId, digest: digestOf(keyId), pepper: 'aabbccdd', credit: '1000', ...words } as const
    return { name: 'createKey', input: key }
  })
  const posted = { reference: 'invoice 1', author: 'cli', accountId: alice, ref: 3_001 }
  const codes = [usedCode, freshCode].map(id => ({ id, digest: digestOf(id) }))
  const codeFacts = { pepper: 'aabbccdd', batch: 'b', amount: '70', author: 'cli', expiresMs: null } as const
  const held = [calls.refunded, calls.free, calls.open, calls.plain]
  const gift = { ref: 3_003, accountId: bob, amount: '600', reference: null, author: 'cli' } as const
  const refund = { ref: calls.refunded, accountId: alice, amount: '100', reference: null, author: 'cli' } as const
  return [
    ...keys,
    { name: 'post', input: { kind: 'top_up', amount: '5000', ...posted } },
    { name: 'post', input: { kind: 'adjustment', amount: '-300', ...posted, ref: 3_002 } },
    { name: 'setBudget', input: { scopeId: aliceKey, span: 'total', cap: '9000' } },
    { name: 'setBudget', input: { scopeId: bob, span: 'month', cap: '9000' } },
    { name: 'createCodes', input: { codes, ...codeFacts } },
    { name: 'redeemCode', input: { digests: [digestOf(usedCode)], accountId: bob } },
    ...held.map((callId): SampleOperation => ({ name: 'hold', input: holdOf(callId, aliceIds, '400') })),
    { name: 'hold', input: holdOf(calls.short, bobIds, '1000') },
    { name: 'settle', input: { record: recordOf(calls.refunded, aliceIds), cost: '150' } },
    { name: 'settle', input: { record: recordOf(calls.free, aliceIds), cost: '0' } },
    { name: 'settle', input: { record: recordOf(calls.plain, aliceIds), cost: '120' } },
    { name: 'settle', input: { record: recordOf(calls.short, bobIds), cost: '1500' } },
    { name: 'post', input: { kind: 'gift', ...gift } },
    { name: 'post', input: { kind: 'refund', ...refund } },
  ]
}

/** Makes a change that the triggers and the checks forbid, and restores the triggers and checks. */
export function spoil(db: Database, sql: string): void {
  const triggers = db.query("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").all()
  db.run('PRAGMA foreign_keys = OFF')
  db.run('PRAGMA ignore_check_constraints = ON')
  // In one transaction: an audit that runs meanwhile must not see a database without its triggers.
  db.transaction(() => {
    for (const { name } of triggers as { name: string }[]) db.run('DROP TRIGGER '.concat(name))
    db.run(sql)
    for (const { sql: made } of triggers as { sql: string }[]) db.run(made)
  }).immediate()
  db.run('PRAGMA ignore_check_constraints = OFF')
  db.run('PRAGMA foreign_keys = ON')
}
