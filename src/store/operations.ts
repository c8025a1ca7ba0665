// What the writer can do, one row each: data in, data out, inside the transaction that the writer has open.
//
// Inputs and results cross a thread as JSON text, which costs a third of what a structured clone does. So money is
// written as decimal digits there, and bytes as hex.
//
// A refusal (no funds, already settled) is a result. Only the unexpected is thrown, and then the whole batch
// is rolled back and its operations are run one by one.

import type { Database, Statement } from 'bun:sqlite'
import { assert } from '../base/assert.ts'
import type { Nanos } from '../base/money.ts'
import { nanos } from '../base/money.ts'

/** Nano-USD as decimal digits. */
export type MoneyText = `${bigint}`

export const moneyText = (amount: Nanos): MoneyText => `${amount}`
export const readMoney = (text: MoneyText): Nanos => nanos(BigInt(text))

export interface RecordRow {
  readonly callId: number
  readonly keyId: number
  readonly accountId: number
  readonly provider: string | null
  readonly model: string | null
  readonly channel: string | null
  readonly status: number
  readonly outcome: string
  readonly usageSource: string
  readonly inputTokens: number
  readonly cacheReadTokens: number
  readonly outputTokens: number
  readonly attempts: number
  readonly streamed: boolean
  readonly durationMs: number
}

export interface KeyInsert {
  readonly id: number
  readonly accountId: number
  /** Hex. */
  readonly digest: string
  readonly suffix: string
  readonly name: string
  readonly tier: string
  readonly qpm: number | null
  readonly credit: MoneyText
  readonly nowMs: number
}

export interface Operations {
  hold: {
    input: { callId: number; accountId: number; amount: MoneyText }
    result: { done: 'held' | 'account_unknown' } | { done: 'balance_too_low'; available: MoneyText }
  }
  /** Ends a call: its hold, if it has one, is posted at `cost` or less, and its record is written. */
  settle: {
    input: { record: RecordRow; cost: MoneyText }
    result: { done: 'settled'; charged: MoneyText } | { done: 'exists' }
  }
  /** Writes down a call that never held anything. */
  record: { input: { record: RecordRow }; result: { done: 'recorded' | 'exists' } }
  createKey: { input: KeyInsert; result: { done: 'created' | 'tier_unknown' } }
  revokeKey: { input: { id: number; nowMs: number }; result: { done: 'revoked' | 'unknown' } }
  setSetting: { input: { name: string; value: string }; result: { done: 'set' } }
}

export type OperationName = keyof Operations
export type Input<Name extends OperationName> = Operations[Name]['input']
export type Result<Name extends OperationName> = Operations[Name]['result']

type Run = { readonly [Name in OperationName]: (input: Input<Name>) => Result<Name> }

/** Releases the holds of calls that a crash cut off. Safe to run again, and to be killed while it runs. */
export function recoverHolds(db: Database): number {
  return db.transaction(() => {
    db.run(
      `UPDATE account SET held = held - (SELECT sum(amount) FROM hold WHERE account_id = account.id)
       WHERE id IN (SELECT account_id FROM hold)`,
    )
    return db.run('DELETE FROM hold').changes
  }).immediate()
}

export function buildOperations(db: Database): Run {
  return { ...ledgerOperations(db), ...keyOperations(db) }
}

function ledgerOperations(db: Database): Pick<Run, 'hold' | 'settle' | 'record'> {
  const insertHold = db.query('INSERT INTO hold VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING')
  const reserve = db.query('UPDATE account SET held = held + ?2 WHERE id = ?1 AND balance - held >= ?2')
  const readAccount = db.query('SELECT balance - held AS available FROM account WHERE id = ?1')
  const takeHold = db.query('DELETE FROM hold WHERE call_id = ?1 RETURNING amount, account_id')
  const post = db.query('UPDATE account SET held = held - ?2, balance = balance - ?3 WHERE id = ?1')
  const insertRecord = db.query(
    'INSERT INTO record VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16) ON CONFLICT DO NOTHING',
  )
  const availableOf = (accountId: number): bigint | undefined =>
    (readAccount.get(accountId) as { available: bigint } | null)?.available

  /** A cost beyond its hold takes what is there, and never more. */
  const mostOf = (held: bigint, accountId: number, cost: bigint): bigint => {
    const all = held + (availableOf(accountId) ?? 0n)
    return cost < all ? cost : all
  }

  return {
    hold({ callId, accountId, amount: text }) {
      const amount = amountOf(text)
      if (reserve.run(accountId, amount).changes === 0) {
        const available = availableOf(accountId)
        return available === undefined
          ? { done: 'account_unknown' }
          : { done: 'balance_too_low', available: `${available}` }
      }
      // From here on the hold must succeed.
      assert(insertHold.run(callId, accountId, amount).changes === 1, 'a call holds once')
      return { done: 'held' }
    },
    settle({ record, cost: text }) {
      const cost = amountOf(text)
      const hold = takeHold.get(record.callId) as { amount: bigint; account_id: bigint } | null
      const charged = hold === null ? 0n : cost <= hold.amount ? cost : mostOf(hold.amount, record.accountId, cost)
      const row = insertRecord.run(...recordValues(record, charged))
      if (row.changes === 0) {
        assert(hold === null, 'a call with a record has no hold')
        return { done: 'exists' }
      }
      if (hold !== null) post.run(record.accountId, hold.amount, charged)
      return { done: 'settled', charged: `${charged}` }
    },
    record({ record }) {
      return { done: insertRecord.run(...recordValues(record, 0n)).changes === 1 ? 'recorded' : 'exists' }
    },
  }
}

function keyOperations(db: Database): Pick<Run, 'createKey' | 'revokeKey' | 'setSetting'> {
  const findTier = db.query('SELECT 1 FROM tier WHERE name = ?1')
  const insertAccount = db.query('INSERT INTO account (id, name, balance, created_ms) VALUES (?1, ?2, ?3, ?4)')
  const insertKey: Statement = db.query(
    `INSERT INTO api_key (id, digest, suffix, name, account_id, tier, qpm, created_ms)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`,
  )
  const revoke = db.query('UPDATE api_key SET revoked_ms = ?2 WHERE id = ?1 AND revoked_ms IS NULL')
  const findKey = db.query('SELECT 1 FROM api_key WHERE id = ?1')
  const upsertSetting = db.query(
    'INSERT INTO setting VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
  )
  return {
    createKey(key) {
      const credit = amountOf(key.credit)
      if (findTier.get(key.tier) === null) return { done: 'tier_unknown' }
      insertAccount.run(key.accountId, key.name, credit, key.nowMs)
      const digest = Buffer.from(key.digest, 'hex')
      insertKey.run(key.id, digest, key.suffix, key.name, key.accountId, key.tier, key.qpm, key.nowMs)
      return { done: 'created' }
    },
    revokeKey({ id, nowMs }) {
      if (findKey.get(id) === null) return { done: 'unknown' }
      revoke.run(id, nowMs)
      return { done: 'revoked' }
    },
    setSetting({ name, value }) {
      upsertSetting.run(name, value)
      return { done: 'set' }
    },
  }
}

function recordValues(record: RecordRow, cost: bigint): (string | number | bigint | null)[] {
  return [
    record.callId,
    record.keyId,
    record.accountId,
    record.provider,
    record.model,
    record.channel,
    record.status,
    record.outcome,
    record.usageSource,
    record.inputTokens,
    record.cacheReadTokens,
    record.outputTokens,
    cost,
    record.attempts,
    record.streamed ? 1 : 0,
    record.durationMs,
  ]
}

/** Beyond 64 bits the driver would wrap it silently. */
function amountOf(text: MoneyText): bigint {
  const amount = readMoney(text)
  assert(amount >= 0n, 'an amount of money is not negative')
  return amount
}
