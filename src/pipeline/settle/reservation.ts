// Reserves money in slices while an answer arrives, for a call whose highest possible cost is not small against the
// funds. No token is passed on that the hold does not cover. When the funds are used up, the call ends.

import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import type { Nanos } from '../../base/money/money.ts'
import { nanos } from '../../base/money/money.ts'
import { outputTokens } from '../../base/money/usage.ts'
import type { ExtendOutcome, Ledger } from '../../billing/ledger.ts'
import { refusalOfHold } from '../../billing/ledger.ts'
import type { CallSize } from '../../billing/price.ts'
import { affordableOutput, estimateTokens, outputTokensOf, upperBound } from '../../billing/price.ts'
import type { MoneyText } from '../../store/ledger/money-text.ts'
import { readMoney } from '../../store/ledger/money-text.ts'
import { cost, estimateUsage } from '../60-cost.ts'
import type { Exchange, Hold, Reservation } from '../exchange.ts'
import { outcomeOf } from './ending.ts'
import { hiddenTokens, isSilent } from './hidden-reasoning.ts'
import type { LargeAnswers } from './large-answers.ts'

/** How many output tokens one slice covers: fewer where the funds are small, because others need money too. */
export const sliceTokens = { most: 4_096, least: 64 } as const

/** Where the funds do not cover the smallest slice, so few tokens are still worth an answer. */
export const LAST_TOKENS_MIN = 16

/** Our estimate of the tokens of a text may be this much too low. */
const ESTIMATE_MARGIN = 1.25

/** How often an extension is repeated that the ledger did not answer, and after which pause. */
const RETRIES_MAX = 3
const RETRY_MS = 500

export interface Reservations {
  /** Called when an attempt begins: how much the hold covers depends on the price of its candidate. */
  begin(hold: Hold, exchange: Exchange): void
  /**
   * Undefined if the hold covers what has arrived. Otherwise a promise that resolves when it does. Reserves the next
   * slice in time. Throws when the funds are used up; then the call is stopped.
   */
  cover(exchange: Exchange): Promise<void> | undefined
  /**
   * For an answer that arrived whole: resolves when the hold covers its cost. Otherwise the call is stopped. Undefined
   * for a call that is not paid in slices.
   */
  coverWhole(exchange: Exchange): Promise<void> | undefined
  /** The same as `cover` from a timer, for a model that reasons unseen: nothing arrives, and tokens are used. */
  check(exchange: Exchange): void
}

export interface ReservationParts {
  readonly ledger: Pick<Ledger, 'extend'>
  readonly largeAnswers: Pick<LargeAnswers, 'add'>
  pause(ms: number): Promise<void>
}

/** The size of a call with so many output tokens in all. */
export const sizedFor = (size: CallSize, tokens: number): CallSize => ({
  ...size,
  outputTokensMax: tokens,
  thoughtTokensMax: 0,
  choices: 1,
})

export function buildReservations({ ledger, largeAnswers, pause }: ReservationParts): Reservations {
  /** The answer of the ledger. If it cannot answer, even when it is asked again, the refusal for that. */
  async function extendHold(
    { callId, lifetime: { stop } }: Exchange,
    { amount: held }: Reservation,
    { amount, least, retries }: Extension,
  ): Promise<ExtendOutcome | Refusal> {
    for (let left = retries; ; left--) {
      try {
        return await ledger.extend({ callId, amount, least, held })
      } catch (fault) {
        if (left === 0 || stop.reason !== undefined) return asRefusal(fault)
      }
      await pause(RETRY_MS)
    }
  }

  async function extend(exchange: Exchange, reservation: Reservation, used: number): Promise<void> {
    const { attempt } = exchange
    const { size, price } = attempt.candidate!
    const most = outputTokensOf(size)
    const missing = (more: number): Nanos => {
      const needed = upperBound(sizedFor(size, Math.min(most, Math.max(used, reservation.tokens) + more)), price)
      return nanos(needed > reservation.amount ? needed - reservation.amount : 0n)
    }
    const isDue = used > reservation.tokens
    const [amount, least] = [missing(sliceTokens.most), missing(LAST_TOKENS_MIN)]
    const extended = await extendHold(exchange, reservation, { amount, least, retries: isDue ? RETRIES_MAX : 0 })
    if ('done' in extended && extended.done === 'extended') return addTo(reservation, exchange, extended.granted)
    if (exchange.attempt !== attempt) return // the refusal was about another candidate
    if (!isDue) {
      // It is asked for again when half of the rest is used, and at its end: by then there may be money.
      reservation.reserveAtTokens = Math.max(-1, Math.ceil((reservation.tokens - used) / 2) - 1)
      return
    }
    reservation.refusal = refusalOfExtension(extended, least)
    // Unseen reasoning is used up when it is noticed, so that what is left pays for a part of it.
    if (!('available' in extended) || hiddenIn(exchange) === 0) return
    const rest = readMoney(extended.available)
    if (rest <= 0n) return
    const taken = await extendHold(exchange, reservation, { amount: rest, least: rest, retries: RETRIES_MAX })
    if ('done' in taken && taken.done === 'extended') addTo(reservation, exchange, taken.granted)
    if (used <= reservation.tokens) delete reservation.refusal
  }

  function cover(exchange: Exchange): Promise<void> | undefined {
    const { reservation } = exchange.settlement
    // The end of a complete answer is delivered, whatever its report says.
    if (reservation === undefined || isPassedOn(exchange)) return undefined
    const used = usedTokens(exchange)
    if (used + reservation.reserveAtTokens < reservation.tokens) return undefined
    if (reservation.refusal === undefined && reservation.tokens < outputTokensOf(exchange.attempt.candidate!.size)) {
      reservation.extending ??= inTurn(reservation, extend(exchange, reservation, used))
    }
    if (used <= reservation.tokens) {
      delete reservation.refusal // a report may say less than the estimate did
      return undefined
    }
    if (reservation.extending !== undefined) return reservation.extending.then(() => cover(exchange))
    if (reservation.refusal === undefined) return undefined // all that the call may use is reserved
    throw stop(exchange, reservation.refusal, used - reservation.tokens > sliceTokens.least)
  }

  /** Stops the call and returns the refusal. `isLarge`: much more has arrived than the hold covers. */
  function stop(exchange: Exchange, refusal: Refusal, isLarge: boolean): Refusal {
    const { hold, attempt } = exchange
    if (isLarge && isForFunds(refusal)) largeAnswers.add(hold!.route.permit.caller.accountId, attempt.candidate!)
    return stopCall(exchange, refusal)
  }

  async function extendTo(exchange: Exchange, reservation: Reservation, cost: Nanos): Promise<void> {
    const least = nanos(cost - reservation.amount)
    const extended = await extendHold(exchange, reservation, { amount: least, least, retries: RETRIES_MAX })
    if ('done' in extended && extended.done === 'extended') addTo(reservation, exchange, extended.granted)
    else reservation.refusal = refusalOfExtension(extended, least)
  }

  async function coverCost(exchange: Exchange, reservation: Reservation): Promise<void> {
    await reservation.extending
    const { amount } = cost(exchange, { outcome: 'completed', status: 200 })
    while (reservation.amount < amount) {
      await (reservation.extending ??= inTurn(reservation, extendTo(exchange, reservation, amount)))
      if (reservation.refusal !== undefined) throw stop(exchange, reservation.refusal, true)
    }
  }

  return {
    begin({ amount, slices }, exchange) {
      if (slices === undefined) return
      const reservation = (exchange.settlement.reservation ??= { amount, tokens: 0, reserveAtTokens: 0 })
      delete reservation.refusal // another candidate may be cheaper
      noteCoverage(reservation, exchange, 0)
    },
    cover,
    coverWhole(exchange) {
      const { reservation } = exchange.settlement
      return reservation && coverCost(exchange, reservation)
    },
    check(exchange) {
      if (exchange.attempt.meter.finished) return
      try {
        cover(exchange)?.catch(() => {})
      } catch {
        // The call is stopped, and ends where it waits for its upstream.
      }
    },
  }
}

interface Extension {
  readonly amount: Nanos
  readonly least: Nanos
  readonly retries: number
}

/** A call has one extension at a time, because each says how much the call has. */
const inTurn = (reservation: Reservation, extension: Promise<void>): Promise<void> =>
  extension.finally(() => (reservation.extending = undefined))

const asRefusal = (fault: unknown): Refusal =>
  fault instanceof Refusal ? fault : new Refusal('storage_away', `extension: ${fault}`)

/** Whether the answer is complete, and all of its content was passed on. */
const isPassedOn = ({ attempt: { meter } }: Exchange): boolean =>
  meter.finished && meter.outputBytes <= meter.deliveredBytes

function addTo(reservation: Reservation, exchange: Exchange, granted: MoneyText): void {
  reservation.amount = nanos(reservation.amount + readMoney(granted))
  noteCoverage(reservation, exchange, reservation.tokens)
}

/** Half of a slice is left when the next one is reserved, so that the answer need not wait for it. */
function noteCoverage(reservation: Reservation, { attempt: { candidate } }: Exchange, before: number): void {
  const { size, price } = candidate!
  reservation.tokens = affordableOutput(sizedFor(size, outputTokensOf(size)), price, reservation.amount)
  reservation.reserveAtTokens = Math.ceil((reservation.tokens - before) / 2)
}

/** The tokens that have arrived, or that the model may have used unseen: rather too many than too few. */
function usedTokens(exchange: Exchange): number {
  const { usage, outputBytes, reportedBytes } = exchange.attempt.meter
  const reported = usage === undefined ? 0 : outputTokens(usage)
  const counted =
    reported === 0 // some upstreams report the input alone until the end
      ? outputTokens(estimateUsage(exchange, outputBytes))
      : estimateTokens(outputBytes - reportedBytes)
  const known = reported + Math.ceil(counted * ESTIMATE_MARGIN)
  return known + hiddenIn(exchange, known)
}

/** Tokens of unseen reasoning beyond those that are known. */
const hiddenIn = (exchange: Exchange, known = 0): number =>
  isSilent(exchange.attempt) ? 0 : hiddenTokens(exchange, { outcome: 'out_of_funds', status: 200 }, known)

function refusalOfExtension(extended: Exclude<ExtendOutcome, { done: 'extended' }> | Refusal, least: Nanos): Refusal {
  if (extended instanceof Refusal) return extended
  if (extended.done === 'settled') return new Refusal('gateway_fault', 'the hold of a running call is gone')
  return refusalOfHold(extended, least, hintOf('call_funds_ended'))!
}

const isForFunds = ({ code }: Refusal): boolean => code === 'balance_too_low' || code === 'budget_too_low'

/** Returns the refusal. */
function stopCall({ lifetime: { stop } }: Exchange, refusal: Refusal): Refusal {
  const outcome = isForFunds(refusal) || refusal.code === 'account_frozen' ? 'out_of_funds' : outcomeOf(refusal)
  stop.stop({ outcome, refusal })
  return refusal
}
