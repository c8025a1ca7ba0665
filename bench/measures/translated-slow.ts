// The memory that each of many slow translated streams adds.

import { streamCalls } from '../load/calls.ts'
import type { Call } from '../load/connection.ts'
import { runSimultaneously } from '../load/load.ts'
import { pairName, pairs, translatedCalls } from '../load/translated-calls.ts'
import { startSubject } from '../subjects/subject.ts'
import { memoryPeak } from '../system/proc.ts'
import type { Upstream } from '../upstreams/upstream.ts'
import { startStreamUpstream } from '../upstreams/upstream.ts'
import { figure } from './figures.ts'
import type { Measure, Measuring } from './measure.ts'

const CHUNKS = 20
const RAMP_MS = 2_000
const SECONDS_MAX = 60

type CallsFor = (keys: readonly string[]) => readonly Call[]

const NATIVE = 'native chat'

const kinds: Readonly<Record<string, CallsFor>> = {
  [NATIVE]: keys => streamCalls(keys, CHUNKS),
  ...Object.fromEntries(pairs.map(pair => [pairName(pair), (keys => translatedCalls(pair, keys, CHUNKS)) as CallsFor])),
}

interface SlowStreams {
  readonly upstream: Upstream
  readonly callsFor: CallsFor
  readonly count: number
}

/** Uses a new process, so that the peak is that of these streams. */
async function peakOf(measuring: Measuring, { upstream, callsFor, count }: SlowStreams): Promise<number> {
  const subject = await startSubject('weir', { ...measuring, upstream })
  const calls = callsFor(subject.keys)
  const done = await runSimultaneously({ port: subject.port, count, calls, rampMs: RAMP_MS, secondsMax: SECONDS_MAX })
  const peak = memoryPeak(subject.pid)
  await subject.stop()
  if (done.activeMax < count)
    throw new Error(`Only ${done.activeMax} of ${count} streams were active at the same time.`)
  return peak
}

export const measureTranslatedSlow: Measure = async measuring => {
  const [few, many] = measuring.quick ? [50, 200] : [200, 800]
  const gapMs = measuring.quick ? 200 : 400
  const upstream = await startStreamUpstream(measuring.bench, { chunks: CHUNKS, gapMs })
  const table = [['kind', `peak MB of ${few}`, `of ${many}`, 'KB each']]
  const targets = []
  for (const [kind, callsFor] of Object.entries(kinds)) {
    const least = await peakOf(measuring, { upstream, callsFor, count: few })
    const most = await peakOf(measuring, { upstream, callsFor, count: many })
    const each = ((most - least) * 1_000) / (many - few)
    measuring.say(`  ${kind}: ${figure(each)} KB each`)
    table.push([kind, figure(least), figure(most), figure(each)])
    if (kind === NATIVE) continue
    targets.push({ what: `memory of a live stream, ${kind}`, most: 64, unit: ' KB', measured: each })
  }
  await upstream.stop()
  return {
    title: 'Slow translated streams',
    about:
      `Each ${CHUNKS} chunks, one every ${gapMs} ms, begun evenly over ${RAMP_MS / 1_000} s; all are there at once. ` +
      `The memory of each is how much higher the peak of a process is with ${many} of them than that of another ` +
      `with ${few}: what a process has for itself is in both.`,
    table,
    targets,
  }
}
