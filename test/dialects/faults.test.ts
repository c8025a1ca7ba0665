// Every fault of an upstream of every dialect, for callers of its own dialect and of others: an error of the caller's
// dialect before content, its error event and a legal end after content, and the official SDKs raise what they should.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { parseTextId } from '../../src/base/ids.ts'
import { errorMidStream } from '../../src/fake-upstream/answers.ts'
import type { Script } from '../../src/fake-upstream/script.ts'
import { scripted, wait } from '../../src/fake-upstream/script.ts'
import type { Caller } from '../forwarding/caller.ts'
import type { Verdict } from '../forwarding/fault-verdicts.ts'
import { verdictOn } from '../forwarding/fault-verdicts.ts'
import type { Harness } from '../support/gateway.ts'
import { until } from '../support/gateway.ts'
import type { Client, Way } from './clients/client.ts'
import { generativeAi } from './clients/google-legacy.ts'
import { clients } from './clients/list.ts'
import type { CellRun, FaultCell, Pair } from './fault-cells.ts'
import { cellName, cellsOf, FaultRuns, pooled, runsAlone } from './fault-cells.ts'

import { startReplay } from './replay.ts'
import type { Replay } from './replay.ts'
import type { Json } from './speaking.ts'
import { eventsSeen, speech } from './speaking.ts'
import type { Dialect } from './upstreams.ts'
import { dialects, modelOf, startDialects } from './upstreams.ts'

const deadlineMs = 500
const attemptTimes = { firstContentMs: deadlineMs, betweenChunksMs: deadlineMs }
const MIB = 1024 * 1024
const settings = {
  deadlineMs,
  idleMs: deadlineMs,
  byteMs: 20,
  tinyChunks: 300,
  bodyBytes: 34 * MIB,
  bombBytes: 34 * MIB,
  lineBytes: 17 * MIB,
  encodings: 5,
}

const others = (dialect: Dialect): readonly Dialect[] => dialects.filter(one => one !== dialect)
const on = (caller: Pair['caller'], upstreams: readonly Dialect[]): readonly Pair[] =>
  upstreams.map(upstream => ({ caller, upstream }))

const pairs: readonly Pair[] = [
  ...dialects.flatMap(dialect => on(dialect, [dialect])),
  ...on('openai-chat', others('openai-chat')),
  ...on('anthropic-messages', others('anthropic-messages')),
  ...on('openai-responses', ['openai-chat']),
  ...on('gemini', ['openai-chat']),
  ...on('gemini-array', ['gemini', 'anthropic-messages']),
]

/** What goes wrong below the dialects goes wrong in the same way whatever is translated above. */
const BELOW = /^F(7|8|9|10|16|17|18|19|20|21|22|29)$/
/** Megabytes or thousands of crumbs, which would hold up whatever runs beside them. */
const LARGE = /^F(18|20|29) |split code points|CRLF cut in two/
const isNative = ({ caller, upstream }: Pair): boolean => caller === upstream

const cells = pairs.flatMap(pair =>
  cellsOf(pair, settings).filter(({ fault }) => isNative(pair) || !BELOW.test(fault.id)))

/** Where a dialect ends otherwise than chat does. */
function verdictFor({ fault, stream, upstream, ...pair }: FaultCell): Verdict {
  const name = `${fault.id} ${fault.name}`
  if (fault.id === 'F18') return stream && fault.name === 'a huge stream' ? 'cut off' : 'too much'
  if (stream && name === 'F16 Content-Length too short') {
    // What was cut off is the last event; only these have said before it that they are done.
    return upstream === 'openai-responses' || upstream === 'gemini' ? 'cut off' : 'fine'
  }
  if (upstream === 'openai-responses' && name === 'F30 finished, but without terminal event') return 'cut off'
  if (upstream === 'gemini' && name === 'F32 a negative choice' && pair.caller.startsWith('gemini') === false) {
    return 'broken'
  }
  return verdictOn(fault, stream)!
}

let harness: Harness
let replay: Replay
const runs = new Map<number, Promise<CellRun>>()
const records = new Map<number, Json>()
const unhandled: unknown[] = []
const note = (fault: unknown): void => void unhandled.push(fault)

beforeAll(async () => {
  process.on('unhandledRejection', note)
  process.on('uncaughtException', note)
  harness = await startDialects({ world: { attemptTimes }, env: { WEIR_DRAIN_SECONDS: '0' } })
  const key = await harness.key({ qpm: 100_000, credit: '1000000' })
  const faulty = new FaultRuns(harness, key, cells)
  const run = async (cell: FaultCell): Promise<void> => {
    const running = faulty.run(cell, deadlineMs * 2 + 10_000)
    runs.set(cell.number, running)
    await running.catch(() => {})
  }
  const isAlone = (cell: FaultCell): boolean => runsAlone(cell) || LARGE.test(`${cell.fault.id} ${cell.fault.name}`)
  await pooled(cells.filter(cell => !isAlone(cell)), 24, run)
  for (const cell of cells.filter(isAlone)) await run(cell)
  await harness.idle()
  for (const record of harness.records()) records.set(record.call_id as number, record)
  replay = startReplay()
}, 60_000)

afterAll(async () => {
  await replay.stop()
  await harness.stop()
  process.off('unhandledRejection', note)
  process.off('uncaughtException', note)
})

interface Seen {
  readonly cell: FaultCell
  readonly caller: Caller
  readonly record: Json
}

/** One way in which a cell may end; throws when it did not end so. */
const ends: Readonly<Record<Verdict, (seen: Seen) => void>> = {
  'fine': fine,
  'broken': seen => refused(seen, 502),
  'cut off': seen => (seen.caller.status === 200 ? cutOff(seen, 502) : ends.broken(seen)),
  'slow': seen => refused(seen, 504),
  'too much': seen => refused(seen, seen.caller.status === 504 ? 504 : 502),
  'slow midway': seen => cutOff(seen, 504),
  'limited': limited,
  'overloaded': limited,
  'refused': seen => {
    expect([400, 404]).toContain(seen.caller.status)
    wellFormed(seen)
    expect(seen.record).toMatchObject({ outcome: 'refused', cost: 0, status: seen.caller.status })
  },
  'any': seen => (seen.record.outcome === 'completed' ? fine(seen) : ends['cut off'](seen)),
}

/** Nobody wrote anything, and what was read is told only by some. */
const EMPTY = /^(nothing but the terminal event|an answer without text)$/

/** Faults that leave the text as the upstream meant it. */
const HARMLESS = /^F(12|22|28|33)$/

function fine({ cell, caller, record }: Seen): void {
  expect(caller.status).toBe(200)
  const { whole, ended } = speech[cell.caller]
  const text = cell.stream ? ended(eventsSeen(cell.caller, caller.body)) : whole(JSON.parse(caller.text) as Json)
  if (HARMLESS.test(cell.fault.id)) expect(text).toMatch(/^Hello( world)?$/)
  expect(record).toMatchObject({ outcome: 'completed', status: 200 })
  if (!EMPTY.test(cell.fault.name)) expect(Number(record.cost)).toBeGreaterThan(0)
}

function refused(seen: Seen, status: number): void {
  expect(seen.caller.status).toBe(status)
  wellFormed(seen)
  expect(seen.record).toMatchObject({ outcome: 'upstream_failed', status, cost: 0, usage_source: 'none' })
}

/** Overload has a status of its own in one dialect. */
function limited(seen: Seen): void {
  refused(seen, seen.cell.caller === 'anthropic-messages' ? 529 : 503)
  const seconds = Number(seen.caller.header('retry-after'))
  expect(seconds).toBeGreaterThanOrEqual(0)
  expect(seconds).toBeLessThanOrEqual(60)
}

function wellFormed({ cell, caller }: Seen): void {
  expect(caller.header('content-type')).toStartWith('application/json')
  expect(caller.header('request-id')).toBe(caller.header('x-request-id')!)
  expect(caller.header('x-pipeline-adapter')).toMatch(/^fail \(\d+ms\)$/)
  expect(speech[cell.caller].error(JSON.parse(caller.text), caller.status).message).not.toBe('')
}

function cutOff({ cell, caller, record }: Seen, status: number): void {
  const { broken, error } = speech[cell.caller]
  expect(error(broken(eventsSeen(cell.caller, caller.body)), status).message).not.toBe('')
  expect(record).toMatchObject({ outcome: 'upstream_failed' })
}

const named = pairs.map(pair => [pair.caller, pair.upstream, pair] as const)

describe.each(named)('%s on %s', (_caller, _upstream, pair) => {
  const own = cells.filter(({ caller, upstream }) => caller === pair.caller && upstream === pair.upstream)

  test.each(own.map(cell => [cellName(cell), cell] as const))('%s', async (_name, cell) => {
    const { seen: caller, ms } = await runs.get(cell.number)!
    // After a whole answer whose bytes do not end, two more seconds are given to them.
    expect(ms).toBeLessThan(deadlineMs + 5_000)
    const record = records.get(parseTextId('req', caller.header('x-request-id')!)!)!
    ends[verdictFor(cell)]({ cell, caller, record })
    for (const dialect of dialects) expect(caller.head + caller.text).not.toContain(`sk-${dialect}`)
    await readBySdks(cell, caller, record)
  })
})

/** The one that knows no comments is written to in another way, and the AI SDK has no classes of errors. */
const ownClients = (cell: FaultCell): readonly Client[] =>
  clients.filter(({ name, dialect }) => dialect === cell.caller && !/^AI SDK|generative-ai$/.test(name))

/** Answers that SDKs have read, without what differs from call to call. */
const read = new Set<string>()
const likeness = ({ caller, stream }: FaultCell, { status, text }: Caller): string =>
  [caller, stream, status, text.replace(/(fake|req_|cell-|call_|resp_|msg_)\w+|\d+/g, '')].join()

/** P8, P9, P10, P14: what failed is raised, and in its class; what is well is read, as far as it is ours to write. */
async function readBySdks(cell: FaultCell, caller: Caller, record: Json): Promise<void> {
  const isFine = record.outcome === 'completed'
  if ((isFine && isNative(cell)) || cell.caller === 'gemini-array') return
  const like = likeness(cell, caller)
  if (read.has(like)) return
  read.add(like)
  const waysOf: readonly Way[] = cell.stream ? ['stream', 'helper'] : ['plain']
  for (const client of ownClients(cell)) {
    for (const way of waysOf) {
      const told = await replay.tell(client, way, caller)
      if (isFine) expect(told.fault).toBeUndefined()
      else expect(told.fault).toBeDefined()
      if (caller.status === 200) continue
      expect([client.name, told.fault!.kind]).toEqual([client.name, client.raises(caller.status)])
      if (client.tellsRequestId) expect(told.fault!.requestId).toBe(caller.header('x-request-id')!)
    }
  }
}

/** Event by event, so that the first is on its way before the last comes. */
const slowly = (inner: Script): Script =>
  scripted(function* steps(request) {
    for (const step of inner.steps(request)) yield* step.kind === 'chunk' ? [wait(20), step] : [step]
  })

test('P8: the SDK that takes an error event for an answer is told of it in a way that it cannot read', async () => {
  const session = generativeAi.connect(harness.url, await harness.key())
  const upstreams: readonly Dialect[] = ['gemini', 'anthropic-messages']
  for (const upstream of upstreams) {
    for (const way of ['stream', 'helper'] as const) {
      harness.upstream.plan(slowly(errorMidStream(['Hel', 'lo'], { message: 'Overloaded', type: 'overloaded_error' })))
      const asked = session.ask(way, { model: modelOf(upstream), turns: [session.user('x')] })
      expect(session.fault(await asked.catch((fault: unknown) => fault)).kind).toBe('GoogleGenerativeAIError')
    }
  }
})

test('nothing is left behind, and none of it was our own fault', async () => {
  expect(harness.openHolds()).toBe(0)
  expect(harness.logs.filter(line => line.includes('"level":"error"'))).toEqual([])
  expect(unhandled).toEqual([])
  // Those that wait in a pool for the next call are good ones; the last of each lane may be there.
  await until(() => harness.upstream.openSockets <= 24, 'what is broken or unfinished is closed')
})

