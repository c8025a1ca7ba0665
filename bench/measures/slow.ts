// The memory of many slow streams at the same time.

import { streamCalls } from '../load/calls.ts'
import { runSimultaneously } from '../load/load.ts'
import { startSubject, subjectNames } from '../subjects/subject.ts'
import { cpuSeconds, memoryPeak } from '../system/proc.ts'
import { startStreamUpstream } from '../upstreams/upstream.ts'
import { figure } from './figures.ts'
import type { Measure } from './measure.ts'

const CHUNKS = 30
const GAP_MS = 500
const RAMP_MS = 3_000
const SECONDS_MAX = 60

export const measureSlow: Measure = async measuring => {
  const count = measuring.quick ? 150 : 1_500
  const table = [['subject', 'completed', 'at once', 'CPU s', 'peak RSS MB']]
  let weirPeak = Number.NaN
  const upstream = await startStreamUpstream(measuring.bench, { chunks: CHUNKS, gapMs: GAP_MS })
  for (const name of subjectNames) {
    // Started again, so that the peak is that of this load.
    const subject = await startSubject(name, { ...measuring, upstream })
    const cpuBefore = cpuSeconds(subject.pid)
    const calls = streamCalls(subject.keys, CHUNKS)
    const done = await runSimultaneously({ port: subject.port, count, calls, rampMs: RAMP_MS, secondsMax: SECONDS_MAX })
    const [cpu, peak] = [cpuSeconds(subject.pid) - cpuBefore, memoryPeak(subject.pid)]
    if (name === 'weir') weirPeak = peak
    table.push([name, `${done.calls} of ${count}`, String(done.activeMax), figure(cpu), figure(peak)])
    measuring.say(`  ${name}: ${figure(cpu)} s of CPU, at most ${figure(peak)} MB`)
    await subject.stop()
  }
  await upstream.stop()
  return {
    title: `${count} slow streams at once`,
    about:
      `Each ${CHUNKS} chunks, one every ${GAP_MS} ms, begun evenly over ${RAMP_MS / 1_000} s. Completed: every byte ` +
      'came, up to [DONE]. The peak is of the whole life of the process.',
    table,
    targets: [{ what: `${count} slow streams, peak`, most: 100, unit: ' MB', measured: weirPeak }],
  }
}
