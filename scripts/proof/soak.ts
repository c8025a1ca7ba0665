// A mixed day, for as long as one likes: plain calls and streams, a tenth of whose callers leave, and a twentieth of
// whose upstreams fail. What must not grow is looked at all the time, and its slope is printed at the end; ends with 1
// when descriptors or holds do not come back to where they were, or when a call ended as none should.
//
//   bin/weir-bun scripts/proof/soak.ts [--minutes 60] [--rate 150] [--every 10]

import { parseArgs } from 'node:util'
import { memoryNow } from '../../bench/system/proc.ts'
import { callOf, descriptorsOf, House, say, sayMachine } from './load/house.ts'
import { Line } from './load/line.ts'

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
/** Calls of this program that are under way. */
let underWay = 0

async function callOnce(port: number, key: string): Promise<void> {
  underWay++
  try {
    const line = await Line.open(port)
    if (line === undefined) return count('no connection')
    const isFault = chance(0.05)
    const good = chance(0.6) ? oneOf(['plain 0', 'plain 50', 'plain 400']) : oneOf(['stream 20 20', 'stream 60 50'])
    const does = isFault ? `fault ${oneOf(['500', 'reset', 'cut', 'broken'])}` : good
    const isStreamed = /stream|cut|broken/.test(does)
    const answer = line.send(callOf(key, does, isStreamed ? { stream: true } : {}))
    if (!isFault && chance(0.1)) {
      await Promise.race([answer, Bun.sleep(Math.random() * 300)])
      line.close()
      return count('left')
    }
    const { status, body } = await answer
    line.close()
    const isWhole = !isStreamed || status !== 200 || body.toString().endsWith('data: [DONE]\n\n')
    count(isFault ? `fault ${status}` : isWhole ? `${status}` : 'broken off')
  } finally {
    underWay--
  }
}

interface Sample {
  readonly minute: number
  readonly memory: number
  readonly descriptors: number
  readonly holds: number
  readonly wal: number
}

/** How much it grows an hour, by least squares over what came after the first third. */
function slope(samples: readonly Sample[], name: Exclude<keyof Sample, 'minute'>): number {
  const late = samples.slice(Math.floor(samples.length / 3))
  const mean = (read: (one: Sample) => number): number => late.reduce((sum, one) => sum + read(one), 0) / late.length
  const [atMean, valueMean] = [mean(one => one.minute), mean(one => one[name])]
  const over = late.reduce((sum, one) => sum + (one.minute - atMean) * (one[name] - valueMean), 0)
  const under = late.reduce((sum, one) => sum + (one.minute - atMean) ** 2, 0)
  return under === 0 ? 0 : (60 * over) / under
}

sayMachine()
const house = await House.open()
let isBad = false
try {
  const { port, child } = await house.serve()
  const startMs = performance.now()
  const endMs = startMs + minutes * 60_000
  const samples: Sample[] = []
  const look = (): Sample => ({
    minute: (performance.now() - startMs) / 60_000,
    memory: memoryNow(child.pid),
    descriptors: descriptorsOf(child.pid),
    holds: house.openHolds(),
    wal: house.bytesOf('weir.db-wal') / 1_000_000,
  })
  const atRest = look()
  let [sent, lookedMs] = [0, startMs]
  for (; performance.now() < endMs; await Bun.sleep(5)) {
    const due = Math.floor(((performance.now() - startMs) * rate) / 1_000)
    for (; sent < due; sent++) void callOnce(port, house.keys[sent % house.keys.length]!)
    if (performance.now() - lookedMs < everySeconds * 1_000) continue
    lookedMs = performance.now()
    const seen = look()
    samples.push(seen)
    say(
      `${seen.minute.toFixed(1).padStart(6)} min  ${seen.memory.toFixed(0).padStart(5)} MB  ` +
        `${String(seen.descriptors).padStart(5)} descriptors  ${String(seen.holds).padStart(4)} holds  ` +
        `${seen.wal.toFixed(1).padStart(5)} MB of log  ${underWay} calls under way`,
    )
  }
  const graceMs = performance.now() + 15_000
  while ((underWay > 0 || house.openHolds() > 0) && performance.now() < graceMs) await Bun.sleep(50)
  await Bun.sleep(35_000) // connections that wait for their next call are closed by then
  const after = look()
  say(`\ncalls ${JSON.stringify(counts)}`)
  for (const name of ['memory', 'descriptors', 'holds', 'wal'] as const) {
    const [first, last] = [atRest[name], after[name]].map(value => value.toFixed(1))
    const grows = slope(samples, name).toFixed(2).padStart(9)
    say(`${name.padEnd(12)} ${grows} an hour; at rest ${first} before, ${last} after`)
  }
  const { n } = house.query<{ n: number }>('SELECT count(*) AS n FROM record')
  say(`${n} records, ${(house.bytesOf('weir.db') / n).toFixed(0)} bytes each`)
  const odd = Object.keys(counts).filter(name => !/^(200|left|fault (0|200|502|503))$/.test(name))
  if (odd.length > 0) say(`ended as none should: ${odd.join(', ')}`)
  isBad = odd.length > 0 || after.holds > 0 || after.descriptors > atRest.descriptors + 20
  process.kill(child.pid, 'SIGINT')
  const code = await child.exited
  isBad ||= code !== 0
  say(`ended with ${code}`)
} finally {
  house.close()
}
process.exit(isBad ? 1 : 0)
