// The plain call: a small chat completion, at the full speed of one core.

import { plainCalls } from '../load/calls.ts'
import { startPlainUpstream } from '../upstreams/upstream.ts'
import { figure } from './figures.ts'
import type { Measure } from './measure.ts'
import type { Plan, Round } from './rounds.ts'
import { medianOf, planOfRound, ROUNDS, ratioTo, roundsTable, runRounds } from './rounds.ts'

const CONNECTIONS = 64

export const plainPlan = (quick: boolean): Plan => ({
  connections: CONNECTIONS,
  // Bun's compilers are busy for the first tens of thousands of calls; a gateway runs for weeks.
  warmUp: quick ? 1_000 : 20_000,
  count: quick ? 2_000 : 20_000,
  secondsMax: 60,
  callsFor: plainCalls,
})

export const measurePlain: Measure = async measuring => {
  const plan = plainPlan(measuring.quick)
  const upstream = await startPlainUpstream(measuring.bench)
  const { rounds, leftOut } = await runRounds({ ...measuring, upstream, plan })
  await upstream.stop()
  const last = (of: readonly Round[]): Round => of.at(-1)!
  const sum = (of: readonly Round[]): number => of.reduce((total, round) => total + round.opened, 0)
  return {
    title: 'Plain call',
    about:
      `${planOfRound(plan, 1).count} calls over ${CONNECTIONS} connections after ${plan.warmUp} to warm up, ${ROUNDS} rounds in turn; ` +
      'medians. Where the core is not nearly full, calls a second are what the load generator can ask for. ' +
      'A slow peer makes fewer calls. “Opened” are all connections to the upstream: keep-alive works when they are about as many as callers.' +
      leftOut,
    table: roundsTable(rounds, [
      ['calls/s', of => figure(medianOf(of, 'callsPerSecond'))],
      ['core used', of => `${figure(medianOf(of, 'busy') * 100)} %`],
      ['p50 ms', of => figure(medianOf(of, 'totalP50'))],
      ['p99 ms', of => figure(medianOf(of, 'totalP99'))],
      ['RSS MB after', of => figure(last(of).memory)],
      ['opened', of => String(sum(of))],
    ]),
    targets: [
      { what: 'plain call, against bun-proxy', most: 2.5, unit: '×', measured: ratioTo(rounds, 'bun-proxy') },
      { what: 'plain call, against nginx', most: 5.5, unit: '×', measured: ratioTo(rounds, 'nginx') },
      { what: 'memory after plain calls', most: 110, unit: ' MB', measured: last(rounds.weir).memory },
    ],
  }
}
