// A process whose background responses are followed at other processes: it stores the events when they are requested, but
// not so often that its own callers have to wait.

import { afterEach, expect, test } from 'bun:test'
import { buildLog } from '../../base/log.ts'
import { Stop } from '../../base/stop.ts'
import type { Exchange, StopReason } from '../../pipeline/exchange.ts'
import { callerLeft, newCallParts } from '../../pipeline/exchange.ts'
import { StoredCall } from '../../pipeline/settle/stored-call.ts'
import { protocols } from '../../protocols/protocols.ts'
import type { ResponseJob, ResponseWish } from '../../store/engine/store-engine.ts'
import { jobsOfOnlyProcess } from '../../store/engine/store-engine.ts'
import type { VaultId } from '../../store/vault/vault-types.ts'
import type { ResponseBody, ResponseChanged } from '../../vault/responses.ts'
import { buildBackground } from './background.ts'

interface Call {
  readonly id: string
  readonly stop: Stop<StopReason>
  /** Sends another event. */
  send(): void
  end(): void
}

const calls: Call[] = []

afterEach(() => {
  for (const call of calls.splice(0)) call.end()
})

type Change = (id: string, events: number) => Promise<ResponseChanged>

/** A process whose vault changes responses with `change`. */
function processWith(change: Change) {
  const wishes = new Map<ResponseJob, ResponseWish>()
  const state = { looks: 0 }
  const background = buildBackground({
    log: buildLog('error', () => {}),
    heartbeatMs: 10_000,
    disconnects: { onCancel: ({ lifetime }) => lifetime.stop.stop(callerLeft) },
    jobs: {
      ...jobsOfOnlyProcess,
      async takeWishes() {
        state.looks++
        const taken = new Map(wishes)
        wishes.clear()
        return taken
      },
    },
    responses: {
      put: async () => 'kept',
      get: async () => undefined,
      change: ({ id }: VaultId, _status, body?: ResponseBody) => change(id, body!.events!.split('\n\n').length - 1),
    },
  })
  return {
    async begin(): Promise<Call> {
      const stop = new Stop<StopReason>()
      const requestId = `req_${calls.length}`
      const exchange = {
        ...newCallParts(),
        requestId,
        createdMs: 1,
        attempts: [],
        protocol: protocols['openai-responses'],
        timings: { writeTo() {}, clear() {} },
        storage: { storedCall: new StoredCall([], undefined) },
        lifetime: { stop, releaseConnection() {} },
        permit: { caller: { accountId: 1, keyId: 2 }, quotas: [] },
        attempt: { candidate: { provider: { id: 'p' }, model: { id: 'm' } } },
        call: { model: 'p/m', stream: false, wantsUsage: true, choices: 1, json: {} },
      } as unknown as Exchange
      const events = new TransformStream<Uint8Array, Uint8Array>()
      const writer = events.writable.getWriter()
      const answer = new Response(events.readable, { headers: { 'content-type': 'text/event-stream' } })
      const { id } = (await (await background.begin(exchange, async () => answer)).json()) as { id: string }
      const call = {
        ...{ id, stop },
        send: () => void writer.write(Buffer.from('data: {"type":"x"}\n\n')),
        end: () => void writer.close(),
      }
      calls.push(call)
      return call
    },
    ask: ({ id }: Call, wish: ResponseWish) => void wishes.set(`response 1/${id}`, wish),
    /** Waits until the process has looked for wishes a few times. */
    async looks(count: number): Promise<void> {
      for (const until = state.looks + count; state.looks < until; ) await Bun.sleep(5)
    },
  }
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await Bun.sleep(5)
}

test('events are stored once for each time that somebody asks', async () => {
  const stored: number[] = []
  const { begin, ask, looks } = processWith(async (_id, events) => {
    stored.push(events)
    return 'changed'
  })
  const call = await begin()
  // Nobody asks.
  call.send()
  await looks(1)
  expect(stored).toEqual([])
  ask(call, 'events')
  await until(() => stored.length === 1)
  // The callers that follow the events have disconnected.
  call.send()
  await looks(3)
  expect(stored).toEqual([1])
  ask(call, 'events')
  await until(() => stored.length === 2)
  // There is nothing new: the wish waits for the next event.
  ask(call, 'events')
  await looks(2)
  call.send()
  await until(() => stored.length === 3)
  expect(stored).toEqual([1, 2, 3])
})

test('a wish that comes while events are stored is one for later events', async () => {
  const stored: number[] = []
  const first = Promise.withResolvers<ResponseChanged>()
  const { begin, ask, looks } = processWith(async (_id, events) => {
    stored.push(events)
    return stored.length === 1 ? first.promise : 'changed'
  })
  const call = await begin()
  call.send()
  ask(call, 'events')
  await until(() => stored.length === 1)
  call.send()
  ask(call, 'events')
  await looks(1)
  first.resolve('changed')
  await until(() => stored.length === 2)
  expect(stored).toEqual([1, 2])
})

test('events that could not be stored are stored later, and those that do not fit never', async () => {
  const stored: number[] = []
  const { begin, ask, looks } = processWith(async (_id, events) => {
    stored.push(events)
    if (stored.length === 1) throw new Error('away')
    return stored.length === 2 ? 'changed' : 'too_large'
  })
  const call = await begin()
  call.send()
  ask(call, 'events')
  await until(() => stored.length === 2)
  for (const count of [2, 3]) {
    call.send()
    ask(call, 'events')
    await looks(count)
  }
  expect(stored).toEqual([1, 1, 2])
})

test('the events of several calls are stored one after the other, and all of them count for the pause', async () => {
  const spans: { readonly sinceMs: number; readonly untilMs: number }[] = []
  let [active, most] = [0, 0]
  const { begin, ask } = processWith(async () => {
    const sinceMs = performance.now()
    most = Math.max(most, ++active)
    await Bun.sleep(60)
    active--
    spans.push({ sinceMs, untilMs: performance.now() })
    return 'changed'
  })
  const all = [await begin(), await begin(), await begin()]
  for (const round of [1, 2]) {
    for (const call of all) call.send()
    for (const call of all) ask(call, 'events')
    await until(() => spans.length === round * all.length)
  }
  expect(most).toBe(1)
  const tookMs = spans[2]!.untilMs - spans[0]!.sinceMs
  // A timer may be a millisecond early.
  expect(spans[3]!.sinceMs - spans[2]!.untilMs).toBeGreaterThan(10 * tookMs - 2)
})

test('a call is cancelled although the events of another one are being stored', async () => {
  const never = Promise.withResolvers<ResponseChanged>()
  let isStoring = false
  const { begin, ask } = processWith(() => {
    isStoring = true
    return never.promise
  })
  const [slow, cancelled] = [await begin(), await begin()]
  slow.send()
  ask(slow, 'events')
  await until(() => isStoring)
  ask(cancelled, 'cancel')
  await until(() => cancelled.stop.reason !== undefined)
  expect(slow.stop.reason).toBeUndefined()
  never.resolve('over')
})
