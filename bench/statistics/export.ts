// Exports records through the query worker, like the management interface, to a reader that discards them. Prints one line
// of JSON: the number of records, the time, and how much the memory has grown.
//
// export.ts <database> <records> <format>

import { readFileSync } from 'node:fs'
import type { ExportFormat } from '../../src/base/text/export-lines.ts'
import { operator } from '../../src/management/actor.ts'
import { startExport } from '../../src/management/resources/record-export.ts'
import { ExportSlots } from '../../src/management/web/export-slots.ts'
import { QueryWorker } from '../../src/store/queries/query-worker.ts'

const [database = '', wanted = '1000000', format = 'ndjson'] = process.argv.slice(2)
const NEWLINE = 10

const megabytes = (): number => Number(/VmRSS:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))![1]) / 1_024

const queryWorker = new QueryWorker(database)
await queryWorker.query('records', { scope: null, filter: {}, limit: 1 })
const before = megabytes()
const sinceMs = performance.now()
const search = { scope: null, filter: {}, format: format as ExportFormat, staff: true }
const slots = new ExportSlots({
  queryWorker,
  reader: undefined as never,
  nowMs: () => performance.now(),
  dateMs: Date.now,
})
const slot = await slots.enter(operator)
const reader = (await startExport(queryWorker, { search, gzip: false, slot })).body!.getReader()
let [rows, bytes, most] = [0, 0, before]
while (rows < Number(wanted)) {
  const { done, value } = await reader.read()
  if (done) break
  for (const byte of value) if (byte === NEWLINE) rows++
  bytes += value.length
  most = Math.max(most, megabytes())
}
await reader.cancel()
const seconds = (performance.now() - sinceMs) / 1_000
process.stdout.write(`${JSON.stringify({ rows, bytes, seconds, grown: most - before })}\n`)
queryWorker.close()
