// Every fault for callers of every dialect on upstreams of every dialect, pairwise. Before content the caller gets an error
// of its dialect, after content an error event and a valid end of the stream, within the deadline. The official SDKs raise
// the right errors, and no call pays for what was not delivered. `scripts/proof/faults.ts` runs all pairs.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { errorMidStream } from '../../tools/fake-upstream/answers.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { gate, scripted } from '../../tools/fake-upstream/script.ts'
import type { Client, Way } from '../dialects/clients/client.ts'
import { generativeAi } from '../dialects/clients/google-legacy.ts'
import { clients } from '../dialects/clients/list.ts'
import type { Json } from '../dialects/raw-callers.ts'
import { callers } from '../dialects/raw-callers.ts'
import type { Replay } from '../dialects/replay.ts'
import { startReplay } from '../dialects/replay.ts'
import type { Dialect } from '../dialects/upstreams.ts'
import { dialects } from '../dialects/upstreams.ts'
import { until } from '../support/gateway.ts'
import type { Cell } from './cells.ts'
import { cellName, faultName, isNative, pairwiseCells } from './cells.ts'
import { FaultGateway, modelOf, providerOf } from './gateway.ts'
import type { RecordedRun } from './run-checks.ts'
import { checkRun } from './run-checks.ts'
import type { Runs } from './runs.ts'
import { ALL_CELLS_MS, listenForUnhandled, recordedRunOf, runCells } from './runs.ts'
import type { VerdictName } from './verdicts.ts'
import { unusedVerdicts, verdictOn } from './verdicts.ts'

const cells = pairwiseCells()
const forms = Map.groupBy(cells, ({ fault, stream }) => `${faultName(fault)}, ${stream ? 'streamed' : 'plain'}`)

test('every fault has a verdict, and every verdict a fault', () => {
  expect(cells.filter(cell => verdictOn(cell) === undefined).map(cellName)).toEqual([])
  expect(unusedVerdicts(cells.map(({ fault }) => fault))).toEqual([])
})

test('every fault occurs with every dialect on both sides, plain and streamed', () => {
  const upstreamsOf = (formCells: readonly Cell[]): number => new Set(formCells.map(({ upstream }) => upstream)).size
  for (const [name, formCells] of forms) {
    const inward = new Set(formCells.map(({ caller }) => (caller === 'gemini-array' ? 'gemini' : caller)))
    // A fault that not every dialect can have occurs with as many callers as upstreams.
    expect([name, inward.size >= upstreamsOf(formCells)]).toEqual([name, true])
  }
  expect([...forms.values()].filter(formCells => upstreamsOf(formCells) === dialects.length).length).toBeGreaterThan(
    200,
  )
})

let gateway: FaultGateway
let replay: Replay
let runs: Runs
let records: ReadonlyMap<number, Json>
const unhandled = listenForUnhandled()

beforeAll(async () => {
  gateway = await FaultGateway.start(cells)
  runs = await runCells(gateway, cells)
  records = gateway.records()
  replay = startReplay()
}, ALL_CELLS_MS)

afterAll(async () => {
  await replay.stop()
  await gateway.stop()
  unhandled.stop()
})

describe('a caller gets the expected result for', () => {
  test.each([...forms])('%s', async (_name, formCells) => {
    for (const cell of formCells) {
      try {
        const run = recordedRunOf(cell, runs, records)
        await checkRun(run)
        await readBySdks(run)
      } catch (fault) {
        throw new Error(`${cellName(cell)}: ${(fault as Error).message}`)
      }
    }
  })
})

/** Without generative-ai, which does not understand comments, and the AI SDK, which has no error classes. */
const ownClients = (cell: Cell): readonly Client[] =>
  clients.filter(({ name, dialect }) => dialect === cell.caller && !/^AI SDK|generative-ai$/.test(name))

/** Answers that SDKs have read already, without ids and numbers. */
const read = new Set<string>()
const likeness = ({ cell: { caller, stream }, answer: { status, text } }: RecordedRun): string =>
  [caller, stream, status, text.replace(/(fake|req_|cell-|call_|resp_|msg_)\w+|\d+/g, '')].join()

/** P8, P9, P10, P14: the SDKs raise failures with the right class, and read translated answers. */
async function readBySdks(run: RecordedRun): Promise<void> {
  const { cell, answer, record } = run
  const isFine = record.outcome === 'completed'
  if ((isFine && isNative(cell)) || cell.caller === 'gemini-array') return
  const key = likeness(run)
  if (read.has(key)) return
  read.add(key)
  const waysOf: readonly Way[] = cell.stream ? ['stream', 'helper'] : ['plain']
  for (const client of ownClients(cell)) {
    for (const way of waysOf) {
      const result = await replay.replay(client, way, answer)
      if (isFine) expect(result.fault).toBeUndefined()
      else expect(result.fault).toBeDefined()
      if (answer.status === 200) continue
      expect([client.name, result.fault!.kind]).toEqual([client.name, client.raises(answer.status)])
      if (client.hasRequestId) expect(result.fault!.requestId).toBe(answer.header('x-request-id')!)
    }
  }
}

/** Sends each chunk when the gateway has passed on the one before, so that the caller has content before the error. */
const slowly = (inner: Script): Script =>
  scripted(function* steps(request) {
    for (const step of inner.steps(request)) {
      if (step.kind === 'chunk') yield gate(untilProcessed())
      yield step
    }
  })

/** When other requests are answered, the gateway has processed what came before them. */
async function untilProcessed(): Promise<void> {
  for (let round = 0; round < 5; round++) await fetch(`${gateway.harness.url}/health/live`)
}

test('P8: the SDK that takes an error event for an answer gets an event that it cannot parse', async () => {
  const { harness } = gateway
  const session = generativeAi.connect(harness.url, await harness.key())
  const upstreams: readonly Dialect[] = ['gemini', 'anthropic-messages']
  for (const upstream of upstreams) {
    const model = modelOf(cells.find(cell => cell.upstream === upstream && cell.fault.id === 'F33')!)
    for (const way of ['stream', 'helper'] as const) {
      harness.upstream.plan(slowly(errorMidStream(['Hel', 'lo'], { message: 'Overloaded', type: 'overloaded_error' })))
      const answer = session.ask(way, { model, turns: [session.user('x')] })
      expect(session.fault(await answer.catch((fault: unknown) => fault)).kind).toBe('GoogleGenerativeAIError')
    }
  }
})

describe('after all faults', () => {
  test.each(callers)('callers of %s are served as before', async caller => {
    for (const stream of [false, true]) {
      const answer = await gateway.askHealthy(caller, stream).whole()
      expect([answer.status, answer.text.includes('Say')]).toEqual([200, true])
    }
  })

  test('no hold stays open, and only refused or spent credentials are logged as errors', async () => {
    const { harness } = gateway
    await harness.idle()
    expect(harness.openHolds()).toBe(0)
    const errors = harness.logs.filter(line => line.includes('"level":"error"')).map(line => JSON.parse(line) as Json)
    const alarmed = new Set(errors.map(({ channel }) => String(channel).split('#')[0]!))
    const of = (...names: readonly VerdictName[]): Set<string> =>
      new Set(cells.filter(cell => names.includes(verdictOn(cell)!)).map(providerOf))
    expect([...of('locked out').difference(alarmed)]).toEqual([])
    expect([...alarmed.difference(of('locked out', 'spent'))]).toEqual([])
    expect(unhandled.caught).toEqual([])
  })

  test('the balance agrees with the records to the nano-dollar', async () => {
    const { byAccount, byRecords } = await gateway.left()
    expect(byAccount as bigint).toBe(byRecords)
  })

  test('pooled sockets are closed when the gateway drains', async () => {
    await gateway.harness.gateway.drain()
    await until(() => gateway.openSockets === 0, 'no socket is left')
    expect(gateway.openSockets).toBe(0)
  })
})
