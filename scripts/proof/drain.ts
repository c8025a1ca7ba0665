// Stops a gateway with two hundred active streams, in many rounds, and checks how every call ended. Exits with 1 if a call
// failed, a hold stayed open, or the stop took too long.
//
//   bin/weir-bun scripts/proof/drain.ts [--rounds 50] [--streams 200] [--verbose]
//
// After SIGTERM the streams must end normally. Other callers go on: their calls must be served, later refused with 503, and
// never cut off. In every fifth round a second SIGTERM comes while the streams are far from their end: then each must end
// with an error of its dialect and must still be settled.
//
// The kernel resets a connection that the gateway has not accepted when the listener closes. Such a call was not accepted,
// like the calls after it whose connections are refused; both are counted as "not accepted".

import { parseArgs } from 'node:util'
import type { CallAnswer } from './load/caller-connection.ts'
import { CallerConnection } from './load/caller-connection.ts'
import type { RunningGateway } from './load/testbed.ts'
import { chatRequest, printMachine, Testbed } from './load/testbed.ts'
import { print } from './output.ts'

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
  /** Streams that ended normally, with an error event, or in no legal way. */
  readonly completed: number
  readonly failed: number
  readonly broken: number
  /** Calls of the other callers, by status. 0: cut off on a connection that was used before. */
  readonly others: Readonly<Record<string, number>>
  readonly exitMs: number
  readonly code: number
  readonly openHolds: number
}

/** Makes one call after the other, on one connection as long as it is open, until the gateway accepts no connection. */
async function callOn(port: number, request: Buffer, others: Record<string, number>): Promise<void> {
  for (let connection: CallerConnection | undefined; ; await Bun.sleep(5)) {
    const isFresh = !connection?.isOpen
    connection = isFresh ? await CallerConnection.open(port) : connection
    if (connection === undefined) return
    const { status } = await connection.send(request)
    const name = status === 0 && isFresh ? 'not accepted' : String(status)
    others[name] = (others[name] ?? 0) + 1
  }
}

async function begin(count: number, port: number, request: (at: number) => Buffer): Promise<Promise<CallAnswer>[]> {
  const begun: Promise<void>[] = []
  const ends: Promise<CallAnswer>[] = []
  for (let at = 0; at < count; at++) {
    const connection = await CallerConnection.open(port)
    const { promise, resolve } = Promise.withResolvers<void>()
    ends.push(connection!.send(request(at), resolve))
    begun.push(promise)
  }
  await Promise.race([Promise.all(begun), Promise.all(ends), Bun.sleep(10_000)])
  return ends
}

async function runRound(testbed: Testbed, { child, port }: RunningGateway, isHurried: boolean): Promise<Round> {
  const behavior = isHurried ? 'stream 400 50' : 'stream 40 50'
  const ends = await begin(streams, port, at => chatRequest(testbed.keys[at % testbed.keys.length]!, behavior))
  const others: Record<string, number> = {}
  const plain = testbed.keys.map(key => chatRequest(key, 'plain 20'))
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
  const isComplete = ({ status, body }: CallAnswer): boolean => status === 200 && body.toString().endsWith(END)
  const failed = answers.filter(answer => isComplete(answer) && answer.body.includes('"draining"')).length
  const completed = answers.filter(isComplete).length - failed
  return {
    completed,
    failed,
    broken: answers.length - completed - failed,
    others,
    exitMs,
    code,
    openHolds: testbed.openHolds(),
  }
}

function faultsOf(round: Round, isHurried: boolean): readonly string[] {
  const { '200': _served, '503': _refused, 'not accepted': _notAccepted, ...odd } = round.others
  return [
    round.broken > 0 && `${round.broken} streams were cut off`,
    !isHurried && round.failed > 0 && `${round.failed} streams were ended within the window`,
    Object.keys(odd).length > 0 && `other calls ended with ${JSON.stringify(odd)}`,
    round.code !== 0 && `the gateway exited with ${round.code}`,
    round.openHolds > 0 && `${round.openHolds} holds are open`,
    round.exitMs > (isHurried ? 0 : WINDOW_SECONDS * 1_000) + 5_000 + 2_000 * Number(isHurried) &&
      'the stop took too long',
  ].filter(one => one !== false)
}

printMachine()
const testbed = await Testbed.open()
let failed = 0
const sums = { completed: 0, failed: 0, served: 0, refused: 0, notAccepted: 0 }
const exits: number[] = []
try {
  for (let at = 1; at <= rounds; at++) {
    const isHurried = at % 5 === 0
    const env = { WEIR_DRAIN_SECONDS: String(WINDOW_SECONDS), WEIR_DRAIN_DELAY_SECONDS: String(DELAY_SECONDS) }
    const round = await runRound(testbed, await testbed.serve(env), isHurried)
    const faults = faultsOf(round, isHurried)
    if (faults.length > 0) failed++
    if (faults.length > 0 || values.verbose) print(`${at}: ${JSON.stringify(round)} ${faults.join('; ')}`)
    sums.completed += round.completed
    sums.failed += round.failed
    sums.served += round.others['200'] ?? 0
    sums.refused += round.others['503'] ?? 0
    sums.notAccepted += round.others['not accepted'] ?? 0
    if (!isHurried) exits.push(round.exitMs)
  }
} finally {
  testbed.close()
}
print(`${rounds} rounds: ${sums.completed} streams ended normally, ${sums.failed} with an error of their dialect;`)
print(`other calls: ${sums.served} served, ${sums.refused} refused with 503, ${sums.notAccepted} not accepted`)
print(`from the signal to the exit at most ${Math.max(...exits).toFixed(0)} ms without a second signal`)
print(`rounds with a fault: ${failed}`)
process.exit(failed === 0 ? 0 : 1)
