// When a disconnect stops the call, and when the call runs on without its caller.

import { expect, test } from 'bun:test'
import { bounds } from '../../base/bounds.ts'
import { Deadlines } from '../../base/deadlines.ts'
import { Stop } from '../../base/stop.ts'
import type { Exchange, StopReason } from '../exchange.ts'
import { callerLeft } from '../exchange.ts'
import { newMeter } from '../settle/usage-meter.ts'
import { Disconnects } from './disconnects.ts'

interface How {
  readonly claimed?: boolean
  readonly held: boolean
  readonly forwarded?: boolean
  /** How the model reasons, for a call with a price. */
  readonly thinks?: string | undefined
  readonly priced?: boolean
  /** How long the model has been silent. */
  readonly silentMs?: number
  /** Usage was reported with the last content. */
  readonly told?: boolean
  /** What the provider file says about the provider, and about the model. */
  readonly bills?: readonly [boolean, boolean?]
  readonly accountId?: number
}

function callOf({ claimed, held, forwarded = true, bills = [false], accountId = 1, ...how }: How) {
  const permit = { caller: { accountId } }
  const callerGone = new Stop<StopReason>()
  const claim = { key: { name: 'n', fingerprint: 'f' } }
  const stop = new Stop<StopReason>()
  const traits = how.thinks === undefined ? {} : { thinking: how.thinks }
  const candidate = {
    provider: { can: { billsWhenLeft: bills[0] }, traits: {} },
    model: { billsWhenLeft: bills[1], traits },
    upstreamProtocol: { codec: {} },
    price: how.priced ? {} : undefined,
  }
  const told = { content: true, usage: { input: 1, output: 1 }, outputBytes: 4, reportedBytes: 4 }
  const state = { permit, options: claimed ? { claim } : {}, ...(held && { hold: {} }) }
  const meter = { ...newMeter(), forwarded, ...(how.told && told) }
  const exchange = {
    lifetime: { stop, callerGone },
    attempt: { candidate, meter },
    timings: { nowMs: () => how.silentMs ?? 0 },
    ...state,
  }
  return { callerGone, stop, exchange: exchange as unknown as Exchange }
}

const leaving = (): Disconnects => new Disconnects(new Deadlines(() => performance.now()))

test('a call with a hold runs on only with an idempotency key, or if it is billed anyway, or if the model may reason unseen', () => {
  const ends = [
    [{ held: true }, callerLeft, undefined],
    [{ claimed: true, held: false }, callerLeft, undefined],
    [{ claimed: true, held: true }, undefined, callerLeft],
    [{ claimed: true, held: true, forwarded: false }, undefined, callerLeft],
    [{ held: true, bills: [true] }, undefined, callerLeft],
    [{ held: false, bills: [true] }, callerLeft, undefined],
    [{ held: true, forwarded: false, bills: [true] }, callerLeft, undefined],
    [{ held: true, bills: [true, false] }, callerLeft, undefined],
    [{ held: true, bills: [false, true] }, undefined, callerLeft],
    [{ held: true, priced: true }, callerLeft, undefined],
    [{ held: true, priced: true, silentMs: 5_000 }, undefined, callerLeft],
    [{ held: true, priced: true, silentMs: 5_000, told: true }, callerLeft, undefined],
    [{ held: true, priced: true, silentMs: 5_000, forwarded: false }, callerLeft, undefined],
    [{ held: true, priced: true, thinks: 'effort' }, undefined, callerLeft],
    [{ held: true, priced: false, thinks: 'effort' }, callerLeft, undefined],
    [{ held: true, priced: true, thinks: 'none' }, callerLeft, undefined],
    [{ held: true, priced: true, thinks: 'effort', bills: [false, false] }, callerLeft, undefined],
  ] as const
  for (const [how, stopped, callerGone] of ends) {
    const call = callOf(how)
    const one = leaving()
    one.onDisconnect(call.exchange)
    expect([how, call.stop.reason, call.callerGone.reason]).toEqual([how, stopped, callerGone])
    one.onCallOver(call.exchange)
  }
})

test('the number of such calls is bounded, however often a disconnect is reported', () => {
  const one = leaving()
  const calls = Array.from({ length: bounds.callerGoneCallsMax }, (_, at) => {
    return callOf({ claimed: true, held: true, accountId: at % 4 })
  })
  for (const { exchange } of [...calls, ...calls]) one.onDisconnect(exchange)
  expect(calls.filter(({ stop }) => stop.reason !== undefined)).toEqual([])
  const late = callOf({ claimed: true, held: true, accountId: 9 })
  one.onDisconnect(late.exchange)
  expect(late.stop.reason).toBe(callerLeft)
  one.onCallOver(calls[0]!.exchange)
  const next = callOf({ claimed: true, held: true, accountId: 9 })
  one.onDisconnect(next.exchange)
  expect(next.stop.reason).toBeUndefined()
  for (const { exchange } of [...calls, next]) one.onCallOver(exchange)
})

test('one account has no more than its share of them', () => {
  const one = leaving()
  const calls = Array.from({ length: bounds.callerGoneCallsMax }, () => callOf({ claimed: true, held: true }))
  for (const { exchange } of calls) one.onDisconnect(exchange)
  expect(calls.filter(({ stop }) => stop.reason === undefined)).toHaveLength(bounds.callerGoneCallsOfAccountMax)
  const other = callOf({ claimed: true, held: true, accountId: 2 })
  one.onDisconnect(other.exchange)
  expect(other.stop.reason).toBeUndefined()
  for (const { exchange } of [...calls, other]) one.onCallOver(exchange)
})
