// Five times as many calls as can be served, and one account that asks for everything beside one that asks for little.
// Prints what was measured and whether it is what guarantee G14 promises; ends non-zero when it is not.
//
//   bin/weir-bun scripts/proof/overload.ts [--seconds 10] [--only slow|quick] [--verbose]
//
// Two kinds of load, because there are two things of which there can be too little. Calls of a language model last for
// seconds and cost the gateway little: what can be served is a number of calls under way (WEIR_CALLS_MAX, here a low
// one). Calls that are answered at once cost nothing but the processor, and there a refusal costs it something as well.

import { parseArgs } from 'node:util'
import { memoryPeak } from '../../bench/system/proc.ts'
import type { Serving } from './load/house.ts'
import { callOf, House, say, sayMachine } from './load/house.ts'
import type { Tally } from './load/loops.ts'
import { closedLoop, openLoop } from './load/loops.ts'

const { values } = parseArgs({
  options: { seconds: { type: 'string' }, only: { type: 'string' }, verbose: { type: 'boolean' } },
})
const seconds = Number(values.seconds ?? '10')
const WARM_SECONDS = 3

interface Kind {
  readonly name: string
  readonly does: string
  readonly env: Readonly<Record<string, string>>
  readonly callers: number
  readonly linesMax: number
}

const kinds: readonly Kind[] = [
  { name: 'slow', does: 'plain 2000', env: { WEIR_CALLS_MAX: '800' }, callers: 1_000, linesMax: 4_000 },
  { name: 'quick', does: 'plain 0', env: {}, callers: 64, linesMax: 4_000 },
]

let missed = 0

function judge(what: string, { value, most, least, unit }: Judged): void {
  const isMet = value <= (most ?? Number.POSITIVE_INFINITY) && value >= (least ?? Number.NEGATIVE_INFINITY)
  if (!isMet) missed++
  const bound = most === undefined ? `at least ${least!.toFixed(1)}` : `at most ${most.toFixed(1)}`
  const told = `${value.toFixed(1).padStart(9)} ${unit.padEnd(4)} ${bound.padEnd(18)} ${isMet ? 'yes' : 'NO'}`
  say(`  ${what.padEnd(52)} ${told}`)
}

interface Judged {
  readonly value: number
  readonly most?: number
  readonly least?: number
  readonly unit: string
}

const told = (tally: Tally): string =>
  Object.entries(tally.perSecond)
    .map(([status, rate]) => {
      const [half, most] = [tally.ms(Number(status), 0.5), tally.ms(Number(status), 0.99)]
      return `${status}: ${rate.toFixed(0)}/s, p50 ${half.toFixed(1)} ms, p99 ${most.toFixed(1)} ms`
    })
    .join('; ')

const heading = (name: string, tally: Tally): void => {
  if (values.verbose) say(`  ${name}: ${told(tally)}`)
}

async function crowd({ does, callers, linesMax }: Kind, house: House, { port, child }: Serving): Promise<void> {
  const requests = house.keys.map(key => callOf(key, does))
  const request = (at: number): Buffer => requests[at % requests.length]!
  const run = { port, seconds, warmSeconds: WARM_SECONDS, linesMax }

  await closedLoop({ ...run, callers, seconds: 1, warmSeconds: 4, request })
  const peak = await closedLoop({ ...run, callers, request })
  heading('peak', peak)
  const peakPerSecond = peak.perSecond['200']!
  const [calm] = await openLoop({ ...run, streams: [{ perSecond: 0.8 * peakPerSecond, request }] })
  heading('at 80 %', calm!)
  const [crowded] = await openLoop({ ...run, streams: [{ perSecond: 5 * peakPerSecond, request }] })
  heading('at 500 %', crowded!)

  say(`  peak ${peakPerSecond.toFixed(0)} calls/s; offered ${(5 * peakPerSecond).toFixed(0)} calls/s`)
  const upstreamMs = Number(does.split(' ')[1])
  const added = (tally: Tally): number => tally.ms(200, 0.99) - upstreamMs
  judge('served, of the peak', { value: (100 * crowded!.perSecond['200']!) / peakPerSecond, least: 90, unit: '%' })
  judge('refused within, p99', { value: crowded!.ms(503, 0.99), most: 50, unit: 'ms' })
  judge('added to served calls, p99', { value: added(crowded!), most: 3 * added(calm!), unit: 'ms' })
  const { '200': served = 0, '503': refused = 0, '-1': unsent = 0, ...others } = crowded!.count
  const odd = Object.values(others).reduce((sum, one) => sum + one, 0)
  judge('neither served nor refused', { value: odd, most: 0, unit: '' })
  say(`  ${served} served, ${refused} refused, ${unsent} not sent for want of connections`)
  say(`  memory at most ${memoryPeak(child.pid).toFixed(0)} MB`)
}

/** One account takes nine tenths of what can be served, or of five times that; another, one tenth. */
async function neighbours({ does, callers, linesMax }: Kind, house: House, { port }: Serving): Promise<void> {
  const [noisyCall, victimCall] = [callOf(house.keys[0]!, does), callOf(house.keys[1]!, does)]
  const run = { port, seconds, warmSeconds: WARM_SECONDS, linesMax }
  const peak = await closedLoop({ ...run, callers, request: () => noisyCall })
  const peakPerSecond = peak.perSecond['200']!
  const victim = { perSecond: 0.1 * peakPerSecond, request: () => victimCall }
  const noisy = (share: number) => ({ perSecond: share * peakPerSecond, request: () => noisyCall })
  const [quiet] = await openLoop({ ...run, streams: [victim] })
  heading('victim alone', quiet!)
  for (const share of [0.9, 4.5]) {
    const [loud, beside] = await openLoop({ ...run, streams: [noisy(share), victim] })
    heading(`noisy at ${share}`, loud!)
    heading('victim beside it', beside!)
    const asked = Object.values(beside!.count).reduce((sum, one) => sum + one, 0)
    const name = `victim beside ${share * 100} % of the peak`
    judge(`${name}, p99`, { value: beside!.ms(200, 0.99), most: 2 * quiet!.ms(200, 0.99), unit: 'ms' })
    judge(`${name}, served`, { value: (100 * (beside!.count['200'] ?? 0)) / asked, least: 99, unit: '%' })
  }
}

sayMachine()
for (const kind of kinds.filter(({ name }) => values.only === undefined || name === values.only)) {
  for (const [title, measure] of [
    ['five times the peak', crowd],
    ['a noisy neighbour', neighbours],
  ] as const) {
    say(`\n${kind.name} calls (${kind.does} ms), ${title}`)
    const house = await House.open()
    try {
      await measure(kind, house, await house.serve(kind.env))
    } catch (fault) {
      missed++
      say(`${String(fault)}\n${house.bench.lastWords()}`)
    } finally {
      house.close()
    }
  }
}
process.exit(missed === 0 ? 0 : 1)
