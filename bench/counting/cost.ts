// The cost of counting a call, of logging it, and of writing all metrics: CPU time, which depends less on other programs of
// the machine. Prints one line of JSON.
//
// cost.ts [<calls>]

import { bounds } from '../../src/base/bounds.ts'
import type { CallSummary } from '../../src/base/call-summary.ts'
import { buildLog } from '../../src/base/log.ts'
import { Metrics } from '../../src/base/metrics.ts'
import { nanos } from '../../src/base/money/money.ts'
import { buildAccessLog } from '../../src/management/metrics/access-log.ts'
import { CallMetrics } from '../../src/management/metrics/call-metrics.ts'
import type { RecordRow } from '../../src/store/ledger/hold-types.ts'

const calls = Number(process.argv[2] ?? 1_000_000)

const metrics = new Metrics()
const counts = new CallMetrics(metrics, () => true)
let logged = 0
const access = buildAccessLog(buildLog('info', line => void (logged += line.length)).info)

const call = (model: string, status = 200): CallSummary => ({
  requestId: 'req_06d2qtv2g00',
  dialect: 'openai-chat',
  status,
  outcome: 'completed',
  keyId: 1e12,
  provider: 'river',
  model,
  attempts: [{ channelId: 'river#abc', verdict: 'answered' }],
  durationMs: 900,
  firstContentMs: 600,
  overheadMs: 1.2,
  billed: { usage: { input: 10, output: 5 }, amount: nanos(12_345n) },
})
const tokens = { inputTokens: 10, outputTokens: 5, cacheReadTokens: 1, cacheWriteTokens: 1, reasoningTokens: 1 }
const row = { outcome: 'completed', provider: 'river', model: 'm0', ...tokens } as RecordRow

function cpuMs(run: () => void): number {
  const since = process.cpuUsage()
  run()
  const { user, system } = process.cpuUsage(since)
  return (user + system) / 1_000
}

function nanosecondsOf(run: () => void): number {
  for (let warm = 0; warm < calls / 4; warm++) run()
  const ms = cpuMs(() => {
    for (let done = 0; done < calls; done++) run()
  })
  return Math.round((ms / calls) * 1e6)
}

const one = call('m0')
const counted = nanosecondsOf(() => {
  counts.ended(one)
  counts.settled(row, nanos(12_345n))
})
const accessNs = nanosecondsOf(() => access.ended(one))
for (let model = 0; model <= bounds.metricModelsMax; model++) {
  for (const status of [200, 400, 429, 500, 503]) counts.ended(call(`m${model}`, status))
}
let bytes = 0
const TIMES = 10
const writeMs = cpuMs(() => {
  for (let done = 0; done < TIMES; done++) bytes = metrics.write().length
})
const result = { countNs: counted, accessNs, writeMs: Number((writeMs / TIMES).toFixed(1)), bytes }
process.stdout.write(`${JSON.stringify(result)}\n`)
