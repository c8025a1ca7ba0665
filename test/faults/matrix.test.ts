// Every fault for callers of every dialect on upstreams of every dialect, in pairs: an error of the caller's dialect
// before content, its error event and a legal end after content, in time; the official SDKs raise what they should,
// nobody pays for what was not delivered, and nothing is left behind. `scripts/proof/faults.ts` runs all pairs.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { errorMidStream } from '../../tools/fake-upstream/answers.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { scripted, wait } from '../../tools/fake-upstream/script.ts'
import type { Client, Way } from '../dialects/clients/client.ts'
import { generativeAi } from '../dialects/clients/google-legacy.ts'
import { clients } from '../dialects/clients/list.ts'
import type { Replay } from '../dialects/replay.ts'
import { startReplay } from '../dialects/replay.ts'
import type { Json } from '../dialects/speaking.ts'
import { callers } from '../dialects/speaking.ts'
import type { Dialect } from '../dialects/upstreams.ts'
import { dialects } from '../dialects/upstreams.ts'
import { until } from '../support/gateway.ts'
import type { Cell } from './cells.ts'
import { cellName, faultName, isNative, pairwiseCells } from './cells.ts'
import { FaultGateway, modelOf, providerOf } from './gateway.ts'
import type { Judged } from './judging.ts'
import { judge } from './judging.ts'
import type { Runs } from './running.ts'
import { judgedOf, listenForUnhandled, runCells } from './running.ts'
import type { VerdictName } from './verdicts.ts'
import { unusedVerdicts, verdictOn } from './verdicts.ts'

const cells = pairwiseCells()
const forms = Map.groupBy(cells, ({ fault, stream }) => `${faultName(fault)}, ${stream ? 'streamed' : 'plain'}`)

test('each fault has a verdict, and each verdict a fault', () => {
  expect(cells.filter(cell => verdictOn(cell) === undefined).map(cellName)).toEqual([])
  expect(unusedVerdicts(cells.map(({ fault }) => fault))).toEqual([])
})

test('each fault meets each dialect on both sides, in both forms', () => {
  const upstreamsOf = (own: readonly Cell[]): number => new Set(own.map(({ upstream }) => upstream)).size
  for (const [name, own] of forms) {
    const inward = new Set(own.map(({ caller }) => (caller === 'gemini-array' ? 'gemini' : caller)))
    // A fault that not every dialect can commit is met by as many callers as there are upstreams.
    expect([name, inward.size >= upstreamsOf(own)]).toEqual([name, true])
  }
  expect([...forms.values()].filter(own => upstreamsOf(own) === dialects.length).length).toBeGreaterThan(200)
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
}, 120_000)

afterAll(async () => {
  await replay.stop()
  await gateway.stop()
  unhandled.stop()
})

describe('an upstream commits', () => {
  test.each([...forms])('%s', async (_name, own) => {
    for (const cell of own) {
      try {
        const judged = judgedOf(cell, runs, records)
        await judge(judged)
        await readBySdks(judged)
      } catch (fault) {
        throw new Error(`${cellName(cell)}: ${(fault as Error).message}`)
      }
    }
  })
})

/** The one that knows no comments is written to in another way, and the AI SDK has no classes of errors. */
const ownClients = (cell: Cell): readonly Client[] =>
  clients.filter(({ name, dialect }) => dialect === cell.caller && !/^AI SDK|generative-ai$/.test(name))

/** Answers that SDKs have read, without what differs from call to call. */
const read = new Set<string>()
const likeness = ({ cell: { caller, stream }, seen: { status, text } }: Judged): string =>
  [caller, stream, status, text.replace(/(fake|req_|cell-|call_|resp_|msg_)\w+|\d+/g, '')].join()

/** P8, P9, P10, P14: what failed is raised, and in its class; what is well is read, as far as it is ours to write. */
async function readBySdks(judged: Judged): Promise<void> {
  const { cell, seen, record } = judged
  const isFine = record.outcome === 'completed'
  if ((isFine && isNative(cell)) || cell.caller === 'gemini-array') return
  const like = likeness(judged)
  if (read.has(like)) return
  read.add(like)
  const waysOf: readonly Way[] = cell.stream ? ['stream', 'helper'] : ['plain']
  for (const client of ownClients(cell)) {
    for (const way of waysOf) {
      const told = await replay.tell(client, way, seen)
      if (isFine) expect(told.fault).toBeUndefined()
      else expect(told.fault).toBeDefined()
      if (seen.status === 200) continue
      expect([client.name, told.fault!.kind]).toEqual([client.name, client.raises(seen.status)])
      if (client.tellsRequestId) expect(told.fault!.requestId).toBe(seen.header('x-request-id')!)
    }
  }
}

/** Event by event, so that the first is on its way before the last comes. */
const slowly = (inner: Script): Script =>
  scripted(function* steps(request) {
    for (const step of inner.steps(request)) yield* step.kind === 'chunk' ? [wait(20), step] : [step]
  })

test('P8: the SDK that takes an error event for an answer is told of it in a way that it cannot read', async () => {
  const { harness } = gateway
  const session = generativeAi.connect(harness.url, await harness.key())
  const upstreams: readonly Dialect[] = ['gemini', 'anthropic-messages']
  for (const upstream of upstreams) {
    const model = modelOf(cells.find(cell => cell.upstream === upstream && cell.fault.id === 'F33')!)
    for (const way of ['stream', 'helper'] as const) {
      harness.upstream.plan(slowly(errorMidStream(['Hel', 'lo'], { message: 'Overloaded', type: 'overloaded_error' })))
      const asked = session.ask(way, { model, turns: [session.user('x')] })
      expect(session.fault(await asked.catch((fault: unknown) => fault)).kind).toBe('GoogleGenerativeAIError')
    }
  }
})

describe('afterwards', () => {
  test.each(callers)('%s is served as ever', async caller => {
    for (const stream of [false, true]) {
      const seen = await gateway.askWell(caller, stream).whole()
      expect([seen.status, seen.text.includes('Say')]).toEqual([200, true])
    }
  })

  test('nothing is left behind, and none of it was our own fault', async () => {
    const { harness } = gateway
    await harness.idle()
    expect(harness.openHolds()).toBe(0)
    const errors = harness.logs.filter(line => line.includes('"level":"error"')).map(line => JSON.parse(line) as Json)
    const alarmed = new Set(errors.map(({ channel }) => String(channel).split('#')[0]!))
    const of = (...names: readonly VerdictName[]): Set<string> =>
      new Set(cells.filter(cell => names.includes(verdictOn(cell)!)).map(providerOf))
    expect([...of('locked out').difference(alarmed)]).toEqual([])
    expect([...alarmed.difference(of('locked out', 'spent'))]).toEqual([])
    expect(unhandled.heard).toEqual([])
  })

  test('what was paid is what the records say, to the nano-dollar', async () => {
    const { byAccount, byRecords } = await gateway.left()
    expect(byAccount as bigint).toBe(byRecords)
  })

  test('sockets that waited in a pool for the next call are closed when there will be none', async () => {
    await gateway.harness.gateway.drain()
    await until(() => gateway.openSockets === 0, 'no socket is left')
  })
})
