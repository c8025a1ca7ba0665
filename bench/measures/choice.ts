// Limits and routing alone: what they cost a call, and what a limited key costs in memory.

import { runProgram } from '../system/program.ts'
import { figure, median } from './figures.ts'
import type { Measure } from './measure.ts'

const ROUNDS = 3

interface Round {
  readonly cpuMicros: number
  readonly bytesPerKey: number
}

export const measureChoice: Measure = async ({ quick, say }) => {
  const calls = quick ? 50_000 : 500_000
  const run = (which: string): Round => {
    const rounds = Array.from(
      { length: ROUNDS },
      () => JSON.parse(runProgram('choice/calls.ts', [calls, which])) as Round,
    )
    const cpuMicros = median(rounds.map(round => round.cpuMicros))
    say(`  ${which}: ${figure(cpuMicros)} µs of CPU a call`)
    return { cpuMicros, bytesPerKey: median(rounds.map(round => round.bytesPerKey)) }
  }
  const [limits, routing, both] = [run('limits'), run('routing'), run('both')]
  return {
    title: 'Limits and routing',
    about:
      'No sockets and no ledger: a call is let in by all limits that it meets, its channel is chosen, how it went is ' +
      'noted, its tokens are corrected and its place is given back. 10,000 active keys, each with ten limits besides ' +
      'its calls a minute (by key, account, model and tier, a minute and a day); 1,000 channels with caps behind one ' +
      `name for two models; 20,000 conversations that keep to their channels. ${calls.toLocaleString('en-US')} calls ` +
      `after as many to warm up, medians of ${ROUNDS} rounds. Memory is the heap after collection.`,
    table: [
      ['what', 'CPU µs a call', 'bytes a key'],
      ['limits', figure(limits.cpuMicros), figure(limits.bytesPerKey)],
      ['routing', figure(routing.cpuMicros), ''],
      ['both', figure(both.cpuMicros), ''],
    ],
    targets: [
      { what: 'limits and routing, CPU of a call', most: 8, unit: ' µs', measured: both.cpuMicros },
      { what: 'memory of an active key, ten limits', most: 1_024, unit: ' B', measured: limits.bytesPerKey },
    ],
  }
}
