// Route → Hold: reserves the highest possible cost of the call, durably, before any byte goes upstream.
//
// There are three bounds. Each is tried only if the funds do not cover the one before:
// 1. Every byte of text is a token. This bound covers the most expensive candidate, so that any of them may be used.
// 2. The tokens are counted. This bound covers the preferred candidate; more expensive candidates are dropped.
// 3. For keys that allow it, the output is cut to what the funds cover. More expensive candidates are dropped as well.

import { bounds } from '../base/bounds.ts'
import type { ErrorCode } from '../base/errors.ts'
import { Refusal } from '../base/errors.ts'
import type { Nanos } from '../base/money/money.ts'
import { noMoney } from '../base/money/money.ts'
import type { HoldOutcome, Ledger } from '../billing/ledger.ts'
import { refusalOfHold } from '../billing/ledger.ts'
import type { CallSize } from '../billing/price.ts'
import { affordableOutput, estimateTokens, inputBound, upperBound } from '../billing/price.ts'
import type { CountTokens } from '../billing/token-counter.ts'
import { tokensAtMost } from '../billing/token-counter.ts'
import type { Call } from '../protocols/neutral/call.ts'
import { readMoney } from '../store/ledger/money-text.ts'
import { withCandidates } from './30-route.ts'
import { draftOf } from './80-record.ts'
import type { Candidate, Exchange, Hold, Route } from './exchange.ts'
import { throwIfTaken } from './lifetime/idempotency.ts'

/** For a smaller body a count costs more than it could save. */
const COUNTED_BYTES_MIN = 1_024

/** A shorter answer would be useless. */
const CLAMPED_TOKENS_MIN = 256
/** The funds may change between the refusal, which says what is available, and the next attempt. */
const CLAMP_TRIES_MAX = 3

/** Errors after which nothing can be reserved. After any other error a hold may exist. */
const NEVER_HELD: ReadonlySet<ErrorCode> = new Set(['overloaded', 'storage_full'])

export interface HoldParts {
  readonly ledger: Pick<Ledger, 'hold'>
  readonly countTokens: CountTokens
}

export type HoldCall = (route: Route, call: Call, exchange: Exchange) => Promise<Hold>

export function buildHold({ ledger, countTokens }: HoldParts): HoldCall {
  const reserve = buildReserve(ledger)

  /** Tries the smaller bounds after the first one was refused. */
  async function holdLess(exchange: Exchange, route: Route, { call, held, isFirst }: RefusedBound): Promise<Hold> {
    const { size, price } = route.candidates[0]!
    let finer = size
    let last = held
    let [inputTokens, inputTokensMax]: [number?, number?] = []
    async function tryHold(sized: CallSize, cap?: number): Promise<Hold | undefined> {
      const amount = upperBound(sized, price)
      last = await reserve(exchange, route, { amount, coarse: noMoney })
      if (last.done !== 'held') return undefined
      return {
        ...affordable(route, { amount, held, inputTokensMax, cap }),
        call,
        ...(inputTokens !== undefined && { inputTokens }),
        ...(cap !== undefined && { cap }),
      } as Hold
    }
    if (!isFirst && isInsufficient(last)) {
      const preferred = await tryHold(size)
      if (preferred !== undefined) return preferred
    }
    if (isCountable(call) && isInsufficient(last) && couldFit(size, price, last)) {
      const count = await exchange.lifetime.stop.race(countTokens(call.body))
      if (count !== undefined) {
        inputTokens = count.tokens + estimateTokens(count.uncountedBytes)
        inputTokensMax = tokensAtMost(count)
        finer = narrower(size, { inputTokensMax })
      }
      const counted = await tryHold(finer)
      if (counted !== undefined) return counted
    }
    const clamps = route.permit.caller.clamps && !call.uncapped
    for (let tries = 0; clamps && tries < CLAMP_TRIES_MAX && isInsufficient(last); tries++) {
      const cap = affordableOutput(finer, price, readMoney(last.available))
      if (cap < CLAMPED_TOKENS_MIN) break
      const clamped = await tryHold(narrower(finer, { cap }), cap)
      if (clamped !== undefined) return clamped
    }
    const hint = call.uncapped ? '' : hintOf(finer, last, { price, capName: exchange.protocol.capFieldName })
    throw refusalOfHold(last, upperBound(finer, price), hint) ?? holdFailure(exchange, last)
  }

  return async function hold(route, call, exchange) {
    const { size, price } = mostExpensive(route.candidates)
    const coarse = isCountable(call) ? inputBound(size, price) : noMoney
    const amount = upperBound(size, price)
    const held = await reserve(exchange, route, { amount, coarse })
    if (held.done === 'held') return { route, call, amount } as Hold
    const isFirst = boundOf(route.candidates[0]!) === amount
    return await holdLess(exchange, route, { call, held, isFirst })
  }
}

type Reserve = (exchange: Exchange, route: Route, bound: Bound) => Promise<HoldOutcome>

function buildReserve(ledger: HoldParts['ledger']): Reserve {
  return async function reserve(exchange, route, { amount, coarse }) {
    const { callId } = exchange
    const { claim } = exchange.options
    const { accountId, keyId } = route.permit.caller
    exchange.settlement.mayHaveHold = true
    let held: HoldOutcome
    try {
      const idempotency = claim && { idempotency: claim.key }
      const draft = draftOf(exchange)
      held = await ledger.hold({ callId, accountId, keyId, amount, uncountedPart: coarse, draft, ...idempotency })
    } catch (fault) {
      exchange.settlement.mayHaveHold = !(fault instanceof Refusal && NEVER_HELD.has(fault.code))
      throw fault
    }
    exchange.settlement.mayHaveHold = held.done === 'held'
    throwIfTaken(held)
    return held
  }
}

const boundOf = ({ size, price }: Candidate): Nanos => upperBound(size, price)

function mostExpensive(candidates: readonly Candidate[]): Candidate {
  return candidates.reduce((most, candidate) => (boundOf(candidate) > boundOf(most) ? candidate : most))
}

/** Bounds that hold for every candidate: the counted input, and the cap on the output. */
interface Narrowing {
  readonly inputTokensMax?: number | undefined
  readonly cap?: number | undefined
}

function narrower(size: CallSize, { inputTokensMax = Infinity, cap = Infinity }: Narrowing): CallSize {
  const { inputTokensMax: input, outputTokensMax: output } = size
  return { ...size, inputTokensMax: Math.min(input, inputTokensMax), outputTokensMax: Math.min(output, cap) }
}

interface HeldAmount extends Narrowing {
  readonly amount: Nanos
  /** The answer of the ledger to the larger amount. */
  readonly held: HoldOutcome
}

/** Keeps those candidates only that the amount covers. Each candidate has its own model's limits. */
function affordable(route: Route, { amount, held, ...known }: HeldAmount): Pick<Hold, 'route' | 'amount' | 'skipped'> {
  const sized = route.candidates.map(candidate => ({ ...candidate, size: narrower(candidate.size, known) }))
  const covered = sized.filter(candidate => boundOf(candidate) <= amount)
  const [first, ...more] = sized.filter(candidate => !covered.includes(candidate)).map(boundOf)
  const cheapest = more.reduce((least, one) => (one < least! ? one : least), first)
  const skipped = cheapest === undefined ? undefined : refusalOfHold(held, cheapest)
  return { route: withCandidates(route, covered), amount, ...(skipped !== undefined && { skipped }) }
}

interface Bound {
  readonly amount: Nanos
  /** The part of the amount that a token count could reduce. */
  readonly coarse: Nanos
}

interface RefusedBound {
  readonly call: Call
  readonly held: HoldOutcome
  /** The refused amount was the preferred candidate's own bound, not that of a more expensive one. */
  readonly isFirst: boolean
}

const isCountable = ({ textOnly, bodyBytes }: Call): boolean =>
  textOnly && bodyBytes >= COUNTED_BYTES_MIN && bodyBytes <= bounds.tokenCountBytesMax

type Insufficient = Extract<HoldOutcome, { available: unknown }>

const isInsufficient = (held: HoldOutcome): held is Insufficient => 'available' in held

/** Whether a call without input and with one output token would fit. If not, neither a count nor a cap can help. */
const couldFit = (size: CallSize, price: Candidate['price'], held: Insufficient): boolean =>
  affordableOutput({ ...size, inputTokensMax: 0 }, price, readMoney(held.available)) > 0

interface HintParts {
  readonly price: Candidate['price']
  readonly capName: string | undefined
}

function hintOf(size: CallSize, held: HoldOutcome, { price, capName = 'max_tokens' }: HintParts): string {
  const cap = isInsufficient(held) ? affordableOutput(size, price, readMoney(held.available)) : 0
  return cap > 0 ? `With ${capName} of at most ${cap} it would fit.` : 'No cap on its output would make it fit.'
}

const holdFailure = ({ requestId }: Exchange, { done }: HoldOutcome): Error =>
  new Error(`${requestId}: the ledger did not reserve the amount: ${done}`)
