// The rules for every call and every account, whatever was killed and when. Each rule describes its violations in words.
// Prices are repeated here, so that a mistake in the arithmetic of the gateway is not shared.

import type { AccountRow, Books, BudgetRow, RecordRow } from './books.ts'
import type { ObservedCall } from './history.ts'
import type { Counts } from './plan.ts'

/** Nano-USD a token of gpt-4o-mini: 0.15, 0.075 and 0.60 USD a million. */
const INPUT = 150n
const CACHED = 75n
const OUTPUT = 600n

/** Operator accounts may stand below zero: they are the other side of every customer's balance. */
const OPERATOR = 'operator'
const REVENUE = 1
const SHORTFALL = 3

const HIT =
  /The database of the gateway does not answer at the moment|The gateway could not write this call to its ledger|The gateway is shutting down/

export const costOf = ({ input, cached, output }: Counts): bigint =>
  BigInt(input - cached) * INPUT + BigInt(cached) * CACHED + BigInt(output) * OUTPUT

const inWords = ({ input, cached, output }: Counts): string => `${input} in (${cached} cached), ${output} out`

/** Without reported usage, four bytes of text count as a token; no more than that may be charged. */
const tokensIn = (bytes: number): bigint => BigInt(Math.ceil(bytes / 4))
const maxChargeFor = (call: ObservedCall): bigint => tokensIn(call.bytes) * INPUT + tokensIn(call.chars) * OUTPUT

/** A call and its rows in the ledger. */
export interface Case {
  readonly call: ObservedCall
  readonly records: readonly RecordRow[]
  readonly charged: bigint
  /** What was given back, because the caller got an error after all. */
  readonly refunded: bigint
  readonly shortfall: bigint
  /** What earlier tries under the same idempotency key were charged. */
  readonly chargedBefore: bigint
  /** The age of a stream at its first checkpoint; before it, a crash costs the caller nothing. */
  readonly checkpointMs: number
}

type Rule = (item: Case) => string | undefined

export const CRASHED = 'gateway_crash'
const REPLAYED = 'replayed'
const OUT_OF_FUNDS = 'out_of_funds'
const crashed = ({ records }: Case): boolean => records[0]?.outcome === CRASHED

/** An answer that ended because the funds were used up costs what its caller got, and nobody else anything. */
function cutCharge(call: ObservedCall, charged: bigint, shortfall: bigint): string | undefined {
  if (charged > 0n && charged <= maxChargeFor(call) && shortfall === 0n) return undefined
  return `ended for want of money, charged ${charged} of at most ${maxChargeFor(call)}, shortfall ${shortfall}`
}

const callLaws: Readonly<Record<string, Rule>> = {
  'G1, G16: what reached the upstream was held or recorded first': ({ call, records }) =>
    call.upstreamRequests > 0 && records.length === 0 ? 'has neither hold nor record' : undefined,

  'G16: a call has one record': ({ records }) => (records.length > 1 ? `has ${records.length} records` : undefined),

  'G3: a whole answer was charged for exactly its usage': ({ call, records, charged, shortfall }) => {
    if (call.ended !== 'whole' || records[0]?.outcome === REPLAYED) return undefined
    if (records[0]?.outcome === OUT_OF_FUNDS) return cutCharge(call, charged, shortfall)
    if (call.usage === undefined) return 'got an answer that the upstream did not give'
    const cost = costOf(call.usage)
    if (records[0]?.outcome !== 'completed') return `is whole and recorded as ${records[0]?.outcome ?? 'nothing'}`
    return charged + shortfall === cost ? undefined : `cost ${cost}, charged ${charged}, shortfall ${shortfall}`
  },

  'G3: a settled answer is charged as it was reported, delivered or not': item => {
    const { call, records, charged, shortfall } = item
    const [record] = records
    const isOver = record?.outcome === 'completed' || record?.outcome === 'client_left'
    if (!isOver || record.source !== 'reported' || call.usage === undefined) return undefined
    const cost = costOf(call.usage)
    return charged + shortfall === cost ? undefined : `cost ${cost}, charged ${charged}, shortfall ${shortfall}`
  },

  'G1: the hold covered what a call within its cap cost': ({ call, records }) => {
    const [record] = records
    if (record?.outcome !== 'completed' || call.usage === undefined) return undefined
    if (call.usage.output > call.outputMax) return undefined
    const cost = costOf(call.usage)
    return record.held >= cost && record.shortfall === 0n ? undefined : `cost ${cost}, ${record.held} was held`
  },

  'G3: the record tells the usage as it was reported': ({ call, records }) => {
    const [record] = records
    if (record?.source !== 'reported' || call.usage === undefined) return undefined
    const [used, recorded] = [inWords(call.usage), inWords(record)]
    return used === recorded ? undefined : `used ${used}, recorded ${recorded}`
  },

  'G3: the record tells what was charged': ({ records, charged, shortfall }) => {
    const [record] = records
    if (record === undefined) return charged === 0n ? undefined : 'was charged and has no record'
    return record.cost === charged && record.shortfall === shortfall
      ? undefined
      : `record ${record.cost} and ${record.shortfall}, ledger ${charged} and ${shortfall}`
  },

  'G4: a crash costs no more than what was delivered at the last checkpoint': item => {
    const { call, charged } = item
    if (!crashed(item)) return undefined
    const livedMs = (call.killedMs ?? call.sentMs) - call.sentMs
    const most = call.stream && livedMs >= item.checkpointMs ? maxChargeFor(call) : 0n
    return charged <= most ? undefined : `was cut after ${livedMs} ms and charged ${charged}, at most ${most}`
  },

  'G4: only a crash is recorded as one': item =>
    crashed(item) && item.call.kill === undefined ? 'was recorded as crashed, and nobody killed it' : undefined,

  'G5: a caller that leaves pays for what it got': ({ call, records, charged }) => {
    const [record] = records
    if (record?.outcome !== 'client_left') return undefined
    // The request may have been on its way to an upstream that never read it.
    if (call.upstreamRequests === 0 && charged === 0n) return undefined
    if (call.refused || record.source === 'reported') return undefined
    if (charged === 0n) return 'left after its request went upstream, and was charged nothing'
    return charged <= maxChargeFor(call) ? undefined : `left and was charged ${charged}, at most ${maxChargeFor(call)}`
  },

  'G8: an idempotency key is charged once': ({ records, charged, refunded, chargedBefore }) => {
    if (chargedBefore > 0n && charged > refunded)
      return `was charged ${chargedBefore}, and ${charged} when it was sent again`
    if (records[0]?.outcome !== REPLAYED) return undefined
    return charged === 0n && chargedBefore > 0n ? undefined : `was replayed, charged ${chargedBefore} and ${charged}`
  },

  'G6: a refused call is free': ({ call, charged, refunded }) =>
    call.ended === 'refused' && charged > refunded
      ? `was refused with ${call.status} and charged ${charged}`
      : undefined,

  'G2: whoever cannot pay is not served': ({ call }) =>
    call.status === 402 && call.upstreamRequests > 0 ? 'was refused for its balance and sent all the same' : undefined,

  'the gateway does not fail by itself': ({ call, chargedBefore }) => {
    // A gateway on a slow machine may be overloaded, or its ledger may take too long, which is no fault.
    const isBusy = /"code":"(overloaded|storage_away|settle_failed)"/.test(call.said ?? '')
    // It was sent again, and was charged before, when its answer was too late to be stored.
    const isOver = chargedBefore > 0n && call.said?.includes('"code":"idempotency_not_kept"')
    const isMeant = call.status === 402 || isOver || (call.refused && (call.status === 502 || call.status === 503))
    // Of several gateways, the others go on: only what the fault has hit is told of it.
    const isHit = call.kill !== undefined && HIT.test(call.said ?? '')
    const fault = !isBusy && (call.ended === 'error_event' || (call.ended === 'refused' && !isMeant))
    return fault && !isHit ? `was told ${call.status}: ${call.said ?? ''}` : undefined
  },

  'only a kill breaks an answer': ({ call }) =>
    call.ended === 'broken' && call.kill === undefined ? 'broke off, and nobody was killed' : undefined,
}

export function judgeCall(item: Case): string[] {
  return Object.entries(callLaws).flatMap(([name, law]) => {
    const violation = law(item)
    return violation === undefined ? [] : [`${name}: ${item.call.tag} ${violation}`]
  })
}

function judgeAccount(account: AccountRow): string[] {
  const violations: string[] = []
  const { id, balance, held, creditLimit } = account
  if (balance !== account.entries)
    violations.push(`G3: account ${id} has ${balance}, its entries sum to ${account.entries}`)
  if (held !== account.open)
    violations.push(`G3: account ${id} has ${held} held, its open holds sum to ${account.open}`)
  if (account.kind === 'prepaid' && balance + creditLimit - held < 0n) {
    violations.push(`G2: account ${id} stands at ${balance} with ${held} held and a limit of ${creditLimit}`)
  }
  if (account.kind !== OPERATOR && account.frozen) violations.push(`account ${id} was frozen by the auditor`)
  return violations
}

function judgeBudget({ scope, span, ceiling, spent, held, open, charged }: BudgetRow): string[] {
  const violations: string[] = []
  const name = `the ${span} budget of ${scope}`
  if (spent + held > ceiling) violations.push(`G2: ${name} has ${spent} spent and ${held} held of ${ceiling}`)
  if (held !== open) violations.push(`G3: ${name} has ${held} held, its open holds sum to ${open}`)
  if (span === 'total' && spent !== charged)
    violations.push(`G3: ${name} has ${spent} spent, its charges sum to ${charged}`)
  return violations
}

/** Checks the ledger of a gateway that has recovered and has no active call. */
export function judgeBooks(books: Books): string[] {
  const violations = [...books.accounts.flatMap(judgeAccount), ...books.budgets.flatMap(judgeBudget)]
  const sum = books.accounts.reduce((total, { balance }) => total + balance, 0n)
  if (sum !== 0n) violations.push(`G3: all balances together are ${sum}, not nothing`)
  if (books.openCalls > 0) violations.push(`G4: ${books.openCalls} holds of calls are open after recovery`)
  for (const call of books.chargedTwice) violations.push(`G3: call ${call} was charged more than once`)
  for (const call of books.chargedAlone) violations.push(`G16: call ${call} was charged and has no record`)
  for (const { seq, kind, debit, credit } of books.transfers) {
    const right = credit === REVENUE && (kind === 'shortfall' ? debit === SHORTFALL : debit > SHORTFALL)
    const isBack = kind === 'refund' && debit === REVENUE && credit > SHORTFALL
    if (!right && !isBack) violations.push(`G3: transfer ${seq} of kind ${kind} goes from ${debit} to ${credit}`)
  }
  return violations
}
