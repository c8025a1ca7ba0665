// The part of an audit that checks single calls and codes. Wide queries find suspects, which may be wrong; then each
// suspect is checked in detail. A suspect is checked again in every pass until it is correct.

import type { Database } from 'bun:sqlite'
import { textId } from '../../base/ids.ts'
import { formatUsd, nanos } from '../../base/money/money.ts'
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

/** Records with lower ids have been deleted by age. */
const RECORDS_FROM = "coalesce((SELECT CAST(value AS INTEGER) FROM setting WHERE name = 'records_from'), 0)"

/** A backup of an older schema has no table of deleted records, and no deleted records. */
function deletedTable(db: Database): string {
  const exists = db.query("SELECT 1 FROM sqlite_schema WHERE name = 'deleted_record'").get() !== null
  const none = '(SELECT NULL AS call_id, NULL AS account_id, NULL AS cost, NULL AS shortfall WHERE false)'
  return exists ? 'deleted_record' : none
}

/** The rule of records from before the ledger. Their money is in the opening transfers. */
const OLD_RULE = 'house'

export class AuditSuspects {
  readonly #db: Database
  readonly #openHolds
  readonly #suspectTransfers
  readonly #suspectRedemptions
  readonly #suspectRecords
  readonly #suspectCodes
  readonly #record
  readonly #findDeletedByAge
  readonly #hold
  readonly #findTransfers
  readonly #code
  /** Suspect calls, with the account of their closed hold where it is known. */
  readonly #calls: SuspectMap = new Map()
  readonly #codes: SuspectMap = new Map()
  /** The open holds of the last pass: call and account. */
  #open: ReadonlyMap<bigint, bigint> = new Map()

  constructor(db: Database) {
    this.#db = db
    const deleted = deletedTable(db)
    this.#openHolds = this.#idQuery(
      `SELECT h.call_id AS id, h.account_id AS owner, r.call_id IS NOT NULL AS over
       FROM hold h LEFT JOIN record r ON r.call_id = h.call_id`,
    )
    this.#suspectTransfers = this.#idQuery(
      `SELECT t.ref AS id FROM transfer t LEFT JOIN record r ON r.call_id = t.ref
         LEFT JOIN `.concat(
        deleted,
        ` d ON r.call_id IS NULL AND d.call_id = t.ref
       WHERE t.seq > ?1 AND t.seq <= ?2 AND t.kind IN ('charge', 'shortfall', 'refund')
         AND CASE WHEN r.call_id IS NULL AND d.call_id IS NULL THEN t.ref >= `,
        RECORDS_FROM,
        ` ELSE r.rule = 'house'
         OR (t.kind = 'charge' AND (t.amount <> coalesce(r.cost, d.cost)
           OR t.debit <> coalesce(r.account_id, d.account_id)))
         OR (t.kind = 'shortfall' AND t.amount <> coalesce(r.shortfall, d.shortfall))
         OR (t.kind = 'refund' AND (t.amount > coalesce(r.cost, d.cost)
           OR t.credit <> coalesce(r.account_id, d.account_id))) END`,
      ),
    )
    this.#suspectRedemptions = this.#idQuery(
      `SELECT t.ref AS id FROM transfer t LEFT JOIN code c ON c.id = t.ref
       WHERE t.seq > ?1 AND t.seq <= ?2 AND t.kind = 'redemption'
         AND (c.account_id IS NULL OR c.account_id <> t.credit OR c.amount <> t.amount)`,
    )
    this.#suspectRecords = this.#idQuery(
      `SELECT r.call_id AS id FROM record r
         LEFT JOIN transfer c ON c.ref = r.call_id AND c.kind = 'charge'
         LEFT JOIN transfer s ON s.ref = r.call_id AND s.kind = 'shortfall'
       WHERE r.call_id > ?1 AND r.call_id <= ?2 AND r.rule <> 'house'
         AND (r.cost <> coalesce(c.amount, 0) OR r.shortfall <> coalesce(s.amount, 0))`,
    )
    this.#suspectCodes = this.#idQuery(
      `SELECT c.id FROM code c LEFT JOIN transfer t ON t.ref = c.id AND t.kind = 'redemption'
       WHERE c.id > ?1 AND c.id <= ?2
         AND (c.redeemed_ms IS NULL) <> (t.seq IS NULL)`,
    )
    // For a deleted record, the amounts that the ledger still has.
    this.#record = db.query(
      `SELECT account_id, cost, shortfall, rule FROM record WHERE call_id = ?1 UNION ALL
       SELECT account_id, cost, shortfall, 'deleted' FROM `.concat(deleted, ' WHERE call_id = ?1'),
    )
    this.#findDeletedByAge = db.query('SELECT 1 WHERE ?1 < '.concat(RECORDS_FROM))
    this.#hold = db.query('SELECT account_id FROM hold WHERE call_id = ?1')
    this.#findTransfers = db.query('SELECT kind, debit, credit, amount FROM transfer WHERE ref = ?1')
    this.#code = db.query('SELECT amount, account_id FROM code WHERE id = ?1')
  }

  get isEmpty(): boolean {
    return this.#calls.size === 0 && this.#codes.size === 0
  }

  /** A hold that was closed since the last pass must have left a record, however late. */
  checkHolds(): void {
    const holds = this.#openHolds()
    addSuspects(
      this.#calls,
      holds.filter(({ over }) => over === 1n),
    )
    const open = new Map(holds.map(({ id, owner }) => [id, owner!]))
    for (const [id, owner] of this.#open) if (!open.has(id)) addSuspects(this.#calls, [{ id, owner }])
    this.#open = open
  }

  checkTransfers(from: bigint, to: bigint): void {
    addSuspects(this.#calls, this.#suspectTransfers(from, to))
    addSuspects(this.#codes, this.#suspectRedemptions(from, to))
  }

  checkRecords(from: bigint, to: bigint): void {
    addSuspects(this.#calls, this.#suspectRecords(from, to))
  }

  checkCodes(from: bigint, to: bigint): void {
    addSuspects(this.#codes, this.#suspectCodes(from, to))
  }

  /** Checks each suspect. Correct ones are removed from the suspects. */
  findings(): readonly AuditFinding[] {
    const findings: AuditFinding[] = []
    for (const [suspects, check] of [
      [this.#calls, this.#checkCall],
      [this.#codes, this.#checkCode],
    ] as const) {
      for (const [id, owner] of suspects) {
        const problems = check.call(this, id, owner)
        if (problems.length === 0) suspects.delete(id)
        findings.push(...problems)
      }
    }
    return findings
  }

  #checkCall(id: bigint, held: bigint | undefined): readonly AuditFinding[] {
    const record = this.#record.get(id) as RecordRow | null
    if (record === null && this.#findDeletedByAge.get(id) !== null) return []
    const hold = this.#hold.get(id) as { account_id: bigint } | null
    const transfers = this.#findTransfers.all(id) as TransferOfCall[]
    const [charge, shortfall, refund] = ['charge', 'shortfall', 'refund'].map(kind =>
      transfers.find(row => row.kind === kind),
    )
    const name = textId('req', Number(id))
    const owner = record?.account_id ?? charge?.debit ?? refund?.credit ?? hold?.account_id ?? held
    const problems: string[] = []
    if (record !== null && hold !== null) problems.push('is over and its hold is still open')
    if (record === null && charge !== undefined) problems.push(`was charged ${usd(charge.amount)} without a record`)
    else if (record === null && hold === null) problems.push('has no record')
    if (record?.rule === OLD_RULE && charge !== undefined)
      problems.push('was charged twice: before the ledger, and in it')
    if (record !== null && record.rule !== OLD_RULE) {
      const [cost, charged] = [record.cost, charge?.amount ?? 0n]
      if (cost !== charged) problems.push(`cost ${usd(cost)} by its record, and ${usd(charged)} was charged`)
      if (record.shortfall !== (shortfall?.amount ?? 0n)) problems.push('has another shortfall than was booked')
      if (charge !== undefined && charge.debit !== record.account_id) problems.push('was charged to another account')
    }
    if (refund !== undefined && refund.amount > (charge?.amount ?? 0n))
      problems.push('was refunded more than its charge')
    if (refund !== undefined && refund.credit !== charge?.debit) problems.push('was refunded to another account')
    return problems.map(text =>
      createFinding({ check: 'call', owner, key: `${name}:${text}`, text: `${name} ${text}` }),
    )
  }

  #checkCode(id: bigint): readonly AuditFinding[] {
    const code = this.#code.get(id) as CodeRow | null
    const transfer = (this.#findTransfers.all(id) as TransferOfCall[]).find(row => row.kind === 'redemption')
    const to = code?.account_id ?? null
    const fits = transfer !== undefined && code !== null && transfer.credit === to && transfer.amount === code.amount
    if (fits || (transfer === undefined && to === null)) return []
    const owner = to ?? transfer?.credit
    const text = `code ${id} was ${to === null ? 'not ' : ''}redeemed, and its transfer says otherwise`
    return [createFinding({ check: 'code', owner, key: String(id), text })]
  }

  #idQuery(sql: string): (...range: bigint[]) => SuspectRow[] {
    const query = this.#db.query<SuspectRow, bigint[]>(sql)
    return (...range) => query.all(...range)
  }
}

interface SuspectRow {
  readonly id: bigint
  readonly owner?: bigint
  readonly over?: bigint
}

function addSuspects(suspects: SuspectMap, rows: readonly SuspectRow[]): void {
  for (const { id, owner } of rows) if (suspects.size < SUSPECTS_MAX) suspects.set(id, owner)
}
