// The sums are those of the records, whatever was written in which order, wherever the roller was stopped, and however
// the statistics file was created.

import type { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { idAtMs } from '../../src/base/ids.ts'
import { migrate, openWriter } from '../../src/store/engine/database.ts'
import type { OperationRunner } from '../../src/store/engine/operation-runner.ts'
import { buildOperations } from '../../src/store/engine/operation-runner.ts'
import { openBooks } from '../../src/store/ledger/books.ts'
import type { RecordRow } from '../../src/store/ledger/hold-types.ts'
import { StatisticsAggregator } from '../../src/store/statistics/aggregator.ts'
import { openDatabase } from '../support/database.ts'
import type { Rate } from './recount.ts'
import { recount, written } from './recount.ts'

const NOW_MS = Date.UTC(2026, 10, 15, 12, 30)
const DAY_MS = 86_400_000

const shipped = '{"input":"2","output":"8","cacheRead":"0.5","cacheWrite":"2.5"}'
const dearer = '{"input":"3","output":"10","cacheRead":"1","cacheWrite":"4"}'
const perMillion = (usd: number): bigint => BigInt(usd * 1e9)
const shippedRates = {
  input: perMillion(2),
  output: perMillion(8),
  cacheRead: perMillion(0.5),
  cacheWrite: perMillion(2.5),
}
const rates: ReadonlyMap<string, Rate> = new Map([
  ['p/plain', { provider: shippedRates, plain: perMillion(2) }],
  ['p/own', { provider: shippedRates, plain: perMillion(3) }],
])
const lineRates = {
  plain: { input: '2.00', output: '8.00', cacheRead: '0.50', cacheWrite: '2.50' },
  own: { input: '3.00', output: '10.00', cacheRead: '1.00', cacheWrite: '4.00' },
} as const

interface LedgerFolder {
  readonly folder: string
  readonly db: Database
  run<T>(work: (run: OperationRunner['run']) => T): T
}

const owners = [11, 12, 13].map(number => ({ accountId: 1_000 + number, keyId: 2_000 + number }))

function openLedgerFolder(): LedgerFolder {
  const folder = mkdtempSync(join(tmpdir(), 'weir-rolling-'))
  const db = openWriter(join(folder, 'weir.db'))
  migrate(db)
  db.run('PRAGMA synchronous = OFF')
  const operating = buildOperations(openBooks(db, () => NOW_MS))
  const run: LedgerFolder['run'] = work =>
    db
      .transaction(() => {
        const result = work(operating.run)
        operating.writeOperatorBalances()
        return result
      })
      .immediate()
  run(({ createKey, addPrices }) => {
    for (const { accountId, keyId } of owners) {
      const keyFields = { pepper: 'aabbccdd', suffix: 'abcd', name: 'x', tier: 'pro', qpm: null, existing: false }
      const money = { credit: '5000000', creditRef: keyId + 500 } as const
      createKey({ id: keyId, accountId, digest: `${keyId}`.padStart(64, '0'), ...money, ...keyFields })
    }
    const price = (model: string, origin: 'shipped' | 'operator', text: string) => ({
      model,
      origin,
      price: text,
      author: 'x',
    })
    const ownPrices = [price('p/own', 'shipped', shipped), price('p/own', 'operator', dearer)]
    addPrices({ prices: [price('p/plain', 'shipped', shipped), ...ownPrices] })
  })
  return { folder, db, run }
}

type Step =
  | { readonly call: Call }
  | { readonly settle: number }
  | { readonly refund: number }
  | { readonly do: 'roll' | 'restart' | 'lose' | 'trim' }

interface Call {
  readonly ageMs: number
  readonly owner: number
  readonly model: 'plain' | 'own' | null
  readonly channel: number
  readonly outcome: string
  readonly cached: number
  readonly tokens: number
  readonly cost: number
  readonly held: boolean
}

const calls: fc.Arbitrary<Call> = fc.record({
  ageMs: fc.oneof(
    fc.integer({ min: 0, max: 7_200_000 }),
    fc.integer({ min: 0, max: 200 }).map(days => days * DAY_MS),
  ),
  owner: fc.integer({ min: 0, max: 2 }),
  model: fc.constantFrom('plain', 'own', null),
  channel: fc.integer({ min: 1, max: 2 }),
  outcome: fc.constantFrom('completed', 'completed', 'upstream_failed', 'refused', 'client_left'),
  cached: fc.integer({ min: 0, max: 5_000 }),
  tokens: fc.integer({ min: 0, max: 5_000 }),
  cost: fc.integer({ min: 0, max: 400_000 }),
  held: fc.boolean(),
})

const actions = ['roll', 'roll', 'roll', 'restart', 'lose', 'trim'] as const

const steps: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: calls.map(call => ({ call })) },
  { weight: 4, arbitrary: fc.nat(50).map(settle => ({ settle })) },
  { weight: 2, arbitrary: fc.nat(50).map(refund => ({ refund })) },
  { weight: 5, arbitrary: fc.constantFrom(...actions).map(name => ({ do: name })) },
)

function recordOf(callId: number, call: Call): RecordRow {
  const failed = call.outcome !== 'completed'
  const line = (what: 'input' | 'output' | 'cacheRead' | 'cacheWrite', count: number): unknown[] => [
    what,
    count,
    lineRates[call.model!][what],
  ]
  const cached = (): unknown[] => [line('cacheRead', call.cached), line('cacheWrite', 7), line('output', 3)]
  const isFree = call.model === null || call.tokens === 0
  const lines = isFree ? null : JSON.stringify([line('input', call.tokens), ...cached()])
  return {
    dialect: 'openai-chat',
    provider: call.model && 'p',
    model: call.model,
    streamed: call.tokens % 2 === 0,
    priceVersion: call.model === 'own' ? 3 : 1,
    endUser: null,
    tags: null,
    callId,
    ...owners[call.owner]!,
    channel: call.model && `p#${call.channel}`,
    status: failed ? 502 : 200,
    error: failed ? 'x' : null,
    outcome: call.outcome,
    rule: 'completed',
    usageSource: 'reported',
    attempts: null,
    timings: null,
    lines,
    inputTokens: call.tokens,
    cacheReadTokens: call.cached,
    cacheWriteTokens: 7,
    outputTokens: 3,
    reasoningTokens: 1,
    firstContentMs: failed ? null : call.cost % 900,
    durationMs: call.cost,
  }
}

class History {
  readonly #house = openLedgerFolder()
  readonly #open: [number, Call][] = []
  readonly #charged: [number, number][] = []
  #roller: StatisticsAggregator | undefined
  #at = 0

  take(step: Step): void {
    if ('call' in step) this.#begin(step.call)
    else if ('settle' in step) this.#settle(step.settle)
    else if ('refund' in step) this.#refund(step.refund)
    else if (step.do === 'roll') this.#rolling.step()
    else if (step.do === 'trim') this.#trim()
    else this.#close(step.do === 'lose')
  }

  check(): void {
    while (this.#open.length > 0) this.#settle(0)
    while (!this.#rolling.step().upToDate);
    this.#close(false)
    const statistics = openDatabase(join(this.#house.folder, 'stats.db'), { readonly: true, safeIntegers: true })
    expect(written(statistics)).toEqual(recount(this.#house.db, NOW_MS, rates))
    statistics.close()
  }

  end(): void {
    this.#close(false)
    this.#house.db.close()
    rmSync(this.#house.folder, { recursive: true, force: true })
  }

  get #rolling(): StatisticsAggregator {
    const { folder } = this.#house
    const paths = { database: join(folder, 'weir.db'), statistics: join(folder, 'stats.db') }
    return (this.#roller ??= new StatisticsAggregator({
      ...paths,
      dateMs: () => NOW_MS,
      rowsPerStep: 2,
      olderFactor: 1,
    }))
  }

  #close(loses: boolean): void {
    this.#roller?.close()
    this.#roller = undefined
    if (!loses) return
    for (const end of ['', '-wal', '-shm']) rmSync(join(this.#house.folder, `stats.db${end}`), { force: true })
  }

  #begin(call: Call): void {
    const callId = idAtMs(NOW_MS - call.ageMs) + ++this.#at
    if (!call.held) return void this.#house.run(run => run.record({ record: recordOf(callId, call) }))
    const { accountId, keyId } = owners[call.owner]!
    const emptyFields = { provider: null, model: null, priceVersion: null, endUser: null, tags: null }
    const draft = { dialect: 'x', streamed: false, ...emptyFields }
    const holdResult = this.#house.run(run =>
      run.hold({ callId, kind: 'task', accountId, keyId, amount: '300000', wants: '0', draft }),
    )
    if (holdResult.done === 'held') this.#open.push([callId, call])
  }

  #settle(at: number): void {
    const [ended] = this.#open.splice(at % Math.max(1, this.#open.length), 1)
    if (ended === undefined) return
    const [callId, call] = ended
    this.#house.run(run => run.settle({ record: recordOf(callId, call), cost: `${BigInt(call.cost)}` }))
    this.#charged.push([callId, owners[call.owner]!.accountId])
  }

  #refund(at: number): void {
    const [charged] = this.#charged.splice(at % Math.max(1, this.#charged.length), 1)
    if (charged === undefined) return
    const [ref, accountId] = charged
    const posted = { kind: 'refund', ref, accountId, amount: 'all', reference: null, author: 'x' } as const
    this.#house.run(run => run.post(posted))
  }

  #trim(): void {
    const { seq } = this.#rolling.step()
    this.#house.run(run => run.trimLog({ below: seq }))
  }
}

test('the sums are those of the records', () => {
  const property = fc.property(fc.array(steps, { minLength: 5, maxLength: 120, size: 'max' }), drawnSteps => {
    const history = new History()
    try {
      for (const step of drawnSteps) history.take(step)
      history.check()
    } finally {
      history.end()
    }
  })
  fc.assert(property, { numRuns: 30 })
})

test('a call that is settled while old records are still being read is counted once', () => {
  const plain = { owner: 0, model: 'plain', channel: 1, tokens: 10, cached: 1, cost: 9, outcome: 'completed' } as const
  const history = new History()
  try {
    for (const ageMs of [3, 2]) history.take({ call: { ...plain, held: true, ageMs: ageMs * DAY_MS } })
    for (let at = 0; at < 500; at++) history.take({ call: { ...plain, held: false, ageMs: DAY_MS } })
    history.take({ do: 'roll' })
    history.take({ settle: 0 })
    history.take({ do: 'roll' })
    history.take({ refund: 0 })
    history.take({ settle: 0 })
    history.take({ do: 'restart' })
    history.check()
  } finally {
    history.end()
  }
})
