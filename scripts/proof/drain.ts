// Stops a gateway under two hundred streams, again and again, and looks at what became of every call. Ends non-zero
// when a call failed, a hold stayed open, or it took too long.
//
//   bin/weir-bun scripts/proof/drain.ts [--rounds 50] [--streams 200] [--verbose]
//
// After SIGTERM the streams must come to their last word, and callers that go on calling must be served, then told that
// it is over; none may be cut off. In every fifth round there is a second SIGTERM while the streams have long to go:
// then each must end with an error of its dialect, and still be settled.
//
// A connection that nobody has accepted yet when the listener closes is reset by the kernel, with whatever was sent on
// it. Such a call was not taken, like those that come later and find nobody; they are counted apart.

import { parseArgs } from 'node:util'
import type { Serving } from './load/house.ts'
import { callOf, House, say, sayMachine } from './load/house.ts'
import type { Answered } from './load/line.ts'
import { Line } from './load/line.ts'

const { values } = parseArgs({
  options: { rounds: { type: 'string' }, streams: { type: 'string' }, verbose: { type: 'boolean' } },
})
const rounds = Number(values.rounds ?? '50')
const streams = Number(values.streams ?? '200')
const CALLERS = 20
const WINDOW_SECONDS = 20
const DELAY_SECONDS = 1
const END = 'data: [DONE]\n\n'

interface Round {
  /** Streams by how they ended. */
  readonly whole: number
  readonly told: number
  readonly broken: number
  /** Calls that others made meanwhile, by status; 0: cut off on a connection that had served before. */
  readonly others: Readonly<Record<string, number>>
  readonly exitMs: number
  readonly code: number
  readonly openHolds: number
}

/** Calls one after the other, each on the same connection as long as that is open, until nobody takes one any more. */
async function callOn(port: number, request: Buffer, others: Record<string, number>): Promise<void> {
  for (let line: Line | undefined; ; await Bun.sleep(5)) {
    const isFresh = !line?.isOpen
    line = isFresh ? await Line.open(port) : line
    if (line === undefined) return
    const { status } = await line.send(request)
    const name = status === 0 && isFresh ? 'not taken' : String(status)
    others[name] = (others[name] ?? 0) + 1
  }
}

async function begin(count: number, port: number, request: (at: number) => Buffer): Promise<Promise<Answered>[]> {
  const begun: Promise<void>[] = []
  const ends: Promise<Answered>[] = []
  for (let at = 0; at < count; at++) {
    const line = await Line.open(port)
    const { promise, resolve } = Promise.withResolvers<void>()
    ends.push(line!.send(request(at), resolve))
    begun.push(promise)
  }
  await Promise.race([Promise.all(begun), Promise.all(ends), Bun.sleep(10_000)])
  return ends
}

async function runRound(house: House, { child, port }: Serving, isHurried: boolean): Promise<Round> {
  const does = isHurried ? 'stream 400 50' : 'stream 40 50'
  const ends = await begin(streams, port, at => callOf(house.keys[at % house.keys.length]!, does))
  const others: Record<string, number> = {}
  const plain = house.keys.map(key => callOf(key, 'plain 20'))
  const calling = Array.from({ length: CALLERS }, (_, at) => callOn(port, plain[at % plain.length]!, others))
  await Bun.sleep(Math.random() * 300)
  const sinceMs = performance.now()
  process.kill(child.pid, 'SIGTERM')
  if (isHurried) {
    await Bun.sleep(1_100 + Math.random() * 1_000)
    process.kill(child.pid, 'SIGTERM')
  }
  const code = await child.exited
  const exitMs = performance.now() - sinceMs
  const answers = await Promise.all(ends)
  await Promise.all(calling)
  const isWhole = ({ status, body }: Answered): boolean => status === 200 && body.toString().endsWith(END)
  const told = answers.filter(answer => isWhole(answer) && answer.body.includes('"draining"')).length
  const whole = answers.filter(isWhole).length - told
  return { whole, told, broken: answers.length - whole - told, others, exitMs, code, openHolds: house.openHolds() }
}

function faultsOf(round: Round, isHurried: boolean): readonly string[] {
  const { '200': _served, '503': _refused, 'not taken': _late, ...odd } = round.others
  return [
    round.broken > 0 && `${round.broken} streams were cut off`,
    !isHurried && round.told > 0 && `${round.told} streams were ended within the window`,
    Object.keys(odd).length > 0 && `other calls ended with ${JSON.stringify(odd)}`,
    round.code !== 0 && `ended with ${round.code}`,
    round.openHolds > 0 && `${round.openHolds} holds are open`,
    round.exitMs > (isHurried ? 0 : WINDOW_SECONDS * 1_000) + 5_000 + 2_000 * Number(isHurried) && 'took too long',
  ].filter(one => one !== false)
}

sayMachine()
const house = await House.open()
let failed = 0
const sums = { streams: 0, told: 0, served: 0, refused: 0, late: 0 }
const exits: number[] = []
try {
  for (let at = 1; at <= rounds; at++) {
    const isHurried = at % 5 === 0
    const env = { WEIR_DRAIN_SECONDS: String(WINDOW_SECONDS), WEIR_DRAIN_DELAY_SECONDS: String(DELAY_SECONDS) }
    const round = await runRound(house, await house.serve(env), isHurried)
    const faults = faultsOf(round, isHurried)
    if (faults.length > 0) failed++
    if (faults.length > 0 || values.verbose) say(`${at}: ${JSON.stringify(round)} ${faults.join('; ')}`)
    sums.streams += round.whole
    sums.told += round.told
    sums.served += round.others['200'] ?? 0
    sums.refused += round.others['503'] ?? 0
    sums.late += round.others['not taken'] ?? 0
    if (!isHurried) exits.push(round.exitMs)
  }
} finally {
  house.close()
}
say(`${rounds} rounds: ${sums.streams} streams to their last word, ${sums.told} ended with an error of their dialect;`)
say(`meanwhile ${sums.served} calls were served, ${sums.refused} told that it is over, ${sums.late} no longer taken`)
say(`from the signal to the end at most ${Math.max(...exits).toFixed(0)} ms without a second signal`)
say(`rounds with a fault: ${failed}`)
process.exit(failed === 0 ? 0 : 1)
