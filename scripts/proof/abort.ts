// More than a thousand callers disconnect, in waves. Measures the time until the gateway closes the connection to the
// upstream, and until all holds are settled. Exits with 1 if it takes longer than guarantee G5 allows.
//
//   bin/weir-bun scripts/proof/abort.ts [--waves 120]
//
// The callers and the upstream run in this process, so that one clock times both.

import { parseArgs } from 'node:util'
import { percentile } from '../../bench/measures/figures.ts'
import { CallerConnection } from './load/caller-connection.ts'
import { chatRequest, printMachine, Testbed } from './load/testbed.ts'
import { startUpstream } from './load/upstream.ts'
import { print } from './output.ts'

const { values } = parseArgs({ options: { waves: { type: 'string' } } })
const waves = Number(values.waves ?? '120')
const CALLERS = 10

/**
 * The behavior of the upstream, and when the caller disconnects: when its request has arrived upstream, or when the
 * first bytes of the body have arrived.
 */
const kinds = {
  'plain, before the answer': { behavior: 'silent', afterBody: false },
  'stream, before the first event': { behavior: 'silent', afterBody: false, stream: true },
  'stream, in the middle': { behavior: 'stream 1000 20', afterBody: true, stream: true },
} as const

type Kind = keyof typeof kinds

const onRequest = new Map<string, () => void>()
const onDisconnect = new Map<string, (ms: number) => void>()
const upstream = startUpstream(0, {
  onRequest: name => onRequest.get(name)?.(),
  onDisconnect: name => onDisconnect.get(name)?.(performance.now()),
})

type Disconnect = () => Promise<number>

/** Starts a call. The result disconnects the caller and returns the milliseconds until the upstream's socket is closed. */
async function call(port: number, key: string, { kind, name }: { kind: Kind; name: string }): Promise<Disconnect> {
  const { behavior, afterBody, ...more } = kinds[kind]
  const connection = (await CallerConnection.open(port))!
  const arrived = Promise.withResolvers<void>()
  const closed = Promise.withResolvers<number>()
  if (!afterBody) onRequest.set(name, arrived.resolve)
  onDisconnect.set(name, closed.resolve)
  const stream = 'stream' in more ? { stream: true } : {}
  void connection.send(chatRequest(key, `${behavior} #${name}`, stream), afterBody ? arrived.resolve : undefined)
  await arrived.promise
  return async () => {
    await Bun.sleep(Math.random() * 20)
    const sinceMs = performance.now()
    connection.close()
    const ms = (await closed.promise) - sinceMs
    onRequest.delete(name)
    onDisconnect.delete(name)
    return ms
  }
}

printMachine()
const testbed = await Testbed.open(upstream.port)
const times: Record<string, number[]> = {}
const settles: number[] = []
try {
  const { port, child } = await testbed.serve()
  for (let wave = 0; wave < waves; wave++) {
    const kind = Object.keys(kinds)[wave % 3] as Kind
    const names = Array.from({ length: CALLERS }, (_, at) => `${wave}-${at}`)
    const ready = await Promise.all(names.map((name, at) => call(port, testbed.keys[at]!, { kind, name })))
    const measured = await Promise.all(ready.map(disconnect => disconnect()))
    const sinceMs = performance.now()
    while (testbed.openHolds() > 0 && performance.now() - sinceMs < 10_000) await Bun.sleep(2)
    settles.push(performance.now() - sinceMs)
    if (wave >= 3) (times[kind] ??= []).push(...measured) // the first wave of each kind is slower: its code is not compiled yet
  }
  const { n } = testbed.query<{ n: number }>("SELECT count(*) AS n FROM record WHERE outcome = 'client_left'")
  print(
    `${waves * CALLERS} callers disconnected; ${n} records have the outcome client_left; ${testbed.openHolds()} holds are open`,
  )
  process.kill(child.pid, 'SIGINT')
  await child.exited
} finally {
  testbed.close()
  upstream.stop()
}

let isMissed = false
function printTimes(name: string, list: readonly number[], most: number): void {
  const sorted = Float64Array.from(list).sort()
  const at = (share: number): number => percentile(sorted, share)
  isMissed ||= at(0.99) > most
  const columns = [0.5, 0.99, 1]
    .map(at)
    .map(ms => ms.toFixed(1).padStart(8))
    .join('')
  print(`${name.padEnd(34)} ${columns}   ${String(list.length).padStart(5)}`)
}
print(`\n${''.padEnd(34)}      p50     p99     max   times (ms)`)
for (const [kind, list] of Object.entries(times)) printTimes(kind, list, 100)
printTimes('all', Object.values(times).flat(), 100)
printTimes('until a wave is settled', settles, 1_000)
process.exit(isMissed ? 1 : 0)
