// Types enforce the order of the stages: only a stage itself can make its proof. Each line below that expects an error
// is one that somebody in a hurry would write. Compiled by the type check, never run.

import type { Nanos, NanosPerMillion } from '../../src/base/money/money.ts'
import type { Ledger } from '../../src/billing/ledger.ts'
import type { CallDemand, LimitRate } from '../../src/pipeline/20-limit-rate.ts'
import type { RouteCall, RouteRequest } from '../../src/pipeline/30-route.ts'
import type { HoldCall } from '../../src/pipeline/35-hold.ts'
import type { AdaptParts } from '../../src/pipeline/40-adapt.ts'
import { adapt } from '../../src/pipeline/40-adapt.ts'
import type { Forward } from '../../src/pipeline/50-forward.ts'
import type { Caller, Exchange, Hold, Permit, Route } from '../../src/pipeline/exchange.ts'
import type { Call } from '../../src/protocols/neutral/call.ts'
import type { Channel } from '../../src/upstreams/channel.ts'

declare const caller: Caller
declare const permit: Permit
declare const route: Route
declare const hold: Hold
declare const call: Call
declare const routeRequest: RouteRequest
declare const channel: Channel
declare const parts: AdaptParts
declare const exchange: Exchange
declare const limitRate: LimitRate
declare const demand: CallDemand
declare const routeCall: RouteCall
declare const holdCall: HoldCall
declare const forward: Forward
declare const ledger: Ledger
declare const price: NanosPerMillion

/** In order, everything compiles. */
export async function inOrder(): Promise<void> {
  const allowed: Permit = await limitRate(caller, demand)
  const found: Route = routeCall(allowed, routeRequest)
  const held: Hold = await holdCall(found, call, exchange)
  await adapt(parts, { hold: held, candidate: found.candidates[0]!, exchange, channel })
  await forward(held, exchange)
}

/** A stage does not accept the proof of another. */
export function outOfOrder(): void {
  // @ts-expect-error a route needs a permit, and a caller is not one
  routeCall(caller, routeRequest)
  // @ts-expect-error no call is admitted without authentication
  limitRate({ keyId: 1, accountId: 1, tier: 'pro', qpm: 1, perMille: 1000n }, demand)
  // @ts-expect-error a permit is no caller
  limitRate(permit, demand)
  // @ts-expect-error a hold needs a route, and a permit is not one
  void holdCall(permit, call, exchange)
  // @ts-expect-error a hold cannot be had from a caller
  void holdCall(caller, call, exchange)
  // @ts-expect-error nothing is adapted before it is held
  void adapt(parts, { hold: route, exchange, channel })
  // @ts-expect-error nothing goes upstream before it is held
  void forward(route, exchange)
  // @ts-expect-error nothing goes upstream for a mere permit
  void forward(permit, exchange)
}

/** A proof cannot be written by hand, however well it is copied. */
export function forged(): void {
  // @ts-expect-error a caller is made by authentication
  const someone: Caller = { keyId: 1, accountId: 1, tier: 'pro', qpm: 1, perMille: 1000n }
  // @ts-expect-error a permit is made by the rate limit
  const allowed: Permit = { caller, quotas: permit.quotas, lease: permit.lease }
  // @ts-expect-error a route is made by routing
  const found: Route = { permit, provider: route.provider, model: route.model, price: route.price, channels: [] }
  // @ts-expect-error a copy of a route with other channels is none: spread what you will
  const other: Hold = { route: { ...route, channels: [] }, call, amount: hold.amount }
  // @ts-expect-error a hold is made by the ledger
  const held: Hold = { route, call, amount: hold.amount }
  void [someone, allowed, found, other, held]
}

/** Money is not a number, and a price is not an amount. */
export function money(): void {
  // @ts-expect-error a number is no money
  void ledger.hold(1, 1, 5)
  // @ts-expect-error a bare integer is no money either
  void ledger.hold(1, 1, 5n)
  // @ts-expect-error a price for a million tokens is not an amount
  const amount: Nanos = price
  void amount
}

/** The results of an exchange may be missing until their stage has run. */
export function notYet(): void {
  // @ts-expect-error the hold may be missing
  void forward(exchange.hold, exchange)
  // @ts-expect-error what a stage was given is not for changing
  hold.amount = route.permit.quotas.length
}
