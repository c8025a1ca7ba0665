// Random batches of operations of calls, on SQLite and on PostgreSQL, with postings, budgets and crashes between them.
// Both must answer the same and hold the same. What SQLite answers is compared with the model of the ledger in
// test/store.

import { idAtMs } from '../../src/base/ids.ts'
import type { ColdName, HotName, OperationInput } from '../../src/store/engine/operations.ts'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import type { BudgetSpan } from '../../src/store/ledger/hold-types.ts'
import type { MoneyText } from '../../src/store/ledger/money-text.ts'
import { PostgresOperations } from '../../src/store/postgres/cold-operations.ts'
import { LedgerWriter } from '../../src/store/postgres/ledger.ts'
import { Membership } from '../../src/store/postgres/membership.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { recoverDeadCalls } from '../../src/store/postgres/recovery.ts'
import type { TestBooks } from '../support/books.ts'
import { bookFaults, holdOf, openTestBooks, recordOf } from '../support/books.ts'
import { randomFrom } from '../support/chance.ts'

const ACCOUNTS = [11, 12, 13, 14]
const DAY_MS = 86_400_000
const BATCH_MAX = 40
const STATE_CHECK_EVERY = 10

interface HotJob {
  readonly name: HotName
  readonly input: OperationInput<HotName>
}

/** The same state in both databases, as texts. */
const states: readonly string[] = [
  'SELECT id, kind, balance, held, credit_limit, frozen_ms FROM account WHERE id > 4 ORDER BY id',
  'SELECT call_id, kind, account_id, key_id, amount, used FROM hold ORDER BY call_id',
  'SELECT * FROM record ORDER BY call_id',
  'SELECT ref, kind, debit, credit, amount, made_ms FROM transfer ORDER BY ref, kind',
  // Versions begin with numbers of the audit log, which only one of the two has here.
  'SELECT scope_id, span, cap, ceiling, spent, held, period FROM budget ORDER BY scope_id, span',
  'SELECT key_id, name, call_id, done FROM idempotency ORDER BY key_id, name',
  'SELECT call_id, length(sealed) AS n FROM kept_answer ORDER BY call_id',
]

/** The invariants of bookFaults. Each returns no row. */
const faultQueries: readonly string[] = [
  `SELECT 1 AS off WHERE (SELECT sum(balance) FROM account) + (SELECT coalesce(sum(balance), 0) FROM operator_part) <> 0`,
  `SELECT p.account_id FROM operator_part p GROUP BY p.account_id HAVING sum(p.balance) <>
     (SELECT coalesce(sum(CASE WHEN t.credit = p.account_id THEN amount ELSE -amount END), 0) FROM transfer t
      WHERE p.account_id IN (t.credit, t.debit))`,
  `SELECT id FROM account WHERE held <> (SELECT coalesce(sum(amount), 0) FROM hold WHERE account_id = account.id)`,
  `SELECT id FROM account WHERE id > 4 AND balance <>
     (SELECT coalesce(sum(CASE WHEN t.credit = account.id THEN amount ELSE -amount END), 0) FROM transfer t
      WHERE account.id IN (t.credit, t.debit))`,
  `SELECT scope_id FROM budget b WHERE b.held <>
     (SELECT coalesce(sum(amount), 0) FROM hold WHERE key_id = b.scope_id OR account_id = b.scope_id)`,
  `SELECT call_id FROM record r WHERE cost <>
     (SELECT coalesce(sum(amount), 0) FROM transfer WHERE ref = r.call_id AND kind = 'charge')`,
  'SELECT h.call_id FROM hold h JOIN record r ON r.call_id = h.call_id',
]

/** Violations of the invariants that hold in every committed state of the ledger. */
export async function postgresFaults(pool: PostgresPool): Promise<string[]> {
  const faults: string[] = []
  for (const sql of faultQueries) {
    const rows = await pool.transact(postgresQuery(sql).all())
    if (rows.length > 0) faults.push(`${Bun.inspect(rows[0])}: ${sql}`)
  }
  return faults
}

const textOf = (rows: readonly unknown[]): string[] =>
  rows.map(row =>
    Object.entries(row as object)
      .map(pair => pair.join('='))
      .join(' '),
  )

export class LedgerRun {
  readonly counts: Record<string, number> = {}
  readonly #books: TestBooks
  readonly #pool: PostgresPool
  readonly #random: (below: number) => number
  readonly #cold: PostgresOperations
  #member!: Membership
  #writer!: LedgerWriter
  #lastCall = 0
  readonly #calls: number[] = []

  constructor(pool: PostgresPool, seed: number) {
    this.#books = openTestBooks({ sync: false })
    this.#pool = pool
    this.#random = randomFrom(seed)
    this.#cold = new PostgresOperations(pool, { slot: 1, nowMs: () => this.#books.nowMs })
  }

  async run(batches: number): Promise<void> {
    await this.#join()
    for (const id of ACCOUNTS) await this.#createAccount(id)
    for (let at = 0; at < batches; at++) {
      await this.#runBatch()
      for (let more = this.#random(3); more > 0; more--) await this.#runCold()
      if (this.#random(12) === 0) await this.#crash()
      if (this.#random(10) === 0) this.#books.nowMs += this.#random(2) === 0 ? DAY_MS : DAY_MS / 3
      if (at % STATE_CHECK_EVERY === 0 || at === batches - 1) await this.#compareStates()
    }
    this.#books.close()
  }

  async #join(): Promise<void> {
    this.#member = await Membership.join(this.#pool, { version: '1', address: 'test' })
    this.#writer = this.#writerOf(this.#member)
  }

  #writerOf(owner: Membership): LedgerWriter {
    const onFenced = (): void => this.#count('fenced')
    // On a slow machine no operation is refused because it has waited.
    return new LedgerWriter(this.#pool, { owner, onFenced, nowMs: () => this.#books.nowMs, waitedMs: () => 0 })
  }

  #count(name: string): void {
    this.counts[name] = (this.counts[name] ?? 0) + 1
  }

  #same(what: unknown, onPostgres: unknown, onSqlite: unknown): void {
    if (Bun.deepEquals(onPostgres, onSqlite)) return
    throw new Error(`${Bun.inspect(what)}: ${Bun.inspect(onPostgres)}, but on SQLite ${Bun.inspect(onSqlite)}`)
  }

  async #createAccount(id: number): Promise<void> {
    this.#books.account(id, '5000')
    const key = { id: id + 1_000, accountId: id, existing: false, digest: id.toString(16).padStart(64, '0') }
    const about = { pepper: 'aabbccdd', suffix: 'abcd', name: 'x', tier: 'pro', qpm: null }
    await this.#cold.run('createKey', { ...key, ...about, credit: '5000', creditRef: id }, { actor: 'test' })
  }

  async #runBatch(): Promise<void> {
    const used = new Set<number>()
    const jobs: HotJob[] = []
    for (let size = 1 + this.#random(BATCH_MAX); size > 0; size--) {
      const job = this.#job()
      const callId = callOf(job)
      if (!used.has(callId)) jobs.push(job)
      used.add(callId)
    }
    // The order in which PostgreSQL runs a batch; within a kind as they came.
    const isUncovered = ({ name, input }: HotJob): boolean =>
      name === 'settle' && BigInt((input as OperationInput<'settle'>).cost) > this.#heldOf(callOf({ name, input }))
    const kinds: readonly HotName[] = ['settle', 'extend', 'checkpoint', 'record', 'hold']
    const rank = (job: HotJob): number => kinds.indexOf(job.name) + (isUncovered(job) ? 0.5 : 0)
    const ranks = new Map(jobs.map(job => [job, rank(job)]))
    const ordered = jobs.toSorted((one, other) => ranks.get(one)! - ranks.get(other)!)
    const onSqlite = new Map(ordered.map(job => [job, this.#onSqlite(job)]))
    const onPostgres = await Promise.all(jobs.map(({ name, input }) => this.#writer.run(name, input)))
    jobs.forEach((job, at) => {
      const { outcome: _outcome, ...result } = onPostgres[at] as { outcome?: string; done: string }
      const shown = result.done === 'exists' ? { done: 'exists' } : result
      this.#count(`${job.name} ${result.done}`)
      this.#same(job, shown, onSqlite.get(job))
    })
  }

  #onSqlite({ name, input }: HotJob): unknown {
    return (this.#books.run[name] as (input: unknown) => unknown)(input)
  }

  #heldOf(callId: number): bigint {
    const row = this.#books.db.query('SELECT amount FROM hold WHERE call_id = ?1').get(callId)
    // Without a hold nothing is charged, whatever the call costs.
    return (row as { amount: bigint } | null)?.amount ?? 2n ** 62n
  }

  #fresh(): number {
    this.#lastCall = Math.max(this.#lastCall + 1, idAtMs(this.#books.nowMs))
    this.#calls.push(this.#lastCall)
    return this.#lastCall
  }

  /** An earlier call, often one that is not settled. */
  #earlier(): number {
    const open = this.#books.db.query('SELECT call_id FROM hold').values() as [bigint][]
    if (open.length > 0 && this.#random(4) > 0) return Number(open[this.#random(open.length)]![0])
    return this.#calls[Math.max(0, this.#calls.length - 1 - this.#random(60))] ?? this.#fresh()
  }

  #money(below: number): MoneyText {
    return `${BigInt(this.#random(below))}`
  }

  #account(): number {
    return ACCOUNTS[this.#random(ACCOUNTS.length)]!
  }

  #job(): HotJob {
    const kind = this.#random(100)
    if (kind < 42) return { name: 'hold', input: this.#hold() }
    if (kind < 75) return { name: 'settle', input: this.#settle() }
    if (kind < 86) return { name: 'extend', input: this.#extension() }
    if (kind < 96) return { name: 'checkpoint', input: this.#checkpoint() }
    const callId = this.#random(3) === 0 ? this.#recorded() : this.#fresh()
    return {
      name: 'record',
      input: { record: recordOf(callId, this.#account(), { outcome: 'refused', conversation: 'cafe' }) },
    }
  }

  /** A call that has a record, if there is one. */
  #recorded(): number {
    const row = this.#books.db.query('SELECT call_id FROM record ORDER BY call_id DESC LIMIT 1').get()
    return row === null ? this.#fresh() : Number((row as { call_id: bigint }).call_id)
  }

  #hold(): OperationInput<'hold'> {
    const random = this.#random
    const account = random(40) === 0 ? 99 : this.#account()
    const least = BigInt(random(300))
    const isShare = random(3) === 0
    const amount: MoneyText = isShare ? `${least + BigInt(random(900))}` : this.#money(400)
    return holdOf(this.#fresh(), account, amount, {
      kind: random(15) === 0 ? 'task' : 'call',
      ...(isShare && { least: `${least}` }),
      ...(random(5) === 0 && { wants: this.#money(3_000) }),
      ...(random(6) === 0 && {
        idempotency: { name: `n${random(12)}`, fingerprint: String(random(4) === 0 ? 1 : 2).repeat(64) },
      }),
    })
  }

  #settle(): OperationInput<'settle'> {
    const callId = this.#earlier()
    const hold = this.#books.db.query('SELECT account_id FROM hold WHERE call_id = ?1').get(callId)
    const account = hold === null ? this.#account() : Number((hold as { account_id: bigint }).account_id)
    const isClaimed =
      hold !== null && this.#books.db.query('SELECT 1 FROM idempotency WHERE call_id = ?1').get(callId) !== null
    const sealed = this.#random(2) === 0 ? null : Buffer.alloc(40).toString('base64')
    const idempotency = !isClaimed ? {} : { idempotency: this.#random(2) === 0 ? ('release' as const) : { sealed } }
    const tags = this.#random(4) === 0 ? '{"a":"ü\\u0000"}' : null
    const cost = this.#money(this.#random(10) === 0 ? 3_000 : 400)
    return {
      record: recordOf(callId, account, { tags, endUser: 'é 😀', conversation: `${callId}` }),
      cost,
      ...idempotency,
    }
  }

  #extension(): OperationInput<'extend'> {
    const callId = this.#earlier()
    const least = BigInt(this.#random(200))
    const known = this.#heldOf(callId)
    const held = known === 2n ** 62n ? 0n : known
    const lost = this.#random(4) === 0 ? BigInt(this.#random(Number(held) + 1)) : 0n
    const amount: MoneyText = `${least + BigInt(this.#random(400))}`
    return { callId, amount, least: `${least}`, held: `${held - lost}` }
  }

  #checkpoint(): OperationInput<'checkpoint'> {
    const usage = { inputTokens: this.#random(9), cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }
    const lines = this.#random(2) === 0 ? null : '[["input",1,"2"]]'
    const known = { ...usage, outputTokens: this.#random(9), lines, ...(this.#random(2) === 0 && { model: 'm2' }) }
    return { callId: this.#earlier(), used: this.#money(600), known }
  }

  async #runCold(): Promise<void> {
    const random = this.#random
    const account = this.#account()
    const operations: readonly [ColdName, unknown][] = [
      ['post', this.#posting(account)],
      [
        'post',
        { kind: 'refund', ref: this.#recorded(), accountId: account, amount: '5', reference: null, author: 'x' },
      ],
      [
        'setBudget',
        {
          ...{
            scopeId: account + (random(2) === 0 ? 1_000 : 0),
            span: (['total', 'day', 'month'] as BudgetSpan[])[random(3)],
          },
          cap: random(3) === 0 ? this.#money(4_000) : null,
        },
      ],
      [
        'setAccount',
        {
          ...{ id: account, kind: random(10) === 0 ? 'postpaid' : 'prepaid', frozen: random(6) === 0 },
          creditLimit: this.#money(800),
        },
      ],
    ]
    const [name, input] = operations[random(operations.length)]!
    const expected = (this.#books.run[name] as (input: unknown) => { done: string })(input)
    const found = await this.#cold.run(name, input as OperationInput<ColdName>, { actor: 'test' })
    this.#count(`${name} ${expected.done}`)
    this.#same({ name, input }, found, expected)
  }

  #posting(accountId: number): OperationInput<'post'> {
    const amount: MoneyText = `${BigInt(this.#random(3) === 0 ? -1 - this.#random(600) : 1 + this.#random(900))}`
    const kind = amount.startsWith('-') ? 'adjustment' : 'top_up'
    return { kind, ref: this.#fresh(), accountId, amount, reference: null, author: 'x' }
  }

  /** The process is fenced, and the next one ends its calls. */
  async #crash(): Promise<void> {
    const { slot, epoch } = this.#member
    this.#member = await Membership.join(this.#pool, {
      ...{ version: '1', address: 'test' },
      predecessor: { slot, epoch },
    })
    const old = this.#writer
    this.#writer = this.#writerOf(this.#member)
    const record = recordOf(this.#fresh(), 11)
    await old.run('record', { record }).then(
      () => this.#count('zombie wrote'),
      () => this.#count('zombie refused'),
    )
    const { ended: recovered } = await recoverDeadCalls(this.#pool, this.#writer)
    this.#count('crash')
    this.#same('recovered calls', recovered, this.#books.recover())
  }

  async #compareStates(): Promise<void> {
    for (const sql of states) {
      const onPostgres = textOf(await this.#pool.transact(postgresQuery(sql).all()))
      this.#same(sql, onPostgres, textOf(this.#books.db.query(sql).all()))
    }
    const parts = postgresQuery<{ sum: bigint }>(
      `SELECT CAST(coalesce((SELECT sum(balance) FROM operator_part p WHERE p.account_id = a.id), 0) AS BIGINT) AS sum
       FROM account a WHERE a.id <= 4 ORDER BY a.id`,
    )
    const sums = (await this.#pool.transact(parts.all())).map(({ sum }) => sum)
    const balances = this.#books.db.query('SELECT balance FROM account WHERE id <= 4 ORDER BY id').values().flat()
    this.#same('operator balances', sums, balances as bigint[])
    this.#same('faults', [await postgresFaults(this.#pool), bookFaults(this.#books.db)], [[], []])
  }
}

function callOf({ input }: HotJob): number {
  return 'record' in input ? input.record.callId : input.callId
}
