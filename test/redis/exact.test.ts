// Limits that three processes count in Redis, compared call for call with the limits of one process in memory: random
// rules that change, random calls and corrections, day limits, concurrent calls, and processes that die.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { deepStrictEqual } from 'node:assert'
import type { LimitLease } from '../../src/limits/leases.ts'
import { joinLeases } from '../../src/limits/leases.ts'
import type { LimitedCall } from '../../src/limits/limited-call.ts'
import type { LimitAdmission } from '../../src/limits/limits.ts'
import { Limits } from '../../src/limits/limits.ts'
import { SharedLimits } from '../../src/limits/shared-limits.ts'
import type { RedisConnection } from '../../src/store/redis/client.ts'
import { LimitCounters } from '../../src/store/redis/limit-counters.ts'
import type { LimitRow, LimitScope } from '../../src/store/rules/rules.ts'
import { leaseOf, row, subject, tokens as tokensOf } from '../limits/rows.ts'
import { randomFrom } from '../support/chance.ts'
import type { TestRedis } from '../support/redis.ts'
import { hasRedis, startRedis, tellMissingRedis } from '../support/redis.ts'
import { untilUp } from './patience.ts'

tellMissingRedis()

const callers = [
  { keyId: 1, accountId: 10, tier: 'free', qpm: 7 },
  { keyId: 2, accountId: 10, tier: 'pro', qpm: 60 },
  { keyId: 3, accountId: 11, tier: 'pro', qpm: 1_000 },
]
const models = ['openai/gpt-x', 'openai/gpt-x-mini', 'anthropic/claude']
const kinds = [
  ['requests', 'minute'],
  ['requests', 'day'],
  ['tokens', 'minute'],
  ['tokens', 'day'],
  ['concurrency', null],
] as const
const scopes: readonly LimitScope[] = ['key', 'account', 'model']

/** A process counts as dead when it has been silent for this long. */
const SILENT_MS = 10_000

interface OpenCall {
  readonly process: TestProcess
  readonly leases: readonly LimitLease[]
  readonly tokens: number
}

interface TestProcess {
  readonly counters: LimitCounters
  readonly limits: SharedLimits
}

describe.if(hasRedis)('limits in Redis', () => {
  let redis: TestRedis
  let connection: RedisConnection
  let rounds = 0

  beforeAll(async () => {
    redis = await startRedis()
    connection = await redis.open({ deadlineMs: 30_000 })
    await untilUp(connection)
    // The first correction takes longer, because Redis does not know the script: later commands would overtake it.
    const counters = new LimitCounters({ connection, namespace: 'first', process: '1.1' })
    counters.freePlaces(['{weir}:first'])
    await counters.close()
  })
  afterAll(() => redis.stop())

  /** Runs random steps, and returns how many calls were admitted and refused. */
  async function compare(seed: number, steps: number) {
    const below = randomFrom(seed)
    const pick = <T>(values: readonly T[]): T => values[below(values.length)]!
    const maybe = <T>(values: readonly T[]): T | null => (below(3) === 0 ? pick(values) : null)
    const someAmount = (): number => 1 + below(below(2) === 0 ? 12 : 5_000)
    let rows = Array.from({ length: 1 + below(7) }, (_, at): LimitRow => {
      const [resource, span] = pick(kinds)
      const per = scopes.filter(() => below(2) === 0)
      const about = { keyId: maybe([1, 2, 3]), accountId: maybe([10, 11]), tier: maybe(['free', 'pro']) }
      return { id: at + 1, resource, span, amount: someAmount(), ...about, model: maybe(['openai/*', '*-mini']), per }
    })
    const namespace = `exact-${++rounds}`
    await redis.send('SET', `{weir}:${namespace}:born`, '1')
    let ms = 1_000_000
    let count = 0
    const openProcess = (): TestProcess => {
      const counters = new LimitCounters({ connection, namespace, process: `${++count}.1`, nowMs: () => ms })
      const limits = new SharedLimits({
        processes: () => 3,
        redis: counters,
        loadDebts: async () => [],
        dateMs: () => ms,
        onTrouble: fault => expect(fault).toBeUndefined(),
      })
      limits.setRules(rows)
      return { counters, limits }
    }
    const processes = [openProcess(), openProcess(), openProcess()]
    const expected = new Limits()
    expected.setRules(rows)
    let open: OpenCall[] = []
    const dead: { readonly ms: number; readonly calls: readonly OpenCall[] }[] = []
    const end = ({ leases, tokens }: OpenCall): void => {
      const used = Math.floor((tokens * below(250)) / 100)
      for (const lease of leases) {
        lease.correct(used, ms)
        lease.release()
      }
    }
    const totals = { admitted: 0, refused: 0, corrected: 0, died: 0 }
    for (let step = 0; step < steps; step++) {
      const wait = below(12)
      const waitMs = wait < 4 ? 0 : wait < 8 ? below(900) : wait < 11 ? below(90_000) : below(40_000_000)
      if (waitMs > 600_000) for (const call of open.splice(0)) end(call)
      await Promise.resolve() // corrections are sent a moment later
      ms += waitMs
      if (waitMs > 0) await Promise.all(processes.map(({ counters }) => counters.renew()))
      for (const { ms: deadMs, calls } of dead) {
        if (ms >= deadMs + SILENT_MS) for (const { leases } of calls) leases[1]!.release()
      }
      if (below(25) === 0) {
        rows = rows.map(row => (below(2) === 0 ? row : { ...row, amount: someAmount() }))
        for (const limits of [expected, ...processes.map(process => process.limits)]) limits.setRules(rows)
        // Use is converted to the new amount when a rule is next applied, which is at the same time for both then.
        for (const caller of callers) {
          for (const model of models) {
            const subject = { ...caller, model, tokens: 0 }
            const all = await Promise.all(processes.map(({ limits }) => limits.quotasOfCall(subject, ms)))
            const quotas = expected.quotasOfCall(subject, ms)
            deepStrictEqual(all, [quotas, quotas, quotas])
          }
        }
      }
      if (below(40) === 0) {
        const at = below(processes.length)
        const [old] = processes.splice(at, 1, openProcess())
        await old!.counters.close()
        dead.push({ ms, calls: open.filter(({ process }) => process === old) })
        open = open.filter(({ process }) => process !== old)
        totals.died++
      }
      const [ending] = open.splice(below(9), 1)
      if (ending !== undefined) {
        end(ending)
        await Promise.resolve() // corrections are sent a moment later
        totals.corrected++
      }
      const process = pick(processes)
      const tokens = below(3) === 0 ? 0 : below(below(2) === 0 ? 40 : 8_000)
      const subject: LimitedCall = { ...pick(callers), model: pick(models), tokens }
      const [actual, wanted] = [await process.limits.admit(subject, ms), expected.admit(subject, ms)]
      deepStrictEqual(withoutLease(actual), withoutLease(wanted))
      totals[wanted.admitted ? 'admitted' : 'refused']++
      if (!actual.admitted || !wanted.admitted) continue
      let leases = [actual.lease, wanted.lease]
      if (below(8) === 0) {
        const other = { ...subject, model: pick(models) }
        const rest = [
          await process.limits.admitRest(other, { call: subject, rules: actual.rules }, ms),
          expected.admitRest(other, { call: subject, rules: wanted.rules }, ms),
        ] as const
        deepStrictEqual(withoutLease(rest[0]), withoutLease(rest[1]))
        if (rest[0].admitted && rest[1].admitted)
          leases = [joinLeases(leases[0]!, rest[0].lease), joinLeases(leases[1]!, rest[1].lease)]
      }
      open.push({ process, leases, tokens })
      if (below(8) !== 0) continue
      const other = { ...pick(callers), model: pick(models), tokens }
      const { limits } = pick(processes)
      deepStrictEqual(await limits.quotasOfCall(other, ms), expected.quotasOfCall(other, ms))
      deepStrictEqual(await limits.refusalOfCall(other, ms), expected.refusalOfCall(other, ms))
      deepStrictEqual(await limits.quotasOfKey(other, ms), expected.quotasOfKey(other, ms))
    }
    for (const { counters } of processes) await counters.close()
    return totals
  }

  test('refund only what time has not refilled, also when earlier calls were refunded or all was refilled', async () => {
    let ms = 1_000_000
    const namespace = `refunds-${++rounds}`
    await redis.send('SET', `{weir}:${namespace}:born`, '1')
    const rows = [row(1, { ...tokensOf(6_000), per: ['key'] })]
    const counters = new LimitCounters({ connection, namespace, process: '1.1', nowMs: () => ms })
    const parts = { processes: () => 1, redis: counters, loadDebts: async () => [], dateMs: () => ms, onTrouble() {} }
    const shared = new SharedLimits(parts)
    const expected = new Limits()
    for (const limits of [shared, expected]) limits.setRules(rows)
    const call = (tokens: number): LimitedCall => subject({ tokens })
    const begin = async (tokens: number) => {
      const [actual, wanted] = [await shared.admit(call(tokens), ms), expected.admit(call(tokens), ms)]
      deepStrictEqual(withoutLease(actual), withoutLease(wanted))
      return [leaseOf(actual), leaseOf(wanted)]
    }
    const correct = async (leases: readonly LimitLease[], tokens: number): Promise<number> => {
      for (const lease of leases) lease.correct(tokens, ms)
      await Promise.resolve()
      const [actual, wanted] = [await shared.quotasOfCall(call(1), ms), expected.quotasOfCall(call(1), ms)]
      deepStrictEqual(actual, wanted)
      return wanted.find(({ resource }) => resource === 'tokens')!.remaining
    }
    // Half of the second call is refilled, although much was used before it.
    let [first, second] = [await begin(4_000), await begin(100)]
    await begin(1_000)
    await correct(first, 0)
    ms += 500
    expect(await correct(second, 0)).toBe(5_000)
    ms += 60_000
    // All of the second call is refilled before another call begins.
    ;[first, second] = [await begin(4_000), await begin(100)]
    await correct(first, 0)
    ms += 2_000
    await begin(500)
    expect(await correct(second, 0)).toBe(5_500)
    await counters.close()
  })

  test('admit exactly what the limits of one process in memory admit, and say the same', async () => {
    const totals = { admitted: 0, refused: 0, corrected: 0, died: 0 }
    for (let seed = 1; seed <= 50; seed++) {
      const { admitted, refused, corrected, died } = await compare(seed, 200)
      totals.admitted += admitted
      totals.refused += refused
      totals.corrected += corrected
      totals.died += died
    }
    expect(totals.admitted).toBeGreaterThan(1_000)
    expect(totals.refused).toBeGreaterThan(1_000)
    expect(totals.corrected).toBeGreaterThan(1_000)
    expect(totals.died).toBeGreaterThan(100)
  }, 600_000)
})

function withoutLease(admission: LimitAdmission): object {
  if (!admission.admitted) return admission
  const { lease: _lease, rules: _rules, ...said } = admission
  return said
}
