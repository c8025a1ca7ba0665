// How fast the console is with 100,000 records: the time between two frames while a browser scrolls through all of them and
// new calls arrive, and the memory of the page. This program only prints figures, because they depend on the machine.
// test/console/many-rows.test.ts asserts what does not depend on it.
//
//   bin/weir-bun scripts/proof/console-frames.ts [--rows 100000]

import { parseArgs } from 'node:util'
import { openSite } from '../../test/console/support/browser.ts'
import { heapMib, ManyRows, scrollThrough } from '../../test/console/support/many-rows.ts'
import { buildConsole } from '../build-console.ts'

const { values } = parseArgs({ options: { rows: { type: 'string', default: '100000' } } })
const count = Number(values.rows)

const share = (sorted: readonly number[], part: number): string =>
  (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN).toFixed(1)

if (!(await buildConsole())) process.exit(1)
const { site, visitor, close } = await openSite({ callsMax: 1 })
try {
  const rows = new ManyRows(site)
  rows.add(count)
  for (const width of [1280, 390]) {
    await visitor.visit('/records', {
      axe: false,
      widths: [width],
      async act(page) {
        const adding = setInterval(() => rows.add(5), 200)
        const { frames, rowsMost } = await scrollThrough(page)
        clearInterval(adding)
        const sorted = frames.toSorted((a, b) => a - b)
        const times = [0.5, 0.95, 0.99, 1].map(part => share(sorted, part)).join(', ')
        console.log(
          `${width} pixels, ${count} records: ${frames.length} frames; p50, p95, p99 and longest: ${times} ms; ` +
            `at most ${rowsMost} rows in the page; heap ${(await heapMib(page)).toFixed(1)} MiB`,
        )
      },
    })
  }
} finally {
  await close()
}
