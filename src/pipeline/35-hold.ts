// Route → Hold: reserves money for the call, durably, before any byte goes upstream.
//
// There are several bounds. Each is tried only if the funds do not cover the one before, or are not much larger:
// 1. The highest possible cost. Every byte of text is a token, and the most expensive candidate is covered.
// 2. For a call whose answer can be stopped at any time: its input and a first slice of output. Further slices are
//    reserved while the answer arrives (settle/reservation.ts). A plain call is then streamed by the upstream.
// 3. The same with counted tokens, for the preferred candidate; more expensive candidates are dropped.
// 4. What the funds cover: a smaller slice, or a cap on the output where the answer cannot be stopped.
// Keys with strictCap have bounds 1 and 3 only: their calls are refused rather than cut.

import { bounds } from '../base/bounds.ts'
import type { ErrorCode } from '../base/errors.ts'
import { Refusal } from '../base/errors.ts'
import type { Hint } from '../base/hints.ts'
import { hintOf } from '../base/hints.ts'
import type { Nanos } from '../base/money/money.ts'
import type { HoldOutcome, Ledger } from '../billing/ledger.ts'
import { ConfigurationChanged, refusalOfHold } from '../billing/ledger.ts'
import type { CallSize } from '../billing/price.ts'
import { affordableOutput, estimateTokens, inputBound, outputTokensOf, upperBound } from '../billing/price.ts'
import type { CountTokens } from '../billing/token-counter.ts'
import { tokensAtMost } from '../billing/token-counter.ts'
import type { Call } from '../protocols/neutral/call.ts'
import type { Protocol } from '../protocols/protocol.ts'
import { FUNDS_SHARE } from '../store/ledger/funds-share.ts'
import { readMoney } from '../store/ledger/money-text.ts'
import { withCandidates } from './30-route.ts'
import { draftOf } from './80-record.ts'
import type { Candidate, Exchange, Hold, Route } from './exchange.ts'
import { throwIfTaken } from './lifetime/idempotency.ts'
import { isInputUnbounded } from './route/call-size.ts'
import type { LargeAnswers } from './settle/large-answers.ts'
import { LAST_TOKENS_MIN, sizedFor, sliceTokens } from './settle/reservation.ts'

/** For a smaller body a count costs more than it could save. */
const COUNTED_BYTES_MIN = 1_024

/** Unless so many times the uncounted bound of the input is available, the tokens are counted first. */
const COUNTED_SHARE = 10n

/** A shorter capped answer would be useless. */
const CAPPED_TOKENS_MIN = 256
/** The funds may change between the refusal, which says what is available, and the next attempt. */
const TRIES_MAX = 3

/** Errors after which nothing can be reserved. After any other error a hold may exist. */
const NEVER_HELD: ReadonlySet<ErrorCode> = new Set(['overloaded', 'storage_full', 'key_invalid'])

const isNeverHeld = (fault: unknown): boolean =>
  fault instanceof ConfigurationChanged || (fault instanceof Refusal && NEVER_HELD.has(fault.code))

export interface HoldParts {
  readonly ledger: Pick<Ledger, 'hold'>
  readonly countTokens: CountTokens
  readonly largeAnswers: Pick<LargeAnswers, 'has'>
}

export type HoldCall = (route: Route, call: Call, exchange: Exchange) => Promise<Hold>

export function buildHold({ ledger, countTokens, largeAnswers }: HoldParts): HoldCall {
  const reserve = buildReserve(ledger)

  /** Tries the smaller bounds after the first one was refused. */
  async function holdLess(
    exchange: Exchange,
    route: Route,
    { call, held, isFirst, slices: wanted }: RefusedBound,
  ): Promise<Hold> {
    const slices = wanted === 'collected' && !isCollectable(call, exchange.protocol) ? undefined : wanted
    const { size, price } = route.candidates[0]!
    const input: CountedInput = {}
    let finer = size
    let last = held
    async function tryHold(sized: CallSize, cap?: number): Promise<Hold | undefined> {
      const [most, least] = slices === undefined ? [upperBound(sized, price)] : sliceBounds(sized, price)
      last = await reserve(exchange, route, { amount: most, wants: 0n, ...(least !== undefined && { least }) })
      if (last.done !== 'held') return undefined
      const amount = last.granted === undefined ? most : readMoney(last.granted)
      const { tokens: inputTokens } = input
      return {
        ...affordable(route, { amount, held, slices, inputTokensMax: input.tokensMax, cap }),
        call,
        ...(inputTokens !== undefined && { inputTokens }),
        ...(cap !== undefined && slices === undefined && { cap }),
        ...(slices !== undefined && { slices }),
      } as Hold
    }
    if ((!isFirst || wanted !== undefined) && isInsufficient(last)) {
      const preferred = await tryHold(size)
      if (preferred !== undefined) return preferred
    }
    if (isCountable(call) && isInsufficient(last) && couldFit(size, price, last)) {
      const count = await exchange.lifetime.stop.race(countTokens(call.body))
      if (count !== undefined) {
        input.tokens = count.tokens + estimateTokens(count.uncountedBytes)
        input.tokensMax = tokensAtMost(count)
        finer = narrower(size, { inputTokensMax: input.tokensMax })
      }
      const counted = await tryHold(finer)
      if (counted !== undefined) return counted
    }
    const mayCut = slices !== undefined || !(route.permit.caller.strictCap || call.uncapped)
    const tokensMin = slices === undefined ? CAPPED_TOKENS_MIN : LAST_TOKENS_MIN
    for (let tries = 0; mayCut && tries < TRIES_MAX && isInsufficient(last); tries++) {
      const sized = slices === undefined ? finer : sizedFor(finer, outputTokensOf(finer))
      const cap = affordableOutput(sized, price, readMoney(last.available))
      if (cap < Math.min(tokensMin, sized.outputTokensMax)) break
      const tokens = slices === undefined ? cap : Math.min(cap, sliceTokens.least)
      const cut = await tryHold({ ...sized, outputTokensMax: tokens }, cap)
      if (cut !== undefined) return cut
    }
    const hint = call.uncapped ? undefined : capHint(finer, last, { price, capName: exchange.protocol.capFieldName })
    throw refusalOfHold(last, upperBound(finer, price), hint) ?? holdFailure(exchange, last)
  }

  function hasLargeAnswers({ permit, candidates }: Route): boolean {
    for (const candidate of candidates) if (largeAnswers.has(permit.caller.accountId, candidate)) return true
    return false
  }

  return async function hold(route, call, exchange) {
    const slices = hasLargeAnswers(route) ? undefined : slicesOf(route, call, exchange)
    const { size, price } = mostExpensive(route.candidates)
    const uncounted = isCountable(call) ? inputBound(size, price) * COUNTED_SHARE : 0n
    const amount = upperBound(size, price)
    const share = slices === undefined ? 0n : amount * FUNDS_SHARE
    const held = await reserve(exchange, route, { amount, wants: share > uncounted ? share : uncounted })
    if (held.done === 'held') return { route, call, amount } as Hold
    const isFirst = boundOf(route.candidates[0]!) === amount
    return await holdLess(exchange, route, { call, held, isFirst, slices })
  }
}

/** How a call reserves its money in slices; undefined where the answer cannot be stopped at any time. */
function slicesOf({ permit, candidates }: Route, call: Call, { protocol }: Exchange): Hold['slices'] {
  if (permit.caller.strictCap || protocol.codec === undefined || protocol.mayNotStream) return undefined
  // What tools of the provider read is known only at the end of an answer, so that a stop would make it free.
  if (call.state?.background || call.serverTools || call.searchesMax > 0) return undefined
  for (const candidate of candidates) if (!canBeStopped(candidate, call)) return undefined
  if (call.stream) return 'streamed'
  return call.units !== undefined ? undefined : 'collected'
}

/** Whether a stop ends the answer and its bill, and the cost of the input is known before the end. */
function canBeStopped(candidate: Candidate, call: Call): boolean {
  const { upstreamProtocol, provider, model } = candidate
  if (model.billsWhenLeft ?? provider.can.billsWhenLeft) return false
  if (isInputUnbounded(candidate, call)) return false
  return upstreamProtocol.codec !== undefined && provider.speaks[upstreamProtocol.name]?.stream !== undefined
}

/** Whether a plain answer can be collected from a stream: it is text. An invalid request is left to its upstream. */
function isCollectable(call: Call, { codec }: Protocol): boolean {
  try {
    return !codec?.readConversation(call).lostFields.some(field => /modalities$/i.test(field))
  } catch (fault) {
    if (fault instanceof Refusal) return false
    throw fault
  }
}

/** The most and the least that a first slice may cost. */
function sliceBounds(size: CallSize, price: Candidate['price']): readonly [most: Nanos, least: Nanos] {
  const boundOfTokens = (tokens: number): Nanos =>
    upperBound(sizedFor(size, Math.min(tokens, outputTokensOf(size))), price)
  return [boundOfTokens(sliceTokens.most), boundOfTokens(sliceTokens.least)]
}

/** What the ledger can compare: more than any account has. */
const WANTS_MAX = 2n ** 61n

type Reserve = (exchange: Exchange, route: Route, bound: Bound) => Promise<HoldOutcome>

function buildReserve(ledger: HoldParts['ledger']): Reserve {
  return async function reserve(exchange, route, { amount, least, wants }) {
    const { callId, revision } = exchange
    const { claim } = exchange.options
    const { accountId, keyId, version } = route.permit.caller
    exchange.settlement.mayHaveHold = true
    let held: HoldOutcome
    try {
      held = await ledger.hold({
        callId,
        accountId,
        keyId,
        amount,
        least,
        wants: wants < WANTS_MAX ? wants : WANTS_MAX,
        draft: draftOf(exchange),
        idempotency: claim?.key,
        admitted: revision === undefined ? undefined : { keyVersion: version, revision },
      })
    } catch (fault) {
      exchange.settlement.mayHaveHold = !isNeverHeld(fault)
      throw fault
    }
    exchange.settlement.mayHaveHold = held.done === 'held'
    throwIfTaken(held)
    return held
  }
}

const boundOf = ({ size, price }: Candidate): Nanos => upperBound(size, price)

function mostExpensive(candidates: readonly Candidate[]): Candidate {
  if (candidates.length === 1) return candidates[0]!
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

interface CountedInput {
  tokens?: number
  tokensMax?: number
}

interface HeldAmount extends Narrowing {
  readonly amount: Nanos
  /** The answer of the ledger to the larger amount. */
  readonly held: HoldOutcome
  readonly slices: Hold['slices']
}

/** Keeps those candidates only that the amount covers. Each candidate has its own model's limits. */
function affordable(
  route: Route,
  { amount, held, slices, inputTokensMax, cap }: HeldAmount,
): Pick<Hold, 'route' | 'amount' | 'skipped'> {
  // With slices the output is bounded by its slices, so that a candidate keeps its own size.
  const known = slices === undefined ? { inputTokensMax, cap } : { inputTokensMax }
  const sized = route.candidates.map(candidate => ({ ...candidate, size: narrower(candidate.size, known) }))
  const leastOf = (candidate: Candidate): Nanos =>
    slices === undefined
      ? boundOf(candidate)
      : boundOf({
          ...candidate,
          size: sizedFor(candidate.size, Math.min(LAST_TOKENS_MIN, outputTokensOf(candidate.size))),
        })
  const covered = sized.filter(candidate => leastOf(candidate) <= amount)
  const [first, ...more] = sized.filter(candidate => !covered.includes(candidate)).map(leastOf)
  const cheapest = more.reduce((least, one) => (one < least! ? one : least), first)
  const skipped = cheapest === undefined ? undefined : refusalOfHold(held, cheapest)
  return { route: withCandidates(route, covered), amount, ...(skipped !== undefined && { skipped }) }
}

interface Bound {
  readonly amount: Nanos
  /** Less may be held, but not less than this. */
  readonly least?: Nanos
  /** If less than this is available, the ledger refuses, and a smaller bound is tried. */
  readonly wants: bigint
}

interface RefusedBound {
  readonly call: Call
  readonly held: HoldOutcome
  /** The refused amount was the preferred candidate's own bound, not that of a more expensive one. */
  readonly isFirst: boolean
  readonly slices: Hold['slices']
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

function capHint(size: CallSize, held: HoldOutcome, { price, capName = 'max_tokens' }: HintParts): Hint {
  const cap = isInsufficient(held) ? affordableOutput(size, price, readMoney(held.available)) : 0
  return cap > 0 ? hintOf('call_fits', { field: capName, max: cap }) : hintOf('call_fits_never')
}

const holdFailure = ({ requestId }: Exchange, { done }: HoldOutcome): Error =>
  new Error(`${requestId}: the ledger did not reserve the amount: ${done}`)
