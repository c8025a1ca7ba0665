// Where the CPU of a plain call goes inside Weir, thread by thread.

import { Load } from '../load/load.ts'
import type { Subject } from '../subjects/subject.ts'
import { startSubject } from '../subjects/subject.ts'
import { cpuSeconds, cpuSecondsByThread } from '../system/proc.ts'
import { startPlainUpstream } from '../upstreams/upstream.ts'
import { figure } from './figures.ts'
import type { Measure } from './measure.ts'
import { plainPlan } from './plain.ts'
import type { Plan } from './rounds.ts'

const meanings: Readonly<Record<string, string>> = {
  'main': 'all our own code, the HTTP server, and most of garbage collection',
  'Worker': 'the ledger: SQLite, two operations a call, and its commits',
  'JITWorker': "Bun's compiler",
}

export interface ByThread {
  readonly calls: number
  /** Of the whole process. */
  readonly cpuMicros: number
  readonly threads: ReadonlyMap<string, number>
}

/** What one call costs, after a warm-up, in CPU µs. */
export async function loadByThread(subject: Subject, plan: Plan): Promise<ByThread> {
  const load = await Load.open(subject.port, plan.connections, plan.callsFor(subject.keys, subject.manner))
  try {
    await load.run(plan.warmUp, plan.secondsMax)
    const before = { all: cpuSeconds(subject.pid), threads: cpuSecondsByThread(subject.pid) }
    const { calls } = await load.run(plan.count, plan.secondsMax)
    const after = { all: cpuSeconds(subject.pid), threads: cpuSecondsByThread(subject.pid) }
    const micros = (since: number, until: number): number => ((until - since) * 1e6) / calls
    const threads = [...after.threads].map(
      ([name, seconds]) => [name, micros(before.threads.get(name) ?? 0, seconds)] as const,
    )
    return { calls, cpuMicros: micros(before.all, after.all), threads: new Map(threads) }
  } finally {
    load.close()
  }
}

export const measureThreads: Measure = async measuring => {
  const plan = plainPlan(measuring.quick)
  const upstream = await startPlainUpstream(measuring.bench)
  const subject = await startSubject('weir', { ...measuring, upstream })
  const { calls, threads } = await loadByThread(subject, plan)
  await subject.stop()
  await upstream.stop()
  const micros = [...threads].filter(([, used]) => used >= 1).sort(([, a], [, b]) => b - a)
  const rows = micros.map(([name, used]) => [name, figure(used), meanings[name] ?? ''])
  return {
    title: 'Where the CPU of a plain call goes',
    about: `Weir alone, ${calls} plain calls after ${plan.warmUp} to warm up, by thread.`,
    table: [['thread', 'CPU µs', 'what it does'], ...rows],
    targets: [],
  }
}
