// The part of an audit that checks single calls and codes. Wide queries find suspects, which may be wrong; then each
// suspect is checked in detail. A suspect is checked again in every pass until it is correct.

import type { Hint } from '../../base/hints.ts'
import { hintOf } from '../../base/hints.ts'
import { textId } from '../../base/ids.ts'
import { formatUsd, nanos } from '../../base/money/money.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { TransferRange } from './audit-database.ts'
import { inSlice } from './audit-database.ts'
import type { AuditFinding } from './findings.ts'
import { createFinding } from './findings.ts'

interface TransferOfCall {
  readonly kind: string
  readonly debit: bigint
  readonly credit: bigint
  readonly amount: bigint
}

interface RecordRow {
  readonly account_id: bigint
  readonly cost: bigint
  readonly shortfall: bigint
  readonly rule: string
}

interface CodeRow {
  readonly amount: bigint
  readonly account_id: bigint | null
}

/** With more suspects than this, a list of all of them would help nobody. */
const SUSPECTS_MAX = 10_000

type SuspectMap = Map<bigint, bigint | undefined>

const usd = (amount: bigint): string => `$${formatUsd(nanos(amount))}`

interface SuspectRow {
  readonly id: bigint
  readonly owner?: bigint
}

/** Records with lower ids have been deleted by age. */
const RECORDS_FROM = "coalesce((SELECT CAST(value AS BIGINT) FROM setting WHERE name = 'records_from'), 0)"

/** The rule of records from before the ledger. Their money is in the opening transfers. */
const OLD_RULE = 'house'

const findOpenHolds = query<{ id: bigint; owner: bigint; is_over: bigint }>(
  `SELECT h.call_id AS id, h.account_id AS owner, CAST(CASE WHEN r.call_id IS NULL THEN 0 ELSE 1 END AS BIGINT) AS is_over
   FROM hold h LEFT JOIN record r ON r.call_id = h.call_id`,
)
const findSuspectRedemptions = query<SuspectRow>(
  inSlice(
    slice => `SELECT t.ref AS id FROM transfer t LEFT JOIN code c ON c.id = t.ref
      WHERE ${slice} AND t.kind = 'redemption'
        AND (c.account_id IS NULL OR c.account_id <> t.credit OR c.amount <> t.amount)`,
  ),
)
const findSuspectRecords = query<SuspectRow>(
  `SELECT r.call_id AS id FROM record r
     LEFT JOIN transfer c ON c.ref = r.call_id AND c.kind = 'charge'
     LEFT JOIN transfer s ON s.ref = r.call_id AND s.kind = 'shortfall'
   WHERE r.call_id > ?1 AND r.call_id <= ?2 AND r.rule <> 'house'
     AND (r.cost <> coalesce(c.amount, 0) OR r.shortfall <> coalesce(s.amount, 0))`,
)
const findSuspectCodes = query<SuspectRow>(
  `SELECT c.id FROM code c LEFT JOIN transfer t ON t.ref = c.id AND t.kind = 'redemption'
   WHERE c.id > ?1 AND c.id <= ?2
     AND (c.redeemed_ms IS NULL) <> (t.seq IS NULL)`,
)

/** The queries that read records. `deleted` is a table with the amounts of deleted records, which the ledger still has. */
const recordQueries = (deleted: string) => ({
  findSuspectTransfers: query<SuspectRow>(
    inSlice(
      slice => `SELECT t.ref AS id FROM transfer t LEFT JOIN record r ON r.call_id = t.ref
          LEFT JOIN ${deleted} d ON r.call_id IS NULL AND d.call_id = t.ref
        WHERE ${slice} AND t.kind IN ('charge', 'shortfall', 'refund')
          AND CASE WHEN r.call_id IS NULL AND d.call_id IS NULL THEN t.ref >= ${RECORDS_FROM} ELSE r.rule = 'house'
            OR (t.kind = 'charge' AND (t.amount <> coalesce(r.cost, d.cost)
              OR t.debit <> coalesce(r.account_id, d.account_id)))
            OR (t.kind = 'shortfall' AND t.amount <> coalesce(r.shortfall, d.shortfall))
            OR (t.kind = 'refund' AND (t.amount > coalesce(r.cost, d.cost)
              OR t.credit <> coalesce(r.account_id, d.account_id))) END`,
    ),
  ),
  readRecord: query<RecordRow>(
    `SELECT account_id, cost, shortfall, rule FROM record WHERE call_id = ?1 UNION ALL
     SELECT d.account_id, d.cost, d.shortfall, 'deleted' FROM ${deleted} d WHERE d.call_id = ?1`,
  ),
})
const withDeleted = recordQueries('deleted_record')
const noNumber = (name: string): string => `CAST(NULL AS BIGINT) AS ${name}`
const withoutDeleted = recordQueries(
  `(SELECT ${['call_id', 'account_id', 'cost', 'shortfall'].map(noNumber).join()} WHERE 1 = 0)`,
)

const findDeletedByAge = query(`SELECT 1 WHERE ?1 < ${RECORDS_FROM}`)
// On PostgreSQL a hold that came too late for its caller is removed again.
const findCancelled = query({
  sqlite: 'SELECT 1 WHERE ?1 IS NULL',
  postgres: 'SELECT 1 FROM cancelled_hold WHERE call_id = ?1',
})
const readHold = query<{ account_id: bigint }>('SELECT account_id FROM hold WHERE call_id = ?1')
const findTransfers = query<TransferOfCall>('SELECT kind, debit, credit, amount FROM transfer WHERE ref = ?1')
const readCode = query<CodeRow>('SELECT amount, account_id FROM code WHERE id = ?1')

/** A call or a code that may be wrong. */
interface Suspect {
  readonly kind: 'call' | 'code'
  readonly id: bigint
}

export class AuditSuspects {
  readonly #recordQueries
  /** Suspect calls, with the account of their closed hold where it is known. */
  readonly #calls: SuspectMap = new Map()
  readonly #codes: SuspectMap = new Map()
  /** The open holds of the last pass: call and account. */
  #open: ReadonlyMap<bigint, bigint> = new Map()

  constructor(hasDeletedRecords: boolean) {
    this.#recordQueries = hasDeletedRecords ? withDeleted : withoutDeleted
  }

  get isEmpty(): boolean {
    return this.#calls.size === 0 && this.#codes.size === 0
  }

  /** A hold that was closed since the last pass must have left a record, however late. */
  *checkHolds(): Steps<void> {
    const holds = yield* findOpenHolds.all()
    addSuspects(
      this.#calls,
      holds.filter(hold => hold.is_over === 1n),
    )
    const open = new Map(holds.map(({ id, owner }) => [id, owner]))
    for (const [id, owner] of this.#open) if (!open.has(id)) addSuspects(this.#calls, [{ id, owner }])
    this.#open = open
  }

  *checkTransfers(range: TransferRange): Steps<void> {
    addSuspects(this.#calls, yield* this.#recordQueries.findSuspectTransfers.all(...range))
    addSuspects(this.#codes, yield* findSuspectRedemptions.all(...range))
  }

  *checkRecords(from: bigint, to: bigint): Steps<void> {
    addSuspects(this.#calls, yield* findSuspectRecords.all(from, to))
  }

  *checkCodes(from: bigint, to: bigint): Steps<void> {
    addSuspects(this.#codes, yield* findSuspectCodes.all(from, to))
  }

  list(): readonly Suspect[] {
    const calls = [...this.#calls.keys()].map(id => ({ kind: 'call', id }) as const)
    return [...calls, ...[...this.#codes.keys()].map(id => ({ kind: 'code', id }) as const)]
  }

  /** Checks some suspects. Correct ones are removed from the list. */
  *check(suspects: readonly Suspect[]): Steps<readonly AuditFinding[]> {
    const findings: AuditFinding[] = []
    for (const { kind, id } of suspects) {
      const problems = kind === 'call' ? yield* this.#checkCall(id, this.#calls.get(id)) : yield* checkCode(id)
      if (problems.length === 0) (kind === 'call' ? this.#calls : this.#codes).delete(id)
      findings.push(...problems)
    }
    return findings
  }

  *#checkCall(id: bigint, held: bigint | undefined): Steps<readonly AuditFinding[]> {
    const record = yield* this.#recordQueries.readRecord.get(id)
    if (record === undefined && (yield* findDeletedByAge.get(id)) !== undefined) return []
    const hold = yield* readHold.get(id)
    const transfers = yield* findTransfers.all(id)
    const isCancelled = record === undefined && hold === undefined && (yield* findCancelled.get(id)) !== undefined
    const [charge, shortfall, refund] = ['charge', 'shortfall', 'refund'].map(kind =>
      transfers.find(row => row.kind === kind),
    )
    const call = textId('req', Number(id))
    const owner = record?.account_id ?? charge?.debit ?? refund?.credit ?? hold?.account_id ?? held
    const problems: Hint[] = []
    if (record !== undefined && hold !== undefined) problems.push(hintOf('found_call_open', { call }))
    if (record === undefined && charge !== undefined)
      problems.push(hintOf('found_call_unrecorded', { call, amount: usd(charge.amount) }))
    else if (record === undefined && hold === undefined && !isCancelled)
      problems.push(hintOf('found_call_lost', { call }))
    if (record?.rule === OLD_RULE && charge !== undefined) problems.push(hintOf('found_call_twice', { call }))
    if (record !== undefined && record.rule !== OLD_RULE) {
      const [cost, charged] = [record.cost, charge?.amount ?? 0n]
      if (cost !== charged) problems.push(hintOf('found_call_cost', { call, cost: usd(cost), charged: usd(charged) }))
      if (record.shortfall !== (shortfall?.amount ?? 0n)) problems.push(hintOf('found_call_shortfall', { call }))
      if (charge !== undefined && charge.debit !== record.account_id)
        problems.push(hintOf('found_call_account', { call }))
    }
    if (refund !== undefined && refund.amount > (charge?.amount ?? 0n))
      problems.push(hintOf('found_refund_amount', { call }))
    if (refund !== undefined && refund.credit !== charge?.debit) problems.push(hintOf('found_refund_account', { call }))
    return problems.map(hint => createFinding({ check: 'call', owner, key: hint.text, hint }))
  }
}

function* checkCode(id: bigint): Steps<readonly AuditFinding[]> {
  const code = yield* readCode.get(id)
  const transfer = (yield* findTransfers.all(id)).find(row => row.kind === 'redemption')
  const to = code?.account_id ?? null
  const fits = transfer !== undefined && code !== undefined && transfer.credit === to && transfer.amount === code.amount
  if (fits || (transfer === undefined && to === null)) return []
  const owner = to ?? transfer?.credit
  const hint = hintOf(to === null ? 'found_code_open' : 'found_code', { code: String(id) })
  return [createFinding({ check: 'code', owner, key: String(id), hint })]
}

function addSuspects(suspects: SuspectMap, rows: readonly SuspectRow[]): void {
  for (const { id, owner } of rows) if (suspects.size < SUSPECTS_MAX) suspects.set(id, owner)
}
