// From starting the process to the first answered call, with the packages installed and a key in the database.

import { plainCalls } from '../load/calls.ts'
import type { Call } from '../load/connection.ts'
import { Connection } from '../load/connection.ts'
import { launch } from '../subjects/subject.ts'
import type { Child } from '../system/workbench.ts'
import { freePort } from '../system/workbench.ts'
import { startPlainUpstream } from '../upstreams/upstream.ts'
import { figure, median } from './figures.ts'
import type { Measure } from './measure.ts'

const MS_MAX = 10_000

export const measureStart: Measure = async measuring => {
  const { bench, home, quick } = measuring
  const upstream = await startPlainUpstream(bench)
  const [call] = plainCalls(home.keys)
  const times: number[] = []
  // The first start of a data folder also makes a key, and is not counted.
  for (let start = 0; start <= (quick ? 3 : 7); start++) {
    const port = await freePort()
    const startMs = performance.now()
    const child = launch('weir', { bench, home, upstream }, port)
    await firstAnswer(port, { child, call: call!, untilMs: startMs + MS_MAX })
    if (start > 0) times.push(performance.now() - startMs)
    await bench.stop(child)
  }
  await upstream.stop()
  return {
    title: 'Start',
    about: 'From spawning `bin/weir serve` to a call answered with 200, asked for every millisecond.',
    table: [
      ['starts', 'median ms', 'least', 'most'],
      [times.length, median(times), Math.min(...times), Math.max(...times)].map((value, index) =>
        index === 0 ? String(value) : figure(value),
      ),
    ],
    targets: [{ what: 'start to first answered call', most: 500, unit: ' ms', measured: median(times) }],
  }
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
