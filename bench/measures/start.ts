// The time from the start of the process to the first answered call, with the packages installed and a key in the database;
// and the time of the commands that need no gateway.

import { join } from 'node:path'
import { freePort } from '../../test/support/free-port.ts'
import { plainCalls } from '../load/calls.ts'
import type { Call } from '../load/connection.ts'
import { Connection } from '../load/connection.ts'
import { launch } from '../subjects/subject.ts'
import type { WeirHome } from '../subjects/weir-home.ts'
import type { Child } from '../system/workbench.ts'
import { read, SUBJECT_CORE } from '../system/workbench.ts'
import { startPlainUpstream } from '../upstreams/upstream.ts'
import { figure, median } from './figures.ts'
import type { Measure } from './measure.ts'

const MS_MAX = 10_000
/** Commands that need no gateway. */
const COMMANDS = [['help'], ['version'], ['completion', 'bash']] as const

export const measureStart: Measure = async measuring => {
  const { bench, home, quick } = measuring
  const upstream = await startPlainUpstream(bench)
  const [call] = plainCalls(home.keys)
  const runs = quick ? 3 : 7
  const times: number[] = []
  // The first start of a data folder also creates a key, and is not counted.
  for (let start = 0; start <= runs; start++) {
    const port = freePort()
    const startMs = performance.now()
    const child = launch('weir', { bench, home, upstream }, port)
    await firstAnswer(port, { child, call: call!, untilMs: startMs + MS_MAX })
    if (start > 0) times.push(performance.now() - startMs)
    await bench.stop(child)
  }
  await upstream.stop()
  const rows = COMMANDS.map(args => ({ name: `weir ${args.join(' ')}`, times: runCommand(home, args, runs) }))
  const slowest = Math.max(...rows.map(row => median(row.times)))
  return {
    title: 'Start',
    about:
      'Serve: from spawning `bin/weir serve` to a call answered with 200, asked for every millisecond. Commands that ' +
      'need no gateway: from spawning to the end.',
    table: [
      ['what', 'runs', 'median ms', 'least', 'most'],
      ...[{ name: 'weir serve', times }, ...rows].map(row => [
        ...[row.name, String(row.times.length)],
        ...[median(row.times), Math.min(...row.times), Math.max(...row.times)].map(figure),
      ]),
    ],
    targets: [
      { what: 'start to first answered call', most: 250, unit: ' ms', measured: median(times) },
      { what: 'slowest command that needs no gateway', most: 60, unit: ' ms', measured: slowest },
    ],
  }
}

/** The first run reads the files from the disk and is not counted. */
function runCommand({ program, env }: WeirHome, args: readonly string[], runs: number): number[] {
  const command = ['taskset', '-c', String(SUBJECT_CORE), join(program, 'bin', 'weir'), ...args]
  const times = Array.from({ length: runs + 1 }, () => {
    const startMs = performance.now()
    read(command, env)
    return performance.now() - startMs
  })
  return times.slice(1)
}

async function firstAnswer(port: number, run: { child: Child; call: Call; untilMs: number }): Promise<void> {
  for (;;) {
    const connection = await Connection.open(port).catch(() => undefined)
    if (connection !== undefined) {
      await connection.send(run.call)
      return connection.close()
    }
    if (run.child.hasExited || performance.now() > run.untilMs) throw new Error('Weir did not start.')
    await Bun.sleep(1)
  }
}
