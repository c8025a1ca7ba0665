// How much of the time of a call the gateway itself took. Stages may lie inside of the time at the upstream, such as the
// wait for a channel between two attempts, so that durations cannot simply be added.

import type { RecordInFull } from '../api/types.ts'

type Timed = Pick<RecordInFull, 'timeline' | 'durationMs'>

/** Undefined: the record does not say when its stages began. */
export function gatewayTime({ timeline, durationMs }: Timed): number | undefined {
  const spans = timeline.map(({ stage, atMs, ms }) => ({ stage, from: atMs, to: (atMs ?? 0) + ms }))
  if (spans.some(({ from }) => from === null)) return undefined
  const edges = [...new Set(spans.flatMap(({ from, to }) => [from ?? 0, to]))].sort((a, b) => a - b)
  let upstreamMs = 0
  for (const [index, from] of edges.slice(0, -1).entries()) {
    const to = edges[index + 1]!
    const within = spans.filter(span => span.from! <= from && span.to >= to)
    if (within.length > 0 && within.every(({ stage }) => stage === 'forward')) upstreamMs += to - from
  }
  return Math.max(0, durationMs - upstreamMs)
}
