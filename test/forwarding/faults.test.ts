// Every fault that an upstream can commit, plain and streamed: the caller gets a well-formed answer of its dialect in
// time, nobody pays for what was not delivered, and nothing is left behind.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chatWire } from '../../src/fake-upstream/openai-chat/wire.ts'
import type { Fault } from '../../src/fake-upstream/faults.ts'
import { buildFaults } from '../../src/fake-upstream/faults.ts'
import { chunk, end, head, script, scripted, startingAt } from '../../src/fake-upstream/script.ts'
import type { FakeUpstream } from '../../src/fake-upstream/server.ts'
import { startFakeUpstream } from '../../src/fake-upstream/server.ts'
import type { Harness } from '../support/gateway.ts'
import { until } from '../support/gateway.ts'
import type { Caller } from './caller.ts'
import { errorOf, eventsOf, openCall, startHasty } from './caller.ts'
import type { Verdict } from './fault-verdicts.ts'
import { unusedVerdicts, verdictOn } from './fault-verdicts.ts'

const deadlineMs = 250
const attemptTimes = { firstContentMs: deadlineMs, betweenChunksMs: deadlineMs }
const MIB = 1024 * 1024

const faults = buildFaults(chatWire, {
  deadlineMs,
  idleMs: deadlineMs,
  byteMs: 20,
  tinyChunks: 2_000,
  bodyBytes: 34 * MIB,
  bombBytes: 34 * MIB,
  lineBytes: 3 * MIB,
  encodings: 5,
})

const cells = faults.flatMap(fault =>
  [false, true]
    .filter(stream => fault.asks === 'either' || (fault.asks === 'stream') === stream)
    .map(stream => [fault.id, fault.name, stream ? 'streamed' : 'plain', fault, stream] as const))

test('each fault has a verdict, and each verdict a fault', () => {
  expect(cells.filter(([, , , fault, stream]) => verdictOn(fault, stream) === undefined)).toEqual([])
  expect(unusedVerdicts(faults)).toEqual([])
})

let harness: Harness
let key: string
const unhandled: unknown[] = []
const note = (fault: unknown): void => void unhandled.push(fault)

beforeAll(async () => {
  process.on('unhandledRejection', note)
  process.on('uncaughtException', note)
  harness = await startHasty({ world: { attemptTimes } })
  key = await harness.key({ qpm: 100_000 })
})
afterAll(async () => {
  await harness.stop()
  process.off('unhandledRejection', note)
  process.off('uncaughtException', note)
})

/** The deadlines here are so short that a machine which pauses can miss one by itself; it will not five times. */
async function servedAgain(): Promise<number> {
  let status = 504
  for (let tries = 0; status === 504 && tries < 5; tries++) {
    status = (await openCall(harness, key, {}).whole()).status
  }
  return status
}

describe('an upstream commits', () => {
  test.each(cells)('%s, %s (%s)', async (_id, _name, _form, fault, stream) => {
    const before = { requests: harness.upstream.requests.length, records: harness.records().length }
    harness.upstream.plan(fault.script)
    const sinceMs = performance.now()
    const caller = await openCall(harness, key, { stream, max_tokens: 7 }).whole()
    expect(performance.now() - sinceMs).toBeLessThan(deadlineMs * 2 + 3_000)
    await harness.idle()
    expect(harness.openHolds()).toBe(0)
    expect(harness.upstream.requests.length - before.requests).toBeLessThanOrEqual(1)
    const records = harness.records().slice(before.records)
    expect(records).toHaveLength(1)
    judge(verdictOn(fault, stream)!, { caller, fault, stream, record: records[0]! })
    expect(await servedAgain()).toBe(200)
    // One may wait in the pool for the next call; whatever is broken or unfinished is closed.
    await until(() => harness.upstream.openSockets <= 1, 'the broken socket is closed')
    expect(unhandled).toEqual([])
  }, 15_000)

  test('and none of them is our own fault', () => {
    const faults = harness.logs.filter(line => line.includes('"level":"error"'))
    expect(faults.filter(line => !line.includes('a provider refuses this credential'))).toEqual([])
  })
})

interface Cell {
  readonly caller: Caller
  readonly fault: Fault
  readonly stream: boolean
  readonly record: Record<string, unknown>
}

/** One way in which a cell may end; throws when it did not end so. */
const ways: Readonly<Record<Verdict, (cell: Cell) => void>> = {
  'fine': fine,
  'broken': cell => refusedWith(cell, 502, 'upstream_unusable'),
  'cut off': cell => (cell.caller.status === 200 ? cutOff(cell) : ways.broken(cell)),
  'slow': cell => refusedWith(cell, 504, 'upstream_too_slow'),
  'too much': cell => (cell.caller.status === 504 ? ways.slow(cell) : ways.broken(cell)),
  'slow midway': cell => expect(cutOff(cell)).toBe('upstream_too_slow'),
  'limited': cell => limited(cell, 'upstream_rate_limited'),
  'overloaded': cell => limited(cell, 'upstream_overloaded'),
  'refused': ({ caller, record }) => {
    expect([400, 404]).toContain(caller.status)
    wellFormed(caller)
    expect(record).toMatchObject({ outcome: 'refused', cost: 0, status: caller.status })
  },
  'any': cell => {
    const failed = cell.record.outcome !== 'completed'
    if (failed) ways['cut off'](cell)
    else fine(cell)
  },
}

function judge(verdict: Verdict, cell: Cell): void {
  ways[verdict](cell)
  if (verdict !== 'fine' && verdict !== 'any') expect(cell.record).toMatchObject({ cost: 0, usage_source: 'none' })
}

function fine({ caller, fault, stream, record }: Cell): void {
  expect(caller.status).toBe(200)
  if (stream) {
    const events = eventsOf(caller.body)
    expect(events.at(-1)).toBe('[DONE]')
    expect(events.filter(data => data.includes('"error"'))).toEqual([])
  } else {
    expect(JSON.parse(caller.text)).toHaveProperty('choices')
  }
  expect(record).toMatchObject({ outcome: 'completed', status: 200 })
  if (fault.name !== 'nothing but the terminal event') expect(Number(record.cost)).toBeGreaterThan(0)
}

function refusedWith({ caller, record }: Cell, status: number, code: string): void {
  expect([caller.status, errorOf(caller.body).code]).toEqual([status, code])
  wellFormed(caller)
  expect(record).toMatchObject({ outcome: 'upstream_failed', status })
}

function limited(cell: Cell, code: string): void {
  refusedWith(cell, 503, code)
  const seconds = Number(cell.caller.header('retry-after'))
  expect(seconds).toBeGreaterThanOrEqual(0)
  expect(seconds).toBeLessThanOrEqual(60)
  const ms = Number(cell.caller.header('retry-after-ms'))
  expect(Math.ceil(ms / 1_000)).toBe(seconds)
}

/** An error event, then the legal end of the stream. Gives the code that was told. */
function cutOff({ caller, record }: Cell): string | null {
  const events = eventsOf(caller.body)
  expect(events.at(-1)).toBe('[DONE]')
  const error = errorOf(events.at(-2)!)
  expect(error.message).not.toBe('')
  expect(error.type).not.toBe('')
  expect(events.filter(data => data.startsWith('{"error"'))).toHaveLength(1)
  expect(record).toMatchObject({ outcome: 'upstream_failed' })
  return error.code
}

function wellFormed(caller: Caller): void {
  expect(caller.header('content-type')).toBe('application/json')
  expect(caller.header('x-request-id')).toStartWith('req_')
  expect(caller.header('x-pipeline-adapter')).toMatch(/^fail \(\d+ms\)$/)
  const { error, request_id: requestId } = JSON.parse(caller.text) as { error: object; request_id: string }
  expect(Object.keys(error).sort()).toEqual(['code', 'message', 'param', 'type'])
  expect(requestId).toBe(caller.header('x-request-id')!)
}

test('a redirect is not followed', async () => {
  const inside = await startFakeUpstream()
  try {
    const [redirect] = buildFaults(chatWire, { redirectTo: `${inside.url}/latest/meta-data/` })
      .filter(({ name }) => name.startsWith('307'))
    harness.upstream.plan(redirect!.script)
    expect((await openCall(harness, key, {}).whole()).status).toBe(502)
    expect(inside.requests).toEqual([])
    expect(inside.openSockets).toBe(0)
  } finally {
    await inside.stop()
  }
})

test.each([200, 400, 500])('a length that lies beside chunks opens no bound (%i)', async status => {
  const patient = await startHasty()
  try {
    const total = 160 * MIB
    const framing = { 'content-length': '7', 'transfer-encoding': 'chunked' }
    patient.upstream.plan(scripted(function* flood() {
      yield head(status, { 'content-type': 'application/json', ...framing })
      const piece = new Uint8Array(64 * 1024).fill(0x20)
      for (let sent = 0; sent < total; sent += piece.length) yield chunk(piece)
      yield end
    }))
    const received = patient.upstream.nextRequest()
    const caller = await openCall(patient, await patient.key(), {}).whole(15_000)
    expect(caller.status).toBe(status === 400 ? 400 : 502)
    const request = await received
    await until(() => request.closedAtMs !== undefined || request.bytesWritten >= total, 'it is let go or taken whole')
    expect(request.bytesWritten).toBeLessThan(total * 0.75)
  } finally {
    await patient.stop()
  }
}, 20_000)

describe('an upstream that cannot be reached', () => {
  let plainServer: FakeUpstream
  beforeAll(async () => {
    plainServer = await startFakeUpstream()
  })
  afterAll(() => plainServer.stop())

  const secure = () => plainServer.url.replace('http:', 'https:')
  const rows: readonly (readonly [string, () => string, readonly number[]])[] = [
    ['F1 refused', () => 'http://127.0.0.1:1', [502]],
    ['F2 an address that nobody has', () => 'http://192.0.2.1:81', [502, 504]],
    ['F3 a name that does not resolve', () => 'http://nobody.invalid', [502, 504]],
    ['F5 no TLS where it should be', secure, [502, 504]],
  ]

  test.each(rows)('%s', async (_name, url, statuses) => {
    const own = await startHasty({ world: { attemptTimes }, env: { OPENAI_BASE_URL: url() } })
    try {
      const ownKey = await own.key({ credit: '1' })
      for (const stream of [false, true]) {
        const caller = await openCall(own, ownKey, { stream }).whole()
        expect(statuses).toContain(caller.status)
        wellFormed(caller)
      }
      await own.idle()
      expect(own.openHolds()).toBe(0)
      expect(await own.balance(ownKey)).toMatchObject({ balance: '1.00', held: '0.00' })
      expect(unhandled).toEqual([])
    } finally {
      await own.stop()
    }
  })

  test('F6 TLS stalls', async () => {
    const own = await startHasty({ world: { attemptTimes }, env: { OPENAI_BASE_URL: secure() } })
    try {
      plainServer.plan(startingAt('accept', script()))
      const caller = await openCall(own, await own.key(), {}).whole()
      expect([caller.status, errorOf(caller.body).code]).toEqual([504, 'upstream_too_slow'])
      await until(() => plainServer.openSockets === 0, 'the stalled socket is closed')
    } finally {
      await own.stop()
    }
  })
})
