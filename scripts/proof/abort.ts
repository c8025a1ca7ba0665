// Callers that leave, a thousand of them and more, in waves: how long until their upstreams are let go, and until their
// holds are settled. Ends non-zero when it takes longer than guarantee G5 says.
//
//   bin/weir-bun scripts/proof/abort.ts [--waves 120]
//
// The callers and the upstream are in this process, so that both ends are timed by one clock.

import { parseArgs } from 'node:util'
import { percentile } from '../../bench/measures/figures.ts'
import { callOf, House, say, sayMachine } from './load/house.ts'
import { Line } from './load/line.ts'
import { startUpstream } from './load/upstream.ts'

const { values } = parseArgs({ options: { waves: { type: 'string' } } })
const waves = Number(values.waves ?? '120')
const CALLERS = 10

/** What a caller asked for, and when it leaves: as soon as it is upstream, or when the first bytes have come. */
const kinds = {
  'plain, waiting': { does: 'silent', afterBody: false },
  'stream, before its first word': { does: 'silent', afterBody: false, stream: true },
  'stream, in the middle': { does: 'stream 1000 20', afterBody: true, stream: true },
} as const

type Kind = keyof typeof kinds

const asked = new Map<string, () => void>()
const left = new Map<string, (ms: number) => void>()
const upstream = startUpstream(0, {
  onAsked: name => asked.get(name)?.(),
  onLeft: name => left.get(name)?.(performance.now()),
})

type Leave = () => Promise<number>

/** Calls, and gives what then leaves: milliseconds from the caller's close to that of its upstream's socket. */
async function call(port: number, key: string, { kind, name }: { kind: Kind; name: string }): Promise<Leave> {
  const { does, afterBody, ...more } = kinds[kind]
  const line = (await Line.open(port))!
  const arrived = Promise.withResolvers<void>()
  const closed = Promise.withResolvers<number>()
  if (!afterBody) asked.set(name, arrived.resolve)
  left.set(name, closed.resolve)
  const stream = 'stream' in more ? { stream: true } : {}
  void line.send(callOf(key, `${does} #${name}`, stream), afterBody ? arrived.resolve : undefined)
  await arrived.promise
  return async () => {
    await Bun.sleep(Math.random() * 20)
    const sinceMs = performance.now()
    line.close()
    const ms = (await closed.promise) - sinceMs
    asked.delete(name)
    left.delete(name)
    return ms
  }
}

sayMachine()
const house = await House.open(upstream.port)
const times: Record<string, number[]> = {}
const settles: number[] = []
try {
  const { port, child } = await house.serve()
  for (let wave = 0; wave < waves; wave++) {
    const kind = Object.keys(kinds)[wave % 3] as Kind
    const names = Array.from({ length: CALLERS }, (_, at) => `${wave}-${at}`)
    const ready = await Promise.all(names.map((name, at) => call(port, house.keys[at]!, { kind, name })))
    const measured = await Promise.all(ready.map(go => go()))
    const sinceMs = performance.now()
    while (house.openHolds() > 0 && performance.now() - sinceMs < 10_000) await Bun.sleep(2)
    settles.push(performance.now() - sinceMs)
    if (wave >= 3) (times[kind] ??= []).push(...measured) // the first of each kind is compiled while it runs
  }
  const { n } = house.query<{ n: number }>("SELECT count(*) AS n FROM record WHERE outcome = 'client_left'")
  say(`${waves * CALLERS} callers left; ${n} records say so; ${house.openHolds()} holds are open`)
  process.kill(child.pid, 'SIGINT')
  await child.exited
} finally {
  house.close()
  upstream.stop()
}

let isMissed = false
function tell(name: string, list: readonly number[], most: number): void {
  const sorted = Float64Array.from(list).sort()
  const at = (share: number): number => percentile(sorted, share)
  isMissed ||= at(0.99) > most
  const told = [0.5, 0.99, 1]
    .map(at)
    .map(ms => ms.toFixed(1).padStart(8))
    .join('')
  say(`${name.padEnd(34)} ${told}   ${String(list.length).padStart(5)}`)
}
say(`\n${''.padEnd(34)}      p50     p99     max   times (ms)`)
for (const [kind, list] of Object.entries(times)) tell(kind, list, 100)
tell('all', Object.values(times).flat(), 100)
tell('a wave, until all are settled', settles, 1_000)
process.exit(isMissed ? 1 : 0)
