// Sends five times as many calls as the gateway can serve; then one account sends very many calls and another one few.
// Prints the measurements beside the bounds of guarantee G14. Exits with 1 if a bound is exceeded.
//
//   bin/weir-bun scripts/proof/overload.ts [--seconds 10] [--only slow|quick] [--verbose]
//
// There are two kinds of load, because two resources can run out. Calls of a language model last for seconds and cost the
// gateway little CPU: their bound is the number of active calls (WEIR_CALLS_MAX, here a low one). Calls that the upstream
// answers at once are bound by the CPU, and each refusal costs CPU, too.

import { parseArgs } from 'node:util'
import { memoryPeak } from '../../bench/system/proc.ts'
import type { Tally } from './load/loops.ts'
import { closedLoop, openLoop } from './load/loops.ts'
import type { RunningGateway } from './load/testbed.ts'
import { chatRequest, printMachine, Testbed } from './load/testbed.ts'
import { print } from './output.ts'

const { values } = parseArgs({
  options: { seconds: { type: 'string' }, only: { type: 'string' }, verbose: { type: 'boolean' } },
})
const seconds = Number(values.seconds ?? '10')
const WARM_SECONDS = 3

interface Kind {
  readonly name: string
  readonly behavior: string
  readonly env: Readonly<Record<string, string>>
  readonly callers: number
  readonly connectionsMax: number
}

const kinds: readonly Kind[] = [
  { name: 'slow', behavior: 'plain 2000', env: { WEIR_CALLS_MAX: '800' }, callers: 1_000, connectionsMax: 4_000 },
  { name: 'quick', behavior: 'plain 0', env: {}, callers: 64, connectionsMax: 4_000 },
]

let missed = 0

function check(what: string, { value, most, least, unit }: Bound): void {
  const isMet = value <= (most ?? Number.POSITIVE_INFINITY) && value >= (least ?? Number.NEGATIVE_INFINITY)
  if (!isMet) missed++
  const bound = most === undefined ? `at least ${least!.toFixed(1)}` : `at most ${most.toFixed(1)}`
  const columns = `${value.toFixed(1).padStart(9)} ${unit.padEnd(4)} ${bound.padEnd(18)} ${isMet ? 'yes' : 'NO'}`
  print(`  ${what.padEnd(52)} ${columns}`)
}

interface Bound {
  readonly value: number
  readonly most?: number
  readonly least?: number
  readonly unit: string
}

const summary = (tally: Tally): string =>
  Object.entries(tally.perSecond)
    .map(([status, rate]) => {
      const [half, most] = [tally.ms(Number(status), 0.5), tally.ms(Number(status), 0.99)]
      return `${status}: ${rate.toFixed(0)}/s, p50 ${half.toFixed(1)} ms, p99 ${most.toFixed(1)} ms`
    })
    .join('; ')

const printSummary = (name: string, tally: Tally): void => {
  if (values.verbose) print(`  ${name}: ${summary(tally)}`)
}

async function overload(
  { behavior, callers, connectionsMax }: Kind,
  testbed: Testbed,
  { port, child }: RunningGateway,
): Promise<void> {
  const requests = testbed.keys.map(key => chatRequest(key, behavior))
  const request = (at: number): Buffer => requests[at % requests.length]!
  const run = { port, seconds, warmSeconds: WARM_SECONDS, connectionsMax }

  await closedLoop({ ...run, callers, seconds: 1, warmSeconds: 4, request })
  const peak = await closedLoop({ ...run, callers, request })
  printSummary('peak', peak)
  const peakPerSecond = peak.perSecond['200']!
  const [calm] = await openLoop({ ...run, streams: [{ perSecond: 0.8 * peakPerSecond, request }] })
  printSummary('at 80 %', calm!)
  const [overloaded] = await openLoop({ ...run, streams: [{ perSecond: 5 * peakPerSecond, request }] })
  printSummary('at 500 %', overloaded!)

  print(`  peak ${peakPerSecond.toFixed(0)} calls/s; offered ${(5 * peakPerSecond).toFixed(0)} calls/s`)
  const upstreamMs = Number(behavior.split(' ')[1])
  const added = (tally: Tally): number => tally.ms(200, 0.99) - upstreamMs
  check('served, of the peak', { value: (100 * overloaded!.perSecond['200']!) / peakPerSecond, least: 90, unit: '%' })
  check('refused within, p99', { value: overloaded!.ms(503, 0.99), most: 50, unit: 'ms' })
  check('added to served calls, p99', { value: added(overloaded!), most: 3 * added(calm!), unit: 'ms' })
  const { '200': served = 0, '503': refused = 0, '-1': unsent = 0, ...others } = overloaded!.count
  const odd = Object.values(others).reduce((sum, one) => sum + one, 0)
  check('neither served nor refused', { value: odd, most: 0, unit: '' })
  print(`  ${served} served, ${refused} refused, ${unsent} not sent because no connection was free`)
  print(`  memory at most ${memoryPeak(child.pid).toFixed(0)} MB`)
}

/** One account sends 90 % of the calls that the gateway can serve, or 450 %; another account sends 10 %. */
async function neighbours(
  { behavior, callers, connectionsMax }: Kind,
  testbed: Testbed,
  { port }: RunningGateway,
): Promise<void> {
  const [noisyCall, victimCall] = [chatRequest(testbed.keys[0]!, behavior), chatRequest(testbed.keys[1]!, behavior)]
  const run = { port, seconds, warmSeconds: WARM_SECONDS, connectionsMax }
  const peak = await closedLoop({ ...run, callers, request: () => noisyCall })
  const peakPerSecond = peak.perSecond['200']!
  const victim = { perSecond: 0.1 * peakPerSecond, request: () => victimCall }
  const noisy = (share: number) => ({ perSecond: share * peakPerSecond, request: () => noisyCall })
  const [quiet] = await openLoop({ ...run, streams: [victim] })
  printSummary('victim alone', quiet!)
  for (const share of [0.9, 4.5]) {
    const [loud, beside] = await openLoop({ ...run, streams: [noisy(share), victim] })
    printSummary(`noisy at ${share}`, loud!)
    printSummary('victim beside it', beside!)
    const sent = Object.values(beside!.count).reduce((sum, one) => sum + one, 0)
    const name = `victim beside ${share * 100} % of the peak`
    check(`${name}, p99`, { value: beside!.ms(200, 0.99), most: 2 * quiet!.ms(200, 0.99), unit: 'ms' })
    check(`${name}, served`, { value: (100 * (beside!.count['200'] ?? 0)) / sent, least: 99, unit: '%' })
  }
}

printMachine()
for (const kind of kinds.filter(({ name }) => values.only === undefined || name === values.only)) {
  for (const [title, measure] of [
    ['five times the peak', overload],
    ['a noisy neighbour', neighbours],
  ] as const) {
    print(`\n${kind.name} calls (${kind.behavior} ms), ${title}`)
    const testbed = await Testbed.open()
    try {
      await measure(kind, testbed, await testbed.serve(kind.env))
    } catch (fault) {
      missed++
      print(`${String(fault)}\n${testbed.bench.lastOutput()}`)
    } finally {
      testbed.close()
    }
  }
}
process.exit(missed === 0 ? 0 : 1)
