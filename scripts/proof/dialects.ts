// Runs every client with every upstream dialect and every feature. Exits with 1 if one does not work.
//
//   bin/weir-bun scripts/proof/dialects.ts [--client text] [--upstream text] [--feature text]
//   bin/weir-bun scripts/proof/dialects.ts --write    only the published cells, into the table of results

import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { clients } from '../../test/dialects/clients/list.ts'
import { featureNames } from '../../test/dialects/features.ts'
import type { Cell, Outcome } from '../../test/dialects/matrix.ts'
import { cellName, runCell, startMatrix } from '../../test/dialects/matrix.ts'
import { publishedCells, resultsOf, resultsPath } from '../../test/dialects/results.ts'
import { dialects } from '../../test/dialects/upstreams.ts'
import { print } from './output.ts'

const text = { type: 'string', default: '' } as const
const write = { type: 'boolean', default: false } as const
const { values } = parseArgs({ options: { client: text, upstream: text, feature: text, write } })

const allCells: readonly Cell[] = clients.flatMap(client =>
  dialects.flatMap(upstream => featureNames.map(feature => ({ client, upstream, feature }))),
)
const cells = (values.write ? publishedCells : allCells).filter(
  ({ client, upstream, feature }) =>
    client.name.includes(values.client) && upstream.includes(values.upstream) && feature.includes(values.feature),
)

const harness = await startMatrix()
const outcomes: Outcome[] = []
for (const cell of cells) {
  const outcome = await runCell(harness, cell)
  outcomes.push(outcome)
  const { fault, losses } = outcome
  if (fault !== undefined) print(`FAIL  ${cellName(cell)}\n      ${String(fault).replaceAll('\n', '\n      ')}`)
  else if (losses.length > 0) print(`lost  ${cellName(cell)}: ${losses.join(', ')}`)
}
await harness.stop()
const failed = outcomes.filter(({ fault }) => fault !== undefined).length
const lossy = outcomes.filter(({ fault, losses }) => fault === undefined && losses.length > 0).length
print(`${outcomes.length - failed} passed (${lossy} with a reported loss), ${failed} failed`)
if (values.write) writeFileSync(resultsPath, `${JSON.stringify(resultsOf(outcomes), null, 1)}\n`)
process.exit(failed === 0 ? 0 : 1)
