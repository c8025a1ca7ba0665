// The streamed call: a hundred chunks, each flushed alone, two milliseconds apart.

import { streamCalls } from '../load/calls.ts'
import { startStreamUpstream } from '../upstreams/upstream.ts'
import { figure } from './figures.ts'
import type { Measure } from './measure.ts'
import type { Plan } from './rounds.ts'
import { medianOf, planOfRound, ROUNDS, ratioTo, roundsTable, runRounds } from './rounds.ts'

const CHUNKS = 100
const GAP_MS = 2
const CONNECTIONS = 50

export const streamShape = { chunks: CHUNKS, gapMs: GAP_MS } as const

export const streamPlan = (quick: boolean): Plan => ({
  connections: CONNECTIONS,
  warmUp: CONNECTIONS * 2,
  count: quick ? 100 : 600,
  secondsMax: 60,
  callsFor: (keys, manner) => streamCalls(keys, CHUNKS, manner),
})

export const measureStream: Measure = async measuring => {
  const plan = streamPlan(measuring.quick)
  const upstream = await startStreamUpstream(measuring.bench, streamShape)
  const { rounds, leftOut } = await runRounds({ ...measuring, upstream, plan })
  await upstream.stop()
  return {
    title: `${CHUNKS}-chunk stream`,
    about:
      `${planOfRound(plan, 1).count} streams, ${CONNECTIONS} at once, after ${plan.warmUp} to warm up; a chunk every ${GAP_MS} ms, ` +
      `so that a stream lasts at least ${(CHUNKS + 1) * GAP_MS} ms; ${ROUNDS} rounds in turn, medians. Every stream is ` +
      'compared with what was sent, to the byte, but for comments between events; of a peer, all that it says.' +
      leftOut,
    table: roundsTable(rounds, [
      ['core used', of => `${figure(medianOf(of, 'busy') * 100)} %`],
      ['first chunk p50 ms', of => figure(medianOf(of, 'firstP50'))],
      ['p99 ms', of => figure(medianOf(of, 'firstP99'))],
      ['whole p50 ms', of => figure(medianOf(of, 'totalP50'))],
      ['p99 ms', of => figure(medianOf(of, 'totalP99'))],
    ]),
    targets: [{ what: 'stream, against nginx', most: 2, unit: '×', measured: ratioTo(rounds, 'nginx') }],
  }
}
