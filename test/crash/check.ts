// Compares the event log with the database since the last check, and counts which phase of calls each kill hit.

import type { Books, Position, RecordRow, Transfer } from './books.ts'
import { followEventLog } from './event-log.ts'
import type { ObservedCall } from './history.ts'
import { History } from './history.ts'
import type { Case } from './laws.ts'
import { CRASHED, judgeBooks, judgeCall } from './laws.ts'
import { parseTextId } from './request-id.ts'

/** The phase of an active call when its gateway was killed. */
export const phases = ['reserve', 'dispatch', 'relay', 'settle', 'terminal'] as const
export type Phase = (typeof phases)[number]

export interface Verdict {
  readonly violations: readonly string[]
  readonly calls: number
  /** How many kills found at least one call in this phase, and how many calls in all. */
  readonly kills: Readonly<Record<Phase, number>>
  readonly cut: Readonly<Record<Phase, number>>
  readonly outcomes: Readonly<Record<string, number>>
  /** Calls that a crash cut off after a checkpoint, and that were charged for it. */
  readonly checkpointed: number
}

export interface CheckOptions {
  /** Reads one state of the database. */
  read(after: Position): Books | Promise<Books>
  readonly log: string
  readonly checkpointMs: number
}

const zero = (): Record<Phase, number> => ({ reserve: 0, dispatch: 0, relay: 0, settle: 0, terminal: 0 })

export class Checker {
  readonly #options: CheckOptions
  readonly #readOn: ReturnType<typeof followEventLog>
  readonly #history = new History()
  readonly #kills = zero()
  readonly #cut = zero()
  readonly #outcomes: Record<string, number> = {}
  /** What calls with an idempotency key were charged so far, by tag. */
  readonly #chargedBefore = new Map<string, bigint>()
  readonly #payments = new Set<string>()
  readonly #accountOfKey = new Map<number, number>()
  #calls = 0
  #checkpointed = 0
  #after = { call: 0, seq: 0 }
  #recordsInAll = 0
  #transfersInAll = 0

  constructor(options: CheckOptions) {
    this.#options = options
    this.#readOn = followEventLog(options.log)
  }

  /** Takes what is in the ledger now as given. */
  async begin(): Promise<void> {
    const { records, lastSeq, recordsInAll, transfersInAll } = await this.#options.read(this.#after)
    this.#after = { call: records.at(-1)?.callId ?? 0, seq: lastSeq }
    this.#recordsInAll = recordsInAll
    this.#transfersInAll = transfersInAll
  }

  /** Checks everything since the last check. The gateway must have recovered, and no call may be active. */
  async look(): Promise<Verdict> {
    for (const event of this.#readOn()) this.#history.take(event)
    const books = await this.#options.read(this.#after)
    const violations = [...this.#history.faults, ...judgeBooks(books), ...this.#judgeGrowth(books)]
    violations.push(...this.#judgePayments(books))
    const cases = this.#casesOf(books)
    for (const found of cases) violations.push(...judgeCall(found))
    violations.push(...judgeNames(cases), ...this.#judgePayers(cases, books))
    this.#count(cases)
    this.#history.forget()
    this.#after = {
      call: books.records.at(-1)?.callId ?? this.#after.call,
      seq: books.lastSeq,
    }
    const counts = { calls: this.#calls, checkpointed: this.#checkpointed, outcomes: { ...this.#outcomes } }
    return { violations, kills: { ...this.#kills }, cut: { ...this.#cut }, ...counts }
  }

  /** Records and transfers that were once on the disk must still be there. */
  #judgeGrowth(books: Books): string[] {
    const violations: string[] = []
    if (books.recordsInAll !== this.#recordsInAll + books.records.length) {
      violations.push(
        `G16: ${this.#recordsInAll} records and ${books.records.length} new ones are ${books.recordsInAll}`,
      )
    }
    if (books.transfersInAll < this.#transfersInAll) violations.push('G3: there are fewer transfers than there were')
    this.#recordsInAll = books.recordsInAll
    this.#transfersInAll = books.transfersInAll
    return violations
  }

  #judgePayments({ payments }: Books): string[] {
    const twice: string[] = []
    for (const reference of payments) {
      if (this.#payments.has(reference)) twice.push(reference)
      this.#payments.add(reference)
    }
    const lost = this.#history.booked.filter(reference => !this.#payments.has(reference))
    return [
      ...twice.map(reference => `G3: ${reference} was booked twice`),
      ...lost.map(reference => `G3: ${reference} was acknowledged and is not in the ledger`),
    ]
  }

  /** Every call must be charged to the account of its key, and to no other. */
  #judgePayers(cases: readonly Case[], { transfers, records: all }: Books): string[] {
    const violations: string[] = []
    // Calls without a tag are not those of the callers that are checked.
    const others = new Set(all.filter(({ tag }) => !tag).map(({ callId }) => callId))
    const accounts = new Map<number, number>()
    for (const { call, records } of cases) {
      for (const { callId, accountId } of records) {
        accounts.set(callId, accountId)
        const known = this.#accountOfKey.get(call.key)
        if (known === undefined) this.#accountOfKey.set(call.key, accountId)
        else if (known !== accountId)
          violations.push(`G3: ${call.tag} is recorded for ${accountId}, its key is of ${known}`)
      }
    }
    for (const { kind, call, debit } of transfers) {
      const payer = accounts.get(call)
      if (kind === 'charge' && payer !== debit && !others.has(call))
        violations.push(`G3: call ${call} of ${payer} was charged to ${debit}`)
    }
    return violations
  }

  #casesOf(books: Books): Case[] {
    const records = Map.groupBy(books.records, record => record.tag)
    const transfers = Map.groupBy(books.transfers, transfer => transfer.call)
    return [...this.#history.calls.values()].map(call => {
      const ownRecords = records.get(call.tag) ?? []
      const ownTransfers = ownRecords.flatMap(record => transfers.get(record.callId) ?? [])
      const [charged, shortfall] = [sumOf(ownTransfers, 'charge'), sumOf(ownTransfers, 'shortfall')]
      const refunded = sumOf(ownTransfers, 'refund')
      const chargedBefore = this.#chargedBefore.get(call.tag) ?? 0n
      if (call.named) this.#chargedBefore.set(call.tag, chargedBefore + charged - refunded)
      const { checkpointMs } = this.#options
      return { call, records: ownRecords, charged, refunded, shortfall, chargedBefore, checkpointMs }
    })
  }

  #count(cases: readonly Case[]): void {
    const hit = new Set<string>()
    for (const { call, records, charged } of cases) {
      this.#calls++
      if (records[0]?.outcome === CRASHED && charged > 0n) this.#checkpointed++
      const outcome = records[0]?.outcome ?? 'unknown to the gateway'
      this.#outcomes[outcome] = (this.#outcomes[outcome] ?? 0) + 1
      const phase = phaseOf(call, records[0])
      if (phase === undefined) continue
      this.#cut[phase]++
      hit.add(`${call.kill} ${phase}`)
    }
    for (const phase of phases) this.#kills[phase] += [...hit].filter(name => name.endsWith(phase)).length
  }
}

const sumOf = (transfers: readonly Transfer[], kind: string): bigint =>
  transfers.reduce((sum, transfer) => (transfer.kind === kind ? sum + transfer.amount : sum), 0n)

function phaseOf(call: ObservedCall, record: RecordRow | undefined): Phase | undefined {
  if (call.kill === undefined) return undefined
  if (record === undefined) return call.upstreamRequests === 0 ? 'reserve' : 'dispatch'
  if (record.outcome !== CRASHED) return call.ended === 'broken' ? 'terminal' : undefined
  if (call.upstreamRequests === 0) return 'dispatch'
  return call.usage === undefined ? 'relay' : 'settle'
}

/** The request id that a caller read must be the id of its record. */
function judgeNames(cases: readonly Case[]): string[] {
  return cases.flatMap(({ call, records }) => {
    const [record] = records
    if (record === undefined || call.request === undefined || call.named) return []
    const callId = parseTextId(call.request)
    return callId === record.callId ? [] : [`G16: ${call.tag} was told ${call.request}, its record is ${record.callId}`]
  })
}
