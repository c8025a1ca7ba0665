// When a disconnect stops the call, and when the call runs on without its caller.

import { expect, test } from 'bun:test'
import { bounds } from '../../base/bounds.ts'
import { Deadlines } from '../../base/deadlines.ts'
import { Stop } from '../../base/stop.ts'
import type { Exchange, StopReason } from '../exchange.ts'
import { callerLeft } from '../exchange.ts'
import { newMeter } from '../settle/usage-meter.ts'
import { Disconnects } from './disconnects.ts'

interface CallSetup {
  readonly claimed?: boolean
  readonly held: boolean
  readonly forwarded?: boolean
  /** The trait `thinking` of the model. */
  readonly thinks?: string | undefined
  readonly priced?: boolean
  /** How long the model has been silent. */
  readonly silentMs?: number
  /** Whether usage was reported with the last content. */
  readonly reported?: boolean
  /** What the body does not bound, and what the model may read. */
  readonly input?: 'file' | 'tools'
  /** Whether the input was reported before any content. */
  readonly inputReported?: boolean
  /** `billsWhenLeft` of the provider, and of the model. */
  readonly bills?: readonly [boolean, boolean?]
  /** A background call; `detached`: it is stored, and its caller may disconnect. */
  readonly background?: 'begins' | 'detached'
  readonly accountId?: number
}

const stateOf = ({ background }: Pick<CallSetup, 'background'>) =>
  background === undefined ? {} : { state: { background: true } }

function callOf({ claimed, held, forwarded = true, bills = [false], accountId = 1, ...setup }: CallSetup) {
  const permit = { caller: { accountId } }
  const callerGone = new Stop<StopReason>()
  const claim = { key: { name: 'n', fingerprint: 'f' } }
  const stop = new Stop<StopReason>()
  const traits = setup.thinks === undefined ? {} : { thinking: setup.thinks }
  const candidate = {
    provider: { can: { billsWhenLeft: bills[0] }, traits: {} },
    model: { billsWhenLeft: bills[1], traits },
    upstreamProtocol: { codec: {}, name: 'openai-responses' },
    price: setup.priced ? {} : undefined,
    size: { inputTokensMax: setup.input === undefined ? 10 : 131_072 },
  }
  const call = {
    dialect: 'openai-responses',
    searchesMax: 0,
    textOnly: false,
    serverTools: setup.input === 'tools',
    ...stateOf(setup),
  }
  const early = { usage: { input: 5, output: 1 }, outputBytes: 4 }
  const reported = { content: true, usage: { input: 1, output: 1 }, outputBytes: 4, reportedBytes: 4 }
  const state = { permit, options: claimed ? { claim } : {}, ...(held && { hold: {} }) }
  const meter = { ...newMeter(), forwarded, ...(setup.inputReported && early), ...(setup.reported && reported) }
  const exchange = {
    call,
    lifetime: { stop, callerGone, detached: setup.background === 'detached' },
    attempt: { candidate, meter },
    timings: { nowMs: () => setup.silentMs ?? 0 },
    ...state,
  }
  return { callerGone, stop, exchange: exchange as unknown as Exchange }
}

const newDisconnects = (): Disconnects => new Disconnects(new Deadlines(() => performance.now()))

test('a call with a hold runs on only with an idempotency key, or if it is billed anyway, or if only its report tells its cost', () => {
  const rows = [
    [{ held: true }, callerLeft, undefined],
    [{ claimed: true, held: false }, callerLeft, undefined],
    [{ claimed: true, held: true }, undefined, callerLeft],
    [{ claimed: true, held: true, forwarded: false }, undefined, callerLeft],
    // Its caller does not know a background call that is not stored yet.
    [{ claimed: true, held: true, background: 'begins' }, callerLeft, undefined],
    [{ held: true, bills: [true], background: 'begins' }, callerLeft, undefined],
    [{ claimed: true, held: true, background: 'detached' }, undefined, undefined],
    [{ held: true, bills: [true] }, undefined, callerLeft],
    [{ held: false, bills: [true] }, callerLeft, undefined],
    [{ held: true, forwarded: false, bills: [true] }, callerLeft, undefined],
    [{ held: true, bills: [true, false] }, callerLeft, undefined],
    [{ held: true, bills: [false, true] }, undefined, callerLeft],
    [{ held: true, priced: true }, callerLeft, undefined],
    [{ held: true, priced: true, silentMs: 5_000 }, undefined, callerLeft],
    [{ held: true, priced: true, silentMs: 5_000, reported: true }, callerLeft, undefined],
    [{ held: true, priced: true, silentMs: 5_000, forwarded: false }, callerLeft, undefined],
    [{ held: true, priced: true, thinks: 'effort' }, undefined, callerLeft],
    [{ held: true, priced: false, thinks: 'effort' }, callerLeft, undefined],
    [{ held: true, priced: true, thinks: 'none' }, callerLeft, undefined],
    [{ held: true, priced: true, thinks: 'effort', bills: [false, false] }, callerLeft, undefined],
    [{ held: true, priced: true, thinks: 'none', input: 'file' }, undefined, callerLeft],
    [{ held: true, priced: true, thinks: 'none', input: 'file', inputReported: true }, callerLeft, undefined],
    [{ held: true, priced: true, thinks: 'none', input: 'file', reported: true }, callerLeft, undefined],
    [{ held: true, priced: false, thinks: 'none', input: 'file' }, callerLeft, undefined],
    [{ held: true, priced: true, thinks: 'none', input: 'tools' }, undefined, callerLeft],
    // Each use of a tool reads the context again.
    [{ held: true, priced: true, thinks: 'none', input: 'tools', inputReported: true }, undefined, callerLeft],
    [{ held: true, priced: true, thinks: 'none', input: 'tools', reported: true }, callerLeft, undefined],
  ] as const
  for (const [setup, stopped, callerGone] of rows) {
    const call = callOf(setup)
    const disconnects = newDisconnects()
    disconnects.onDisconnect(call.exchange)
    expect([setup, call.stop.reason, call.callerGone.reason]).toEqual([setup, stopped, callerGone])
    disconnects.onCallOver(call.exchange)
  }
})

test('a call whose key ends is ended, or runs on without its caller if only its report tells what its input costs', () => {
  const keyEnded: StopReason = { outcome: 'revoked' }
  const file = { held: true, priced: true, thinks: 'none', input: 'file' } as const
  const rows = [
    [{ held: true, priced: true, thinks: 'effort' }, keyEnded, undefined],
    [{ held: true, priced: true, bills: [true] }, keyEnded, undefined],
    [{ claimed: true, held: true }, keyEnded, undefined],
    [file, undefined, keyEnded],
    [{ ...file, input: 'tools' }, undefined, keyEnded],
    [{ ...file, inputReported: true }, keyEnded, undefined],
    [{ ...file, held: false }, keyEnded, undefined],
    [{ ...file, forwarded: false }, keyEnded, undefined],
  ] as const
  for (const [setup, stopped, callerGone] of rows) {
    const call = callOf(setup)
    let closed = 0
    call.exchange.lifetime.closeConnection = () => void closed++
    const disconnects = newDisconnects()
    for (let times = 0; times < 2; times++) disconnects.onKeyEnd(call.exchange, keyEnded)
    expect([setup, call.stop.reason, call.callerGone.reason]).toEqual([setup, stopped, callerGone])
    expect(closed).toBe(callerGone === undefined ? 0 : 1)
    disconnects.onCallOver(call.exchange)
  }
  // A caller that left first and then revokes its key does not pay less.
  const left = callOf(file)
  const disconnects = newDisconnects()
  disconnects.onDisconnect(left.exchange)
  disconnects.onKeyEnd(left.exchange, keyEnded)
  expect(left.stop.reason).toBeUndefined()
  disconnects.onCallOver(left.exchange)
})

test('the number of calls that run on without their callers is bounded, however often a disconnect is reported', () => {
  const disconnects = newDisconnects()
  const calls = Array.from({ length: bounds.callerGoneCallsMax }, (_, index) => {
    return callOf({ claimed: true, held: true, accountId: index % 4 })
  })
  for (const { exchange } of [...calls, ...calls]) disconnects.onDisconnect(exchange)
  expect(calls.filter(({ stop }) => stop.reason !== undefined)).toEqual([])
  const late = callOf({ claimed: true, held: true, accountId: 9 })
  disconnects.onDisconnect(late.exchange)
  expect(late.stop.reason).toBe(callerLeft)
  disconnects.onCallOver(calls[0]!.exchange)
  const next = callOf({ claimed: true, held: true, accountId: 9 })
  disconnects.onDisconnect(next.exchange)
  expect(next.stop.reason).toBeUndefined()
  for (const { exchange } of [...calls, next]) disconnects.onCallOver(exchange)
})

test('one account has no more than its share of the calls that run on without their callers', () => {
  const disconnects = newDisconnects()
  const calls = Array.from({ length: bounds.callerGoneCallsMax }, () => callOf({ claimed: true, held: true }))
  for (const { exchange } of calls) disconnects.onDisconnect(exchange)
  expect(calls.filter(({ stop }) => stop.reason === undefined)).toHaveLength(bounds.callerGoneCallsOfAccountMax)
  const other = callOf({ claimed: true, held: true, accountId: 2 })
  disconnects.onDisconnect(other.exchange)
  expect(other.stop.reason).toBeUndefined()
  for (const { exchange } of [...calls, other]) disconnects.onCallOver(exchange)
})

test('a background call that is cancelled runs on to its report if its answer has begun', () => {
  const disconnects = newDisconnects()
  const setup = { held: true, priced: true, thinks: 'none', input: 'file' } as const
  const [silent, begun, reported] = [callOf(setup), callOf(setup), callOf({ ...setup, reported: true })]
  begun.exchange.attempt.meter.content = true
  for (const { exchange } of [silent, begun, reported]) {
    exchange.lifetime.detached = true
    disconnects.onDisconnect(exchange)
    expect(exchange.lifetime.stop.reason).toBeUndefined()
    for (let times = 0; times < 2; times++) disconnects.onCancel(exchange)
  }
  expect([silent, begun, reported].map(({ stop }) => stop.reason)).toEqual([callerLeft, undefined, callerLeft])
  // Those who follow its events get the rest.
  expect(begun.callerGone.reason).toBeUndefined()
  disconnects.onCallOver(begun.exchange)
})
