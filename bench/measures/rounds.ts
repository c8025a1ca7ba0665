// Loads the subjects in turn, again and again, so that whatever else the machine does meets all of them alike.

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

/** Many short rounds instead of few long ones: a machine that is busy for some seconds then spoils few of them. */
export const ROUNDS = 12
/** Of the calls of a plan. */
export const ROUND_SHARE = 0.25

export interface Plan {
  readonly connections: number
  readonly warmUp: number
  readonly count: number
  readonly secondsMax: number
  callsFor(keys: readonly string[], manner: Manner): readonly Call[]
}

/** The first round warms up in full; the others let the connections open. */
export const planOfRound = (plan: Plan, round: number): Plan => ({
  ...plan,
  warmUp: round === 1 ? plan.warmUp : plan.connections,
  count: Math.ceil(plan.count * ROUND_SHARE),
})

export interface Round {
  readonly cpuMicros: number
  readonly callsPerSecond: number
  /** The share of its core that the subject used: well below 1, it was waiting for the load. */
  readonly busy: number
  readonly firstP50: number
  readonly firstP99: number
  readonly totalP50: number
  readonly totalP99: number
  readonly memory: number
  /** Connections to the upstream that the warm-up and the round opened. */
  readonly opened: number
}

/** By the name of the subject: Weir and the floor always, peers as far as they are there and answer. */
export type Rounds = Readonly<Record<SubjectName, Round[]>> & Readonly<Record<string, Round[]>>

export interface RoundsParts extends Setting {
  readonly plan: Plan
  readonly peers: Peers
  say(line: string): void
}

export interface RoundsResult {
  readonly rounds: Rounds
  /** A sentence on the peers that did not work, for the report; empty when all did. */
  readonly leftOut: string
}

export async function runRounds(parts: RoundsParts): Promise<RoundsResult> {
  const rounds: Record<SubjectName, Round[]> & Record<string, Round[]> = { 'nginx': [], 'bun-proxy': [], 'weir': [] }
  const leftOut: string[] = []
  const leave = (name: string, fault: unknown): void => {
    // Without Weir or the floor there is no run; a peer that does not work must not end it.
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
      fault => leave(start.name, fault),
    )
  }
  for (let round = 1; round <= ROUNDS; round++) {
    for (const subject of subjects) {
      try {
        const result = await runRound(subject, { ...parts, plan: planOfRound(parts.plan, round) })
        ;(rounds[subject.name] ??= []).push(result)
        parts.say(`  round ${round}, ${subject.name}: ${figure(result.cpuMicros)} µs of CPU`)
      } catch (fault) {
        leave(subject.name, fault)
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

/** How many times the CPU of another subject Weir used: the median of the ratios inside each round. */
export function ratioTo(rounds: Rounds, other: string): number {
  return median(rounds.weir.map((round, index) => round.cpuMicros / rounds[other]![index]!.cpuMicros))
}

type Column = readonly [name: string, write: (of: readonly Round[]) => string]

/** One row a subject: its CPU, Weir's share of it, and the columns given. */
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
