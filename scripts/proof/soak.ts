// Mixed load for a long time: plain calls and streams; a tenth of the callers disconnect, and a twentieth of the upstream
// answers fail. Prints memory, descriptors, holds and the size of the log, and at the end how much each grows per hour.
// Exits with 1 if descriptors or holds do not return to their first values, or if a call ended in a wrong way.
//
//   bin/weir-bun scripts/proof/soak.ts [--minutes 60] [--rate 150] [--every 10]

import { parseArgs } from 'node:util'
import { memoryNow } from '../../bench/system/proc.ts'
import { CallerConnection } from './load/caller-connection.ts'
import { chatRequest, descriptorsOf, printMachine, Testbed } from './load/testbed.ts'
import { print } from './output.ts'

const { values } = parseArgs({
  options: { minutes: { type: 'string' }, rate: { type: 'string' }, every: { type: 'string' } },
})
const minutes = Number(values.minutes ?? '60')
const rate = Number(values.rate ?? '150')
const everySeconds = Number(values.every ?? '10')

const chance = (share: number): boolean => Math.random() < share
const oneOf = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)]!

const counts: Record<string, number> = {}
const count = (name: string): void => void (counts[name] = (counts[name] ?? 0) + 1)
/** Active calls of this program. */
let activeCalls = 0

async function callOnce(port: number, key: string): Promise<void> {
  activeCalls++
  try {
    const connection = await CallerConnection.open(port)
    if (connection === undefined) return count('no connection')
    const isFault = chance(0.05)
    const healthy = chance(0.6) ? oneOf(['plain 0', 'plain 50', 'plain 400']) : oneOf(['stream 20 20', 'stream 60 50'])
    const behavior = isFault ? `fault ${oneOf(['500', 'reset', 'cut', 'broken'])}` : healthy
    const isStreamed = /stream|cut|broken/.test(behavior)
    const answer = connection.send(chatRequest(key, behavior, isStreamed ? { stream: true } : {}))
    if (!isFault && chance(0.1)) {
      await Promise.race([answer, Bun.sleep(Math.random() * 300)])
      connection.close()
      return count('disconnected')
    }
    const { status, body } = await answer
    connection.close()
    const isComplete = !isStreamed || status !== 200 || body.toString().endsWith('data: [DONE]\n\n')
    count(isFault ? `fault ${status}` : isComplete ? `${status}` : 'cut off')
  } finally {
    activeCalls--
  }
}

interface Sample {
  readonly minute: number
  readonly memory: number
  readonly descriptors: number
  readonly holds: number
  readonly wal: number
}

/** Growth per hour, by least squares over the samples after the first third. */
function growth(samples: readonly Sample[], name: Exclude<keyof Sample, 'minute'>): number {
  const late = samples.slice(Math.floor(samples.length / 3))
  const mean = (read: (one: Sample) => number): number => late.reduce((sum, one) => sum + read(one), 0) / late.length
  const [atMean, valueMean] = [mean(one => one.minute), mean(one => one[name])]
  const over = late.reduce((sum, one) => sum + (one.minute - atMean) * (one[name] - valueMean), 0)
  const under = late.reduce((sum, one) => sum + (one.minute - atMean) ** 2, 0)
  return under === 0 ? 0 : (60 * over) / under
}

printMachine()
const testbed = await Testbed.open()
let hasFailed = false
try {
  const { port, child } = await testbed.serve()
  const startMs = performance.now()
  const endMs = startMs + minutes * 60_000
  const samples: Sample[] = []
  const takeSample = (): Sample => ({
    minute: (performance.now() - startMs) / 60_000,
    memory: memoryNow(child.pid),
    descriptors: descriptorsOf(child.pid),
    holds: testbed.openHolds(),
    wal: testbed.bytesOf('weir.db-wal') / 1_000_000,
  })
  const atRest = takeSample()
  let [sent, sampledMs] = [0, startMs]
  for (; performance.now() < endMs; await Bun.sleep(5)) {
    const due = Math.floor(((performance.now() - startMs) * rate) / 1_000)
    for (; sent < due; sent++) void callOnce(port, testbed.keys[sent % testbed.keys.length]!)
    if (performance.now() - sampledMs < everySeconds * 1_000) continue
    sampledMs = performance.now()
    const sample = takeSample()
    samples.push(sample)
    print(
      `${sample.minute.toFixed(1).padStart(6)} min  ${sample.memory.toFixed(0).padStart(5)} MB  ` +
        `${String(sample.descriptors).padStart(5)} descriptors  ${String(sample.holds).padStart(4)} holds  ` +
        `${sample.wal.toFixed(1).padStart(5)} MB of log  ${activeCalls} active calls`,
    )
  }
  const graceMs = performance.now() + 15_000
  while ((activeCalls > 0 || testbed.openHolds() > 0) && performance.now() < graceMs) await Bun.sleep(50)
  await Bun.sleep(35_000) // by then the gateway has closed idle connections
  const after = takeSample()
  print(`\ncalls ${JSON.stringify(counts)}`)
  for (const name of ['memory', 'descriptors', 'holds', 'wal'] as const) {
    const [first, last] = [atRest[name], after[name]].map(value => value.toFixed(1))
    const perHour = growth(samples, name).toFixed(2).padStart(9)
    print(`${name.padEnd(12)} ${perHour} per hour; at rest ${first} before, ${last} after`)
  }
  const { n } = testbed.query<{ n: number }>('SELECT count(*) AS n FROM record')
  print(`${n} records, ${(testbed.bytesOf('weir.db') / n).toFixed(0)} bytes each`)
  const odd = Object.keys(counts).filter(name => !/^(200|disconnected|fault (0|200|502|503))$/.test(name))
  if (odd.length > 0) print(`calls that ended in a wrong way: ${odd.join(', ')}`)
  hasFailed = odd.length > 0 || after.holds > 0 || after.descriptors > atRest.descriptors + 20
  process.kill(child.pid, 'SIGINT')
  const code = await child.exited
  hasFailed ||= code !== 0
  print(`the gateway exited with ${code}`)
} finally {
  testbed.close()
}
process.exit(hasFailed ? 1 : 0)
