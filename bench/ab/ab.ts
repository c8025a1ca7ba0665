// npm run bench:ab -- <commit> [<commit>] [--only …] [--rounds <n>] [--quick]: whether B uses more or less CPU than A
// on this machine. A is a commit; B is another commit or the working tree. Both run on one core, with the load
// generator and the upstreams of this working tree. They are loaded in turn, A B B A A B B A …, for half a second each,
// so that a machine that is busy for some seconds affects both alike.

import { join } from 'node:path'
import { figure, median } from '../measures/figures.ts'
import { writeTable } from '../report.ts'
import type { WeirHome } from '../subjects/weir-home.ts'
import { makeWeirHome } from '../subjects/weir-home.ts'
import type { Workbench } from '../system/workbench.ts'
import { root, runOnWorkbench, say } from '../system/workbench.ts'
import type { ComparisonOptions } from './arguments.ts'
import { readArguments } from './arguments.ts'
import type { Costs } from './compare.ts'
import { compare, verdict } from './compare.ts'
import type { Measured, Opened, Run } from './kinds.ts'
import { kinds } from './kinds.ts'
import { hasOtherPackages, makeTree } from './trees.ts'

interface Round {
  readonly a: Measured
  readonly b: Measured
}

type Side = keyof Round

async function compareAll(bench: Workbench, { a, b, only, rounds, quick }: ComparisonOptions): Promise<void> {
  const trees = { a: makeTree(root, a, join(bench.folder, 'a')), b: makeTree(root, b, join(bench.folder, 'b')) }
  for (const tree of Object.values(trees)) {
    if (hasOtherPackages(root, tree))
      say(`${tree.title} has another package-lock.json; it runs with the packages of this working tree.`)
  }
  const runOf = (side: Side): Run => {
    const program = trees[side].folder
    let home: WeirHome | undefined
    return { bench, program, quick, home: () => (home ??= makeWeirHome(bench, program, `data-${side}`)) }
  }
  const runs = { a: runOf('a'), b: runOf('b') }
  process.stdout.write(`A is ${trees.a.title}\nB is ${trees.b.title}\n`)
  for (const name of only) {
    const done: Round[] = []
    while (done.length < rounds) {
      const opened = { a: await kinds[name]!(runs.a), b: await kinds[name]!(runs.b) }
      const last = Math.min(rounds, done.length + ROUNDS_A_START)
      while (done.length < last) done.push(await measureRound(opened, done.length % 2 === 1))
      await Promise.all([opened.a.close(), opened.b.close()])
      say(`  ${name}, ${done.length} of ${rounds} rounds: ${figure(compare(pairsOf(done)).ratio)} is the median of B/A`)
    }
    process.stdout.write(`\n${writeComparison(name, done)}`)
  }
}

/** Then both sides are started again, because compiled code and memory layout differ between two starts. */
const ROUNDS_A_START = 10

/** The order changes from round to round, so that a machine that slows down affects both sides. */
async function measureRound(opened: Readonly<Record<Side, Opened>>, isBFirst: boolean): Promise<Round> {
  if (!isBFirst) return { a: await opened.a.measure(), b: await opened.b.measure() }
  const b = await opened.b.measure()
  return { a: await opened.a.measure(), b }
}

const pairsOf = (rounds: readonly Round[]): readonly Costs[] =>
  rounds.map(({ a, b }) => ({ a: a.cpuMicros, b: b.cpuMicros }))

function writeComparison(name: string, rounds: readonly Round[]): string {
  const row = (title: string, of: (measured: Measured) => number): readonly [string, number, number] => [
    title,
    median(rounds.map(({ a }) => of(a))),
    median(rounds.map(({ b }) => of(b))),
  ]
  const threads = new Set(rounds.flatMap(({ a, b }) => [...a.threads.keys(), ...b.threads.keys()]))
  const used = [...threads]
    .map(thread => row(`thread ${thread}`, measured => measured.threads.get(thread) ?? 0))
    .filter(([, a, b]) => Math.max(a, b) >= 1)
    .sort((one, other) => other[1] - one[1])
  const rows = [row('whole process', measured => measured.cpuMicros), ...used]
  const table = rows.map(([title, a, b]) => [title, figure(a), figure(b)])
  return [
    `## ${name}, ${rounds.length} rounds\n`,
    `${writeTable([['CPU µs a call, medians', 'A', 'B'], ...table])}\n`,
    `${verdict(compare(pairsOf(rounds)), rounds.length)}\n`,
  ].join('\n')
}

let options: ComparisonOptions
try {
  options = readArguments(process.argv.slice(2))
} catch (fault) {
  say((fault as Error).message)
  process.exit(2)
}
await runOnWorkbench('bench:ab', bench => compareAll(bench, options))
