// The full cross: every client, every upstream dialect, every feature. Ends non-zero when one does not work.
//
//   bin/weir-bun scripts/proof/dialects.ts [--client text] [--upstream text] [--feature text]

import { parseArgs } from 'node:util'
import { clients } from '../../test/dialects/clients/list.ts'
import { featureNames } from '../../test/dialects/features.ts'
import { cellName, runCell } from '../../test/dialects/matrix.ts'
import { dialects, startDialects } from '../../test/dialects/upstreams.ts'

const text = { type: 'string', default: '' } as const
const { values } = parseArgs({ options: { client: text, upstream: text, feature: text } })
const say = (line: string): void => void process.stdout.write(`${line}\n`)

const harness = await startDialects({ env: { WEIR_DRAIN_SECONDS: '0', LOG_LEVEL: 'error' } })
let [passed, failed, lossy] = [0, 0, 0]
for (const client of clients.filter(({ name }) => name.includes(values.client))) {
  for (const upstream of dialects.filter(name => name.includes(values.upstream))) {
    for (const feature of featureNames.filter(name => name.includes(values.feature))) {
      const cell = { client, upstream, feature }
      const { fault, losses } = await runCell(harness, cell)
      if (fault === undefined) passed++
      else failed++
      if (losses.length > 0) lossy++
      if (fault !== undefined) say(`FAIL  ${cellName(cell)}\n      ${String(fault).replaceAll('\n', '\n      ')}`)
      else if (losses.length > 0) say(`lost  ${cellName(cell)}: ${losses.join(', ')}`)
    }
  }
}
await harness.stop()
say(`${passed} passed (${lossy} with a said loss), ${failed} failed`)
process.exit(failed === 0 ? 0 : 1)
