// Statistics the slow way: every record is read and added to everything that it belongs to. The roller must write the
// same, whatever has happened meanwhile.

import type { Database } from 'bun:sqlite'
import { addEncodedHistogram, stepOf } from '../../src/base/collections/latency-histogram.ts'
import { msOfId } from '../../src/base/ids.ts'

export type Table = ReadonlyMap<string, readonly string[]>

type Raw = Record<string, bigint | string | null>

const DAY_MS = 86_400_000
const spans = [
  ['minute', (ms: number) => Math.floor(ms / 60_000), 60_000],
  ['hour', (ms: number) => Math.floor(ms / 3_600_000), 3_600_000],
  ['day', (ms: number) => Math.floor(ms / DAY_MS), DAY_MS],
  ['month', (ms: number) => new Date(ms).getUTCFullYear() * 12 - 1970 * 12 + new Date(ms).getUTCMonth(), 31 * DAY_MS],
] as const

/** In days; for one subject, and for two together. */
const daysKept: Readonly<Record<string, readonly number[]>> = {
  minute: [2, 0],
  hour: [92, 8],
  day: [1e9, 400],
  month: [1e9, 1e9],
}

const cutsOf = (row: Raw): readonly (readonly [string, unknown, unknown])[] => {
  const model = row.model === null ? '' : `${row.provider}/${row.model}`
  const channel = row.channel ?? ''
  return [
    ['all', 0, 0],
    ['account', row.account_id, 0],
    ['key', row.key_id, 0],
    ['model', model, 0],
    ['channel', channel, 0],
    ['modelChannel', model, channel],
    ['keyModel', row.key_id, model],
  ]
}

interface Sum {
  readonly values: bigint[]
  readonly first: Map<number, number>
  readonly took: Map<number, number>
}

/** The printed values of a row, in the order of the file's columns. */
const printed = ({ values, first, took }: Sum): readonly string[] => [
  ...values.map(String),
  ...[first, took].map(steps => [...steps].sort((one, other) => one[0] - other[0]).join(' ')),
]

const isRow = (span: string, pair: boolean, { ms, nowMs }: { ms: number; nowMs: number }): boolean => {
  const days = daysKept[span]![pair ? 1 : 0]!
  const [, at, length] = spans.find(([name]) => name === span)!
  if (days === 0) return false
  const end = span === 'month' ? Date.UTC(1970, at(ms) + 1, 1) : (at(ms) + 1) * length
  return end > nowMs - days * DAY_MS
}

/** The provider's price per million, and the price of uncached input; in nano-USD. */
export interface Rate {
  readonly provider: Readonly<Record<string, bigint>>
  readonly plain: bigint
}

export function recount(db: Database, nowMs: number, rates: ReadonlyMap<string, Rate>): Table {
  const table = new Map<string, Sum>()
  const posted = db.query("SELECT ref, amount FROM transfer WHERE kind = 'refund'").all() as Raw[]
  const refunds = new Map(posted.map(row => [row.ref, row.amount]))
  for (const row of db.query('SELECT * FROM record').all() as Raw[]) {
    const ms = msOfId(Number(row.call_id))
    const values = valuesOf(row, (refunds.get(row.call_id!) as bigint | undefined) ?? 0n, rates)
    for (const [cut, one, other] of cutsOf(row)) {
      for (const [span, at] of spans) {
        const pair = cut === 'modelChannel' || cut === 'keyModel'
        if (!isRow(span, pair, { ms, nowMs })) continue
        const name = [cut, span, one, other, at(ms)].join('|')
        const sum = table.get(name) ?? { values: values.map(() => 0n), first: new Map(), took: new Map() }
        values.forEach((value, index) => (sum.values[index]! += value))
        if (row.first_ms !== null) bump(sum.first, stepOf(Number(row.first_ms)))
        if (row.outcome === 'completed') bump(sum.took, stepOf(Number(row.duration_ms)))
        table.set(name, sum)
      }
    }
  }
  return new Map([...table].sort().map(([name, sum]) => [name, printed(sum)]))
}

const bump = (steps: Map<number, number>, step: number): void => void steps.set(step, (steps.get(step) ?? 0) + 1)

function valuesOf(row: Raw, refunded: bigint, rates: ReadonlyMap<string, Rate>): bigint[] {
  const failed = !['completed', 'replayed', 'client_left', 'task_succeeded'].includes(row.outcome as string)
  const { provider, savings } = moneyOf(row, rates)
  return [
    1n,
    failed ? 1n : 0n,
    ...['streamed', 'input_tokens', 'cache_read_tokens', 'cache_write_tokens', 'output_tokens', 'reasoning_tokens'].map(
      name => row[name] as bigint,
    ),
    ...[row.cost as bigint, row.shortfall as bigint, refunded, provider, savings],
  ]
}

function moneyOf(row: Raw, rates: ReadonlyMap<string, Rate>): { provider: bigint; savings: bigint } {
  const rate = rates.get(`${row.provider}/${row.model}`)
  if (row.lines === null || rate === undefined) return { provider: 0n, savings: 0n }
  const lines = JSON.parse(row.lines as string) as [string, number, string][]
  let [provider, listed, savings] = [0n, 0n, 0n]
  for (const [what, count, text] of lines) {
    const ownRate = BigInt(Math.round(Number(text) * 1e9))
    listed += BigInt(count) * ownRate
    provider += BigInt(count) * (rate.provider[what] ?? 0n)
    if (what.startsWith('cache')) savings += BigInt(count) * (rate.plain - ownRate)
  }
  const roundUp = (amount: bigint): bigint => (amount + 999_999n) / 1_000_000n
  const billed = (row.cost as bigint) + (row.shortfall as bigint)
  return {
    provider: roundUp(provider),
    savings: listed === 0n ? 0n : ((savings / 1_000_000n) * billed) / roundUp(listed),
  }
}

const cutNames = 'all account key model channel modelChannel keyModel'.split(' ')

/** The same from the statistics file. */
export function written(db: Database): Table {
  const names = new Map((db.query('SELECT id, text FROM name').all() as Raw[]).map(row => [row.id, row.text]))
  const table = new Map<string, readonly string[]>()
  for (const row of db.query('SELECT * FROM figure').values() as (bigint | Uint8Array)[][]) {
    const [cut, span, one, other, at, ...values] = row
    const cutName = cutNames[Number(cut)]!
    const isName = { one: /^model|^channel/.test(cutName), other: /Model$|Channel$/.test(cutName) }
    const subjects = [isName.one ? names.get(one as bigint) : one, isName.other ? names.get(other as bigint) : other]
    const steps = values.splice(-2).map(bytes => {
      const histogram = new Map<number, number>()
      addEncodedHistogram(histogram, bytes as Uint8Array)
      return histogram
    })
    const sum = { values: values as bigint[], first: steps[0]!, took: steps[1]! }
    table.set([cutName, spans[Number(span)]![0], ...subjects, at].join('|'), printed(sum))
  }
  return new Map([...table].sort())
}
