// The part of an audit that looks at single calls and codes. Wide queries name those that may be wrong; one look at
// each says what is. A suspect is looked at again in every pass, until it is well.

import type { Database } from 'bun:sqlite'
import { textId } from '../../base/ids.ts'
import { formatUsd, nanos } from '../../base/money/money.ts'
import type { Finding } from './findings.ts'
import { finding } from './findings.ts'

interface Moved {
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

/** Beyond this, something is so wrong that naming each helps nobody. */
const SUSPECTS_MAX = 10_000

type Suspects = Map<bigint, bigint | undefined>

const usd = (amount: bigint): string => `$${formatUsd(nanos(amount))}`

/** Records of calls before this one are no longer kept. */
const RECORDS_FROM = "coalesce((SELECT CAST(value AS INTEGER) FROM setting WHERE name = 'records_from'), 0)"

/** A backup that is older than the deleting of records has no such table, and none that was deleted. */
function deletedTable(db: Database): string {
  const isThere = db.query("SELECT 1 FROM sqlite_schema WHERE name = 'deleted_record'").get() !== null
  const none = '(SELECT NULL AS call_id, NULL AS account_id, NULL AS cost, NULL AS shortfall WHERE false)'
  return isThere ? 'deleted_record' : none
}

/** From before the ledger: its money is in the opening transfers. */
const OLD_RULE = 'house'

export class AuditSuspects {
  readonly #db: Database
  readonly #openHolds
  readonly #ofTransfers
  readonly #ofRedemptions
  readonly #ofRecords
  readonly #ofCodes
  readonly #record
  readonly #isPast
  readonly #hold
  readonly #moved
  readonly #code
  /** Each with its account, where a hold that is gone has told it. */
  readonly #calls: Suspects = new Map()
  readonly #codes: Suspects = new Map()
  /** Calls that held when this was last looked at, and their accounts. */
  #open: ReadonlyMap<bigint, bigint> = new Map()

  constructor(db: Database) {
    this.#db = db
    const deleted = deletedTable(db)
    this.#openHolds = this.#ids(
      `SELECT h.call_id AS id, h.account_id AS owner, r.call_id IS NOT NULL AS over
       FROM hold h LEFT JOIN record r ON r.call_id = h.call_id`,
    )
    this.#ofTransfers = this.#ids(
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
    this.#ofRedemptions = this.#ids(
      `SELECT t.ref AS id FROM transfer t LEFT JOIN code c ON c.id = t.ref
       WHERE t.seq > ?1 AND t.seq <= ?2 AND t.kind = 'redemption'
         AND (c.account_id IS NULL OR c.account_id <> t.credit OR c.amount <> t.amount)`,
    )
    this.#ofRecords = this.#ids(
      `SELECT r.call_id AS id FROM record r
         LEFT JOIN transfer c ON c.ref = r.call_id AND c.kind = 'charge'
         LEFT JOIN transfer s ON s.ref = r.call_id AND s.kind = 'shortfall'
       WHERE r.call_id > ?1 AND r.call_id <= ?2 AND r.rule <> 'house'
         AND (r.cost <> coalesce(c.amount, 0) OR r.shortfall <> coalesce(s.amount, 0))`,
    )
    this.#ofCodes = this.#ids(
      `SELECT c.id FROM code c LEFT JOIN transfer t ON t.ref = c.id AND t.kind = 'redemption'
       WHERE c.id > ?1 AND c.id <= ?2
         AND (c.redeemed_ms IS NULL) <> (t.seq IS NULL)`,
    )
    // Of a record that was deleted, what the books must still know of it.
    this.#record = db.query(
      `SELECT account_id, cost, shortfall, rule FROM record WHERE call_id = ?1 UNION ALL
       SELECT account_id, cost, shortfall, 'deleted' FROM `.concat(deleted, ' WHERE call_id = ?1'),
    )
    this.#isPast = db.query('SELECT 1 WHERE ?1 < '.concat(RECORDS_FROM))
    this.#hold = db.query('SELECT account_id FROM hold WHERE call_id = ?1')
    this.#moved = db.query('SELECT kind, debit, credit, amount FROM transfer WHERE ref = ?1')
    this.#code = db.query('SELECT amount, account_id FROM code WHERE id = ?1')
  }

  get none(): boolean {
    return this.#calls.size === 0 && this.#codes.size === 0
  }

  /** What has been closed since the last look must have left its record, however late that came. */
  lookAtHolds(): void {
    const holds = this.#openHolds()
    suspect(
      this.#calls,
      holds.filter(({ over }) => over === 1n),
    )
    const open = new Map(holds.map(({ id, owner }) => [id, owner!]))
    for (const [id, owner] of this.#open) if (!open.has(id)) suspect(this.#calls, [{ id, owner }])
    this.#open = open
  }

  lookAtTransfers(from: bigint, to: bigint): void {
    suspect(this.#calls, this.#ofTransfers(from, to))
    suspect(this.#codes, this.#ofRedemptions(from, to))
  }

  lookAtRecords(from: bigint, to: bigint): void {
    suspect(this.#calls, this.#ofRecords(from, to))
  }

  lookAtCodes(from: bigint, to: bigint): void {
    suspect(this.#codes, this.#ofCodes(from, to))
  }

  /** Looks at each; those that are well are suspects no more. */
  findings(): readonly Finding[] {
    const found: Finding[] = []
    for (const [suspects, look] of [
      [this.#calls, this.#lookAtCall],
      [this.#codes, this.#lookAtCode],
    ] as const) {
      for (const [id, owner] of suspects) {
        const wrong = look.call(this, id, owner)
        if (wrong.length === 0) suspects.delete(id)
        found.push(...wrong)
      }
    }
    return found
  }

  #lookAtCall(id: bigint, held: bigint | undefined): readonly Finding[] {
    const record = this.#record.get(id) as RecordRow | null
    if (record === null && this.#isPast.get(id) !== null) return []
    const hold = this.#hold.get(id) as { account_id: bigint } | null
    const moved = this.#moved.all(id) as Moved[]
    const [charge, shortfall, refund] = ['charge', 'shortfall', 'refund'].map(kind =>
      moved.find(row => row.kind === kind),
    )
    const name = textId('req', Number(id))
    const owner = record?.account_id ?? charge?.debit ?? refund?.credit ?? hold?.account_id ?? held
    const wrong: string[] = []
    if (record !== null && hold !== null) wrong.push('is over and its hold is still open')
    if (record === null && charge !== undefined) wrong.push(`was charged ${usd(charge.amount)} without a record`)
    else if (record === null && hold === null) wrong.push('has no record')
    if (record?.rule === OLD_RULE && charge !== undefined) wrong.push('was charged twice: before the ledger, and in it')
    if (record !== null && record.rule !== OLD_RULE) {
      const [cost, charged] = [record.cost, charge?.amount ?? 0n]
      if (cost !== charged) wrong.push(`cost ${usd(cost)} by its record, and ${usd(charged)} was charged`)
      if (record.shortfall !== (shortfall?.amount ?? 0n)) wrong.push('has another shortfall than was booked')
      if (charge !== undefined && charge.debit !== record.account_id) wrong.push('was charged to another account')
    }
    if (refund !== undefined && refund.amount > (charge?.amount ?? 0n)) wrong.push('was refunded more than its charge')
    if (refund !== undefined && refund.credit !== charge?.debit) wrong.push('was refunded to another account')
    return wrong.map(text => finding({ check: 'call', owner, key: `${name}:${text}`, text: `${name} ${text}` }))
  }

  #lookAtCode(id: bigint): readonly Finding[] {
    const code = this.#code.get(id) as CodeRow | null
    const transfer = (this.#moved.all(id) as Moved[]).find(row => row.kind === 'redemption')
    const to = code?.account_id ?? null
    const fits = transfer !== undefined && code !== null && transfer.credit === to && transfer.amount === code.amount
    if (fits || (transfer === undefined && to === null)) return []
    const owner = to ?? transfer?.credit
    const text = `code ${id} was ${to === null ? 'not ' : ''}redeemed, and its transfer says otherwise`
    return [finding({ check: 'code', owner, key: String(id), text })]
  }

  #ids(sql: string): (...range: bigint[]) => Named[] {
    const query = this.#db.query<Named, bigint[]>(sql)
    return (...range) => query.all(...range)
  }
}

interface Named {
  readonly id: bigint
  readonly owner?: bigint
  readonly over?: bigint
}

function suspect(suspects: Suspects, rows: readonly Named[]): void {
  for (const { id, owner } of rows) if (suspects.size < SUSPECTS_MAX) suspects.set(id, owner)
}
