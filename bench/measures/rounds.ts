// Loads the subjects in turn in many rounds, so that other work of the machine affects all of them alike.

import type { Manner } from '../load/calls.ts'
import type { Call } from '../load/connection.ts'
import type { Sample } from '../load/load.ts'
import { Load } from '../load/load.ts'
import type { Peers } from '../subjects/peers.ts'
import { startPeer } from '../subjects/peers.ts'
import type { Setting, Subject, SubjectName } from '../subjects/subject.ts'
import { startSubject, subjectNames } from '../subjects/subject.ts'
import { cpuSeconds, memoryNow } from '../system/proc.ts'
import { figure, median, percentile, rangeOf } from './figures.ts'

/** Many short rounds: a machine that is busy for some seconds then spoils only a few of them. */
export const ROUNDS = 12
/** The share of the calls of a plan that one round makes. */
const ROUND_SHARE = 0.25

export interface Plan {
  readonly connections: number
  readonly warmUp: number
  readonly count: number
  readonly secondsMax: number
  callsFor(keys: readonly string[], manner: Manner): readonly Call[]
}

/** The first round has the full warm-up; that of the other rounds only opens the connections. */
export const planOfRound = (plan: Plan, round: number): Plan => ({
  ...plan,
  warmUp: round === 1 ? plan.warmUp : plan.connections,
  count: Math.ceil(plan.count * ROUND_SHARE),
})

export interface Round {
  readonly cpuMicros: number
  readonly callsPerSecond: number
  /** The share of its core that the subject used. Well below 1, the subject was waiting for the load generator. */
  readonly busy: number
  readonly firstP50: number
  readonly firstP99: number
  readonly totalP50: number
  readonly totalP99: number
  readonly memory: number
  /** Connections to the upstream that the warm-up and the round opened. */
  readonly opened: number
}

/** By the name of the subject: Weir, nginx and the bare proxy always; peers if they are installed and answer. */
export type Rounds = Readonly<Record<SubjectName, Round[]>> & Readonly<Record<string, Round[]>>

export interface RoundsParts extends Setting {
  readonly plan: Plan
  readonly peers: Peers
  say(line: string): void
}

export interface RoundsResult {
  readonly rounds: Rounds
  /** A sentence about the peers that failed, for the report; empty if none failed. */
  readonly leftOut: string
}

export async function runRounds(parts: RoundsParts): Promise<RoundsResult> {
  const rounds: Record<SubjectName, Round[]> & Record<string, Round[]> = { 'nginx': [], 'bun-proxy': [], 'weir': [] }
  const leftOut: string[] = []
  const leaveOut = (name: string, fault: unknown): void => {
    // A run needs Weir, nginx and the bare proxy. A peer that fails must not end it.
    if (isOwn(name)) throw fault
    delete rounds[name]
    const [why] = (fault as Error).message.split('\n')
    leftOut.push(`${name} (${why!.slice(0, 100)})`)
    parts.say(`  ${name} is left out: ${(fault as Error).message}`)
  }
  const subjects = new Set<Subject>()
  for (const start of startersOf(parts)) {
    await start.run().then(
      subject => subjects.add(subject),
      fault => leaveOut(start.name, fault),
    )
  }
  for (let round = 1; round <= ROUNDS; round++) {
    for (const subject of subjects) {
      try {
        const result = await runRound(subject, { ...parts, plan: planOfRound(parts.plan, round) })
        ;(rounds[subject.name] ??= []).push(result)
        parts.say(`  round ${round}, ${subject.name}: ${figure(result.cpuMicros)} µs of CPU`)
      } catch (fault) {
        leaveOut(subject.name, fault)
        subjects.delete(subject)
        await subject.stop()
      }
    }
  }
  for (const subject of subjects) await subject.stop()
  return { rounds, leftOut: leftOut.length === 0 ? '' : ` Left out, because it failed: ${leftOut.join('; ')}.` }
}

const isOwn = (name: string): name is SubjectName => (subjectNames as readonly string[]).includes(name)

interface Starter {
  readonly name: string
  run(): Promise<Subject>
}

const startersOf = (parts: RoundsParts): readonly Starter[] => [
  ...subjectNames.map(name => ({ name, run: () => startSubject(name, parts) })),
  ...parts.peers.found.map(found => ({ name: found.peer.name, run: () => startPeer(found, parts) })),
]

type RoundParts = Pick<RoundsParts, 'plan' | 'upstream'>

export async function runRound(subject: Subject, { plan, upstream }: RoundParts): Promise<Round> {
  const openedBefore = await upstream.accepted()
  const calls = plan.callsFor(subject.keys, subject.manner)
  const load = await Load.open(subject.port, plan.connections, calls)
  const part = (count: number): number => Math.max(plan.connections, Math.ceil(count * subject.share))
  try {
    await load.run(part(plan.warmUp), plan.secondsMax)
    const cpuBefore = cpuSeconds(subject.pid)
    const sample = await load.run(part(plan.count), plan.secondsMax)
    const cpu = cpuSeconds(subject.pid) - cpuBefore
    const opened = (await upstream.accepted()) - openedBefore
    return { ...roundOf(sample, cpu), memory: memoryNow(subject.pid), opened }
  } finally {
    load.close()
  }
}

function roundOf(sample: Sample, cpu: number): Omit<Round, 'memory' | 'opened'> {
  return {
    cpuMicros: (cpu * 1e6) / sample.calls,
    callsPerSecond: sample.calls / sample.wallSeconds,
    busy: cpu / sample.wallSeconds,
    firstP50: percentile(sample.firstMs, 0.5),
    firstP99: percentile(sample.firstMs, 0.99),
    totalP50: percentile(sample.totalMs, 0.5),
    totalP99: percentile(sample.totalMs, 0.99),
  }
}

export const medianOf = (rounds: readonly Round[], field: keyof Round): number =>
  median(rounds.map(round => round[field]))

/** The CPU of Weir divided by that of another subject: the median of the ratios of all rounds. */
export function ratioTo(rounds: Rounds, other: string): number {
  return median(rounds.weir.map((round, index) => round.cpuMicros / rounds[other]![index]!.cpuMicros))
}

type Column = readonly [name: string, write: (of: readonly Round[]) => string]

/** One row for each subject: its CPU, the ratio of Weir to it, and further columns. */
export function roundsTable(rounds: Rounds, columns: readonly Column[]): string[][] {
  const head = ['subject', 'CPU µs', 'all rounds, from – to', 'Weir is', ...columns.map(([name]) => name)]
  const rows = Object.entries(rounds).map(([name, of]) => {
    const ratio = name === 'weir' ? '' : `${figure(ratioTo(rounds, name))}×`
    return [
      name,
      figure(medianOf(of, 'cpuMicros')),
      rangeOf(of.map(round => round.cpuMicros)),
      ratio,
      ...columns.map(([, write]) => write(of)),
    ]
  })
  return [head, ...rows]
}
