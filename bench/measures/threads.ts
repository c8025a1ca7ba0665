// The CPU of a plain call inside Weir, by thread.

import { Load } from '../load/load.ts'
import type { Subject } from '../subjects/subject.ts'
import { startSubject } from '../subjects/subject.ts'
import { cpuSecondsByThread } from '../system/proc.ts'
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
  /** CPU of the whole process. */
  readonly cpuMicros: number
  readonly threads: ReadonlyMap<string, number>
}

/** Measures the CPU of one call, over connections that are already open. */
export async function burst(subject: Subject, load: Load, plan: Pick<Plan, 'count' | 'secondsMax'>): Promise<ByThread> {
  const before = cpuSecondsByThread(subject.pid)
  const { calls } = await load.run(plan.count, plan.secondsMax)
  const threads = [...cpuSecondsByThread(subject.pid)].map(
    ([name, seconds]) => [name, ((seconds - (before.get(name) ?? 0)) * 1e6) / calls] as const,
  )
  return { calls, cpuMicros: threads.reduce((sum, [, micros]) => sum + micros, 0), threads: new Map(threads) }
}

export const measureThreads: Measure = async measuring => {
  const plan = plainPlan(measuring.quick)
  const upstream = await startPlainUpstream(measuring.bench)
  const subject = await startSubject('weir', { ...measuring, upstream })
  const load = await Load.open(subject.port, plan.connections, plan.callsFor(subject.keys, subject.manner))
  await load.run(plan.warmUp, plan.secondsMax)
  const { calls, threads } = await burst(subject, load, plan)
  load.close()
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
