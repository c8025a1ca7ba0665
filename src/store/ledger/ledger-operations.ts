// The operations of the ledger that calls need: hold, checkpoint, settle, record. Each checks everything first; from a
// marked line on, it must succeed.

import type { Database } from 'bun:sqlite'
import { assert } from '../../base/assert.ts'
import type { HandlersOf } from '../engine/operation.ts'
import type { Books } from './books.ts'
import type { BudgetScope } from './budgets.ts'
import { grantShare } from './funds-share.ts'
import type { CheckpointData, HoldInput, HoldResult, RecordRow } from './hold-types.ts'
import type { MoneyText } from './money-text.ts'
import { readAmount } from './money-text.ts'
import { REVENUE, SHORTFALL } from './operator-accounts.ts'

interface HoldRow {
  readonly amount: bigint
  readonly account_id: bigint
  readonly key_id: bigint
}

interface LedgerAccount {
  readonly kind: string
  readonly available: bigint
  readonly balance: bigint
  readonly frozen_ms: bigint | null
}

export interface LedgerOperations {
  hold: { input: HoldInput; result: HoldResult }
  /**
   * Reserves more for a running call. Where `amount` is a large part of what is left, less is granted, but not less
   * than `least`, so that calls that run at the same time get a share each. `held` is what the hold is believed to be:
   * if it is more, an earlier extension whose confirmation was lost has succeeded, and the difference is granted. So
   * an extension can be repeated.
   */
  extend: {
    input: {
      readonly callId: number
      readonly amount: MoneyText
      readonly least: MoneyText
      readonly held: MoneyText
    }
    result:
      | { done: 'extended'; granted: MoneyText }
      | { done: 'balance_too_low'; available: MoneyText }
      | { done: 'budget_too_low'; available: MoneyText; budget: string }
      | { done: 'account_frozen' }
      /** The call has no hold any more. */
      | { done: 'settled' }
  }
  /** Ends a call: charges `cost`, or less where money is short, releases the hold and writes the record. */
  settle: {
    input: {
      readonly record: RecordRow
      readonly cost: MoneyText
      /** Stores the answer for the idempotency key (encrypted, base64; null: too large), or releases the key. */
      readonly idempotency?: { readonly sealed: string | null } | 'release'
    }
    result: { done: 'settled'; charged: MoneyText; shortfall: MoneyText } | { done: 'exists' }
  }
  /** Notes what has been delivered so far, so that it is charged also after a crash. */
  checkpoint: {
    input: { readonly callId: number; readonly used: MoneyText; readonly known: CheckpointData }
    result: { done: 'noted' | 'unknown' }
  }
  /** Writes the record of a call that had no hold. */
  record: { input: { readonly record: RecordRow }; result: { done: 'recorded' | 'exists' } }
}

type LedgerHandlers = HandlersOf<LedgerOperations>

export function ledgerOperations(books: Books): LedgerHandlers {
  const settle = buildSettle(books)
  const insertRecord = recordInserter(books.db)
  const checkpoint = books.db.query(
    'UPDATE hold SET used = min(amount, ?2), draft = json_patch(draft, ?3) WHERE call_id = ?1',
  )
  return {
    hold: buildHold(books),
    extend: buildExtend(books),
    settle: ({ record, cost, idempotency }) => {
      const result = settle({ record, cost: readAmount(cost) })
      // A repeated settle releases the key too: the caller has got an error and may try again.
      if (idempotency === 'release') books.idempotency.release(record.callId)
      else if (idempotency !== undefined && result.done === 'settled') {
        books.idempotency.finish(record.callId, idempotency.sealed)
      }
      return result
    },
    checkpoint({ callId, used, known }) {
      const noted = checkpoint.run(callId, readAmount(used), JSON.stringify(known)).changes === 1
      return { done: noted ? 'noted' : 'unknown' }
    },
    record({ record }) {
      return { done: insertRecord(record, nothingCharged) ? 'recorded' : 'exists' }
    },
  }
}

function buildHold({ db, budgets, idempotency }: Books): (input: HoldInput) => HoldResult {
  const reserve = db.query(
    `UPDATE account SET held = held + ?2
     WHERE id = ?1 AND frozen_ms IS NULL AND held + ?2 <= 2305843009213693952
       AND (kind = 'postpaid' OR balance + credit_limit - held >= max(?2, ?3))`,
  )
  // A call that was settled before its hold arrived must not be held: the hold would stay open for ever.
  const insertHold = db.query(
    `INSERT INTO hold (call_id, kind, account_id, key_id, amount, draft) SELECT ?1, ?2, ?3, ?4, ?5, ?6
     WHERE NOT EXISTS (SELECT 1 FROM record WHERE call_id = ?1)`,
  )
  const readAccount = buildAccountReader(db)

  function refusalOf(accountId: number, amount: bigint): HoldResult {
    const account = readAccount(accountId)
    if (account === undefined) return { done: 'account_unknown' }
    if (account.frozen_ms !== null) return { done: 'account_frozen' }
    const available = `${account.available}` as const
    return { done: account.available < amount ? 'balance_too_low' : 'hold_less', available }
  }

  /** Between `least` and the amount: `least` and a share of what is left after it. */
  function shareFor(input: HoldInput, least: bigint): bigint {
    const account = readAccount(input.accountId)
    const rooms = account === undefined ? [] : roomsOf(account, budgets.remaining(input)?.available)
    const left = rooms.map(room => room - least)
    const extra = left.some(room => room < 0n) ? 0n : grantShare(readAmount(input.amount) - least, 0n, left)
    return least + extra
  }

  return function hold(input) {
    const { callId, accountId, keyId } = input
    const amount = input.least === undefined ? readAmount(input.amount) : shareFor(input, readAmount(input.least))
    const claimed = input.idempotency === undefined ? undefined : idempotency.findClaim(input)
    if (claimed !== undefined) return claimed
    const wants = readAmount(input.wants)
    const room = budgets.remaining(input)
    if (room !== undefined && amount > 0n) {
      const available = `${room.available}` as const
      if (room.available < amount) return { done: 'budget_too_low', available, budget: room.budget }
      if (room.available < wants) return { done: 'hold_less', available }
    }
    if (reserve.run(accountId, amount, wants).changes === 0) return refusalOf(accountId, amount)
    // From here on the hold must succeed.
    budgets.hold(input, amount)
    const held = insertHold.run(callId, input.kind, accountId, keyId, amount, JSON.stringify(input.draft))
    assert(held.changes === 1, 'a finished call must not be held')
    if (input.idempotency !== undefined) idempotency.claim(input)
    return input.least === undefined ? { done: 'held' } : { done: 'held', granted: `${amount}` }
  }
}

function buildExtend({ db, budgets }: Books): LedgerHandlers['extend'] {
  const findHold = db.query('SELECT amount, account_id, key_id FROM hold WHERE call_id = ?1')
  const addToHold = db.query('UPDATE hold SET amount = amount + ?2 WHERE call_id = ?1')
  const addToHeld = db.query('UPDATE account SET held = held + ?2 WHERE id = ?1 AND held + ?2 <= 2305843009213693952')
  const readAccount = buildAccountReader(db)

  return function extend({ callId, amount: amountText, least: leastText, held: heldText }) {
    const hold = findHold.get(callId) as HoldRow | null
    if (hold === null) return { done: 'settled' }
    const unconfirmed = hold.amount - readAmount(heldText)
    if (unconfirmed > 0n) return { done: 'extended', granted: `${unconfirmed}` }
    const [amount, least] = [readAmount(amountText), readAmount(leastText)]
    const scope = { keyId: Number(hold.key_id), accountId: Number(hold.account_id) }
    const account = readAccount(scope.accountId)!
    if (account.frozen_ms !== null) return { done: 'account_frozen' }
    const budget = budgets.remaining(scope)
    if (budget !== undefined && budget.available < least) {
      return { done: 'budget_too_low', available: `${budget.available}`, budget: budget.budget }
    }
    const isPostpaid = account.kind === 'postpaid'
    if (!isPostpaid && account.available < least) {
      return { done: 'balance_too_low', available: `${account.available}` }
    }
    const granted = grantShare(amount, least, roomsOf(account, budget?.available))
    if (addToHeld.run(scope.accountId, granted).changes === 0) {
      return { done: 'balance_too_low', available: `${account.available}` }
    }
    // From here on the extension must succeed.
    budgets.hold(scope, granted)
    addToHold.run(callId, granted)
    return { done: 'extended', granted: `${granted}` }
  }
}

/** What limits a reservation: the balance of a prepaid account, and the budgets. */
const roomsOf = ({ kind, available }: LedgerAccount, budget: bigint | undefined): readonly bigint[] => [
  ...(kind === 'postpaid' ? [] : [available]),
  ...(budget === undefined ? [] : [budget]),
]

interface FinishedCall {
  readonly record: RecordRow
  readonly cost: bigint
}

export type SettleResult = ReturnType<HandlersOf<LedgerOperations>['settle']>

/** Also used by recovery to end the calls that a crash interrupted. */
export function buildSettle({ db, budgets, operators, nowMs }: Books): (ended: FinishedCall) => SettleResult {
  const takeHold = db.query('DELETE FROM hold WHERE call_id = ?1 RETURNING amount, account_id, key_id')
  const post = db.query('UPDATE account SET held = held - ?2, balance = balance - ?3 WHERE id = ?1')
  const insertTransfer = buildTransferInserter(db)
  const insertRecord = recordInserter(db)
  const readAccount = buildAccountReader(db)

  /** How much of the cost can be charged: a cost above the hold takes what the account and budgets have left. */
  function payable(cost: bigint, held: bigint, scope: BudgetScope): bigint {
    if (cost <= held) return cost
    const account = readAccount(scope.accountId)!
    const budget = budgets.remaining(scope)?.available
    let room = account.kind === 'postpaid' ? cost : account.available
    if (budget !== undefined && budget < room) room = budget
    const limit = held + (room > 0n ? room : 0n)
    return cost < limit ? cost : limit
  }

  return function settle({ record, cost }) {
    const hold = takeHold.get(record.callId) as HoldRow | null
    if (hold === null) {
      // Without a hold nothing is charged: the call was settled before, or it was never held.
      const written = insertRecord(record, nothingCharged)
      return written ? { done: 'settled', charged: '0', shortfall: '0' } : { done: 'exists' }
    }
    const scope = { keyId: Number(hold.key_id), accountId: Number(hold.account_id) }
    const charged = payable(cost, hold.amount, scope)
    const shortfall = cost - charged
    assert(
      insertRecord(record, { cost: charged, shortfall, held: hold.amount }),
      'a call with a hold must have no record',
    )
    post.run(scope.accountId, hold.amount, charged)
    budgets.settle(scope, hold.amount, charged)
    const transfer = { ref: record.callId, madeMs: nowMs(), reference: null, author: null }
    if (charged > 0n) {
      insertTransfer({ ...transfer, kind: 'charge', debit: scope.accountId, credit: REVENUE, amount: charged })
      operators.move(REVENUE, charged)
    }
    if (shortfall > 0n) {
      insertTransfer({ ...transfer, kind: 'shortfall', debit: SHORTFALL, credit: REVENUE, amount: shortfall })
      operators.move(REVENUE, shortfall)
      operators.move(SHORTFALL, -shortfall)
    }
    return { done: 'settled', charged: `${charged}`, shortfall: `${shortfall}` }
  }
}

export interface TransferRow {
  readonly ref: number
  readonly kind: string
  readonly debit: number
  readonly credit: number
  readonly amount: bigint
  readonly madeMs: number
  readonly reference: string | null
  readonly author: string | null
}

export function buildTransferInserter(db: Database): (row: TransferRow) => void {
  const insert = db.query(
    `INSERT INTO transfer (ref, kind, debit, credit, amount, made_ms, reference, author)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`,
  )
  return row =>
    void insert.run(row.ref, row.kind, row.debit, row.credit, row.amount, row.madeMs, row.reference, row.author)
}

export function buildAccountReader(db: Database): (id: number) => LedgerAccount | undefined {
  const read = db.query(
    'SELECT kind, balance + credit_limit - held AS available, balance, frozen_ms FROM account WHERE id = ?1',
  )
  return id => (read.get(id) as LedgerAccount | null) ?? undefined
}

interface ChargedAmounts {
  readonly cost: bigint
  readonly shortfall: bigint
  readonly held: bigint
}

const nothingCharged: ChargedAmounts = { cost: 0n, shortfall: 0n, held: 0n }

/** The function returns false when the call has a record already. */
export function recordInserter(db: Database): (record: RecordRow, charged: ChargedAmounts) => boolean {
  const insert = db.query(
    `INSERT INTO record VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,?23,?24,
       ?25,?26,?27,?28,?29,?30,?31,?32,?33,?34,?35) ON CONFLICT DO NOTHING`,
  )
  return (record, charged) => insert.run(...recordValues(record, charged)).changes === 1
}

/** The values of a record in the order of the table's columns. */
function recordValues(
  record: RecordRow,
  { cost, shortfall, held }: ChargedAmounts,
): (string | number | bigint | null)[] {
  return [
    record.callId,
    record.keyId,
    record.accountId,
    record.dialect,
    record.provider,
    record.model,
    record.channel,
    record.status,
    record.error,
    record.outcome,
    record.rule,
    record.usageSource,
    record.streamed ? 1 : 0,
    record.inputTokens,
    record.cacheReadTokens,
    record.cacheWriteTokens,
    record.outputTokens,
    record.reasoningTokens,
    cost,
    shortfall,
    held,
    record.priceVersion,
    record.lines,
    record.attempts,
    record.timings,
    record.firstContentMs,
    record.durationMs,
    record.endUser,
    record.tags,
    record.loss ?? null,
    record.requestHash ?? null,
    record.upstreamHash ?? null,
    record.requestedModel ?? null,
    record.routing ?? null,
    record.conversation ?? null,
  ]
}
