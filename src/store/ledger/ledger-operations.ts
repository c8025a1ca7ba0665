// Hold, checkpoint, settle, record, and what an operator posts by hand. Everything is checked first; from a named line
// on, each must succeed.

import type { Database } from 'bun:sqlite'
import { assert } from '../../base/assert.ts'
import type { Runs } from '../engine/operation.ts'
import type { Books } from './books.ts'
import type { Scope } from './budgets.ts'
import type { HoldInput, HoldResult, PostedKind, RecordKnown, RecordRow } from './hold-types.ts'
import type { MoneyText } from './money-text.ts'
import { amountOf, readMoney } from './money-text.ts'
import { CLEARING, PROMO, REVENUE, SHORTFALL } from './operator-accounts.ts'

interface HoldRow {
  readonly amount: bigint
  readonly account_id: bigint
  readonly key_id: bigint
}

interface AccountRow {
  readonly kind: string
  readonly available: bigint
  readonly balance: bigint
  readonly frozen_ms: bigint | null
}

/** Where the money of each kind of posting comes from. A negative adjustment goes the other way. */
const counterparts: Readonly<Record<PostedKind, number>> = {
  top_up: CLEARING,
  gift: PROMO,
  adjustment: REVENUE,
  refund: REVENUE,
}

/** As the table has it; two billion dollars. */
const BALANCE_MAX = 2n ** 61n

export interface LedgerOperations {
  hold: { input: HoldInput; result: HoldResult }
  /** Ends a call: its hold, if it has one, is posted at `cost` or less, and its record is written. */
  settle: {
    input: {
      readonly record: RecordRow
      readonly cost: MoneyText
      /** What becomes of the call's idempotency key: kept with its answer (base64; null: too large), or given back. */
      readonly idempotency?: { readonly sealed: string | null } | 'release'
    }
    result: { done: 'settled'; charged: MoneyText; shortfall: MoneyText } | { done: 'exists' }
  }
  /** What has been delivered so far, so that a crash does not make it free. */
  checkpoint: {
    input: { readonly callId: number; readonly used: MoneyText; readonly known: RecordKnown }
    result: { done: 'noted' | 'unknown' }
  }
  /** Writes down a call that never held anything. */
  record: { input: { readonly record: RecordRow }; result: { done: 'recorded' | 'exists' } }
  /** Moves money by an operator's word. `ref`: the call that is refunded, else an id of its own. */
  post: {
    input: {
      readonly kind: PostedKind
      readonly ref: number
      readonly accountId: number
      /** Of an adjustment it may be negative. Of a refund it may be all that was charged. */
      readonly amount: MoneyText | 'all'
      readonly reference: string | null
      readonly author: string
    }
    result:
      | { done: 'posted'; amount: MoneyText; balance: MoneyText }
      /** It has been posted before; `same` to the account and with all else, so that it need not be again. */
      | { done: 'exists'; same: boolean; ref: number; amount: MoneyText; balance: MoneyText }
      | { done: 'account_unknown' | 'balance_too_low' | 'balance_too_high' }
      | { done: 'call_not_charged' | 'more_than_charged' }
  }
  /** Idempotency keys of calls before this one, some at a time. */
  forgetAnswers: { input: { readonly before: number }; result: { done: 'forgotten'; count: number } }
}

type LedgerRun = Runs<LedgerOperations>

export function ledgerOperations(books: Books): LedgerRun {
  const settling = buildSettle(books)
  const insertRecord = recordInserter(books.db)
  const checkpoint = books.db.query(
    'UPDATE hold SET used = min(amount, ?2), draft = json_patch(draft, ?3) WHERE call_id = ?1',
  )
  return {
    hold: buildHold(books),
    settle: ({ record, cost, idempotency }) => {
      const result = settling({ record, cost: amountOf(cost) })
      // Given back also by one that was settled before: its caller was told that it failed, and may try again.
      if (idempotency === 'release') books.idempotency.release(record.callId)
      else if (idempotency !== undefined && result.done === 'settled') {
        books.idempotency.finish(record.callId, idempotency.sealed)
      }
      return result
    },
    checkpoint({ callId, used, known }) {
      const noted = checkpoint.run(callId, amountOf(used), JSON.stringify(known)).changes === 1
      return { done: noted ? 'noted' : 'unknown' }
    },
    record({ record }) {
      return { done: insertRecord(record, nothingCharged) ? 'recorded' : 'exists' }
    },
    post: buildPost(books),
    forgetAnswers: ({ before }) => ({ done: 'forgotten', count: books.idempotency.forget(before) }),
  }
}

function buildHold({ db, budgets, idempotency }: Books): (input: HoldInput) => HoldResult {
  const reserve = db.query(
    `UPDATE account SET held = held + ?2
     WHERE id = ?1 AND frozen_ms IS NULL AND held + ?2 <= 2305843009213693952
       AND (kind = 'postpaid' OR balance + credit_limit - held >= max(?2, ?3))`,
  )
  // One that was given up and settled before it came would be held for ever, and no start could end it.
  const insertHold = db.query(
    `INSERT INTO hold (call_id, kind, account_id, key_id, amount, draft) SELECT ?1, ?2, ?3, ?4, ?5, ?6
     WHERE NOT EXISTS (SELECT 1 FROM record WHERE call_id = ?1)`,
  )
  const readAccount = accountReader(db)

  function whyNot(accountId: number, amount: bigint): HoldResult {
    const account = readAccount(accountId)
    if (account === undefined) return { done: 'account_unknown' }
    if (account.frozen_ms !== null) return { done: 'account_frozen' }
    const available = `${account.available}` as const
    return { done: account.available < amount ? 'balance_too_low' : 'count_first', available }
  }

  return function hold(input) {
    const { callId, accountId, keyId } = input
    const amount = amountOf(input.amount)
    const claimed = input.idempotency === undefined ? undefined : idempotency.holder(input)
    if (claimed !== undefined) return claimed
    const room = budgets.room(input)
    if (room !== undefined && amount > 0n && room.available < amount) {
      return { done: 'budget_too_low', available: `${room.available}`, budget: room.budget }
    }
    if (reserve.run(accountId, amount, amountOf(input.wants)).changes === 0) return whyNot(accountId, amount)
    // From here on the hold must succeed.
    budgets.hold(input, amount)
    const held = insertHold.run(callId, input.kind, accountId, keyId, amount, JSON.stringify(input.draft))
    assert(held.changes === 1, 'a call that is over is not held')
    if (input.idempotency !== undefined) idempotency.claim(input)
    return { done: 'held' }
  }
}

interface Ended {
  readonly record: RecordRow
  readonly cost: bigint
}

export type Settled = ReturnType<Runs<LedgerOperations>['settle']>

/** Also how recovery ends what a crash cut off. */
export function buildSettle({ db, budgets, operators, nowMs }: Books): (ended: Ended) => Settled {
  const takeHold = db.query('DELETE FROM hold WHERE call_id = ?1 RETURNING amount, account_id, key_id')
  const post = db.query('UPDATE account SET held = held - ?2, balance = balance - ?3 WHERE id = ?1')
  const insertTransfer = transferInserter(db)
  const insertRecord = recordInserter(db)
  const readAccount = accountReader(db)

  /** A cost beyond its hold takes what is there, and never more. */
  function payable(cost: bigint, held: bigint, scope: Scope): bigint {
    if (cost <= held) return cost
    const account = readAccount(scope.accountId)!
    const budget = budgets.room(scope)?.available
    let room = account.kind === 'postpaid' ? cost : account.available
    if (budget !== undefined && budget < room) room = budget
    const most = held + (room > 0n ? room : 0n)
    return cost < most ? cost : most
  }

  return function settle({ record, cost }) {
    const hold = takeHold.get(record.callId) as HoldRow | null
    if (hold === null) {
      // Nothing was set aside, so nothing is taken: it was settled before, or never held.
      const written = insertRecord(record, nothingCharged)
      return written ? { done: 'settled', charged: '0', shortfall: '0' } : { done: 'exists' }
    }
    const scope = { keyId: Number(hold.key_id), accountId: Number(hold.account_id) }
    const charged = payable(cost, hold.amount, scope)
    const shortfall = cost - charged
    assert(insertRecord(record, { cost: charged, shortfall, held: hold.amount }), 'a call with a hold has no record')
    post.run(scope.accountId, hold.amount, charged)
    budgets.settle(scope, hold.amount, charged)
    const made = { ref: record.callId, madeMs: nowMs(), reference: null, author: null }
    if (charged > 0n) {
      insertTransfer({ ...made, kind: 'charge', debit: scope.accountId, credit: REVENUE, amount: charged })
      operators.move(REVENUE, charged)
    }
    if (shortfall > 0n) {
      insertTransfer({ ...made, kind: 'shortfall', debit: SHORTFALL, credit: REVENUE, amount: shortfall })
      operators.move(REVENUE, shortfall)
      operators.move(SHORTFALL, -shortfall)
    }
    return { done: 'settled', charged: `${charged}`, shortfall: `${shortfall}` }
  }
}

function buildPost({ db, operators, nowMs }: Books): Runs<LedgerOperations>['post'] {
  const readAccount = accountReader(db)
  const add = db.query('UPDATE account SET balance = balance + ?2 WHERE id = ?1')
  const insertTransfer = transferInserter(db)
  const findOne = db.query('SELECT ref, amount, debit, credit, reference FROM transfer WHERE ref = ?1 AND kind = ?2')
  const findReference = db.query(
    'SELECT ref, amount, debit, credit, reference FROM transfer WHERE kind = ?1 AND reference = ?2',
  )

  return function postByHand({ kind, ref, accountId, amount: text, reference, author }) {
    const charge = kind === 'refund' ? (findOne.get(ref, 'charge') as Charge | null) : null
    const amount = text === 'all' ? (charge?.amount ?? 0n) : readMoney(text)
    assert(kind === 'adjustment' ? amount !== 0n : amount > 0n || text === 'all', 'a posting moves money')
    const account = readAccount(accountId)
    if (account === undefined || account.kind === 'operator') return { done: 'account_unknown' }
    const named = (): unknown => (reference === null ? null : findReference.get(kind, reference))
    const before = (findOne.get(ref, kind) ?? named()) as Posted | null
    if (before !== null) return postedBefore(before, { accountId, amount, reference, balance: account.balance })
    if (account.kind === 'prepaid' && account.available + amount < 0n) return { done: 'balance_too_low' }
    const other = counterparts[kind]
    const [own, others] = [account.balance + amount, readAccount(other)!.balance - amount]
    if (own < -BALANCE_MAX) return { done: 'balance_too_low' }
    if (own > BALANCE_MAX || others > BALANCE_MAX || others < -BALANCE_MAX) return { done: 'balance_too_high' }
    if (kind === 'refund') {
      if (charge === null || Number(charge.debit) !== accountId) return { done: 'call_not_charged' }
      if (amount > charge.amount) return { done: 'more_than_charged' }
    }
    // From here on the posting must succeed.
    const made = { ref, kind, madeMs: nowMs(), reference, author }
    if (amount > 0n) insertTransfer({ ...made, debit: other, credit: accountId, amount })
    else insertTransfer({ ...made, debit: accountId, credit: other, amount: -amount })
    add.run(accountId, amount)
    operators.move(other, -amount)
    return { done: 'posted', amount: `${amount}`, balance: `${account.balance + amount}` }
  }
}

interface Charge {
  readonly amount: bigint
  readonly debit: bigint
}

interface Posted extends Charge {
  readonly ref: bigint
  readonly credit: bigint
  readonly reference: string | null
}

interface Repeated {
  readonly accountId: number
  readonly amount: bigint
  readonly reference: string | null
  readonly balance: bigint
}

function postedBefore(
  before: Posted,
  { accountId, amount, reference, balance }: Repeated,
): ReturnType<Runs<LedgerOperations>['post']> {
  const receives = Number(before.credit) === accountId
  const moved = receives ? before.amount : -before.amount
  const isOwn = receives || Number(before.debit) === accountId
  const same = isOwn && moved === amount && before.reference === reference
  return { done: 'exists', same, ref: Number(before.ref), amount: `${moved}`, balance: `${balance}` }
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

export function transferInserter(db: Database): (row: TransferRow) => void {
  const insert = db.query(
    `INSERT INTO transfer (ref, kind, debit, credit, amount, made_ms, reference, author)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`,
  )
  return row =>
    void insert.run(row.ref, row.kind, row.debit, row.credit, row.amount, row.madeMs, row.reference, row.author)
}

export function accountReader(db: Database): (id: number) => AccountRow | undefined {
  const read = db.query(
    'SELECT kind, balance + credit_limit - held AS available, balance, frozen_ms FROM account WHERE id = ?1',
  )
  return id => (read.get(id) as AccountRow | null) ?? undefined
}

interface Charged {
  readonly cost: bigint
  readonly shortfall: bigint
  readonly held: bigint
}

const nothingCharged: Charged = { cost: 0n, shortfall: 0n, held: 0n }

/** False when the call has a record already. */
function recordInserter(db: Database): (record: RecordRow, charged: Charged) => boolean {
  const insert = db.query(
    `INSERT INTO record VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,?23,?24,
       ?25,?26,?27,?28,?29,?30,?31,?32,?33,?34) ON CONFLICT DO NOTHING`,
  )
  return (record, charged) => insert.run(...recordValues(record, charged)).changes === 1
}

/** In the order of the table's columns. */
function recordValues(record: RecordRow, { cost, shortfall, held }: Charged): (string | number | bigint | null)[] {
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
    record.firstMs,
    record.durationMs,
    record.endUser,
    record.tags,
    record.loss ?? null,
    record.cameHash ?? null,
    record.wentHash ?? null,
    record.asked ?? null,
    record.why ?? null,
  ]
}
