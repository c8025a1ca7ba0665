// Route → Hold: the most that the call can cost is reserved, durably, before any byte goes upstream.
//
// There are three bounds, each tried only when the one before it is too much for the funds: every byte of text is a
// token; the tokens are counted; and, for keys that opted in, the output is cut to what can be paid. The first covers
// the dearest of all ways to the model, so that any of them may be taken; the others cover the preferred way, and a way
// that is dearer is then given up.

import { bounds } from '../base/bounds.ts'
import type { ErrorCode } from '../base/errors.ts'
import { Refusal } from '../base/errors.ts'
import type { Nanos } from '../base/money/money.ts'
import { noMoney } from '../base/money/money.ts'
import type { Held, Ledger } from '../billing/ledger.ts'
import { refusalOfHold } from '../billing/ledger.ts'
import type { CallSize } from '../billing/price.ts'
import { affordableOutput, estimateTokens, inputBound, upperBound } from '../billing/price.ts'
import type { CountTokens } from '../billing/token-counter.ts'
import { tokensAtMost } from '../billing/token-counter.ts'
import type { Call } from '../protocols/neutral/call.ts'
import { readMoney } from '../store/ledger/money-text.ts'
import type { Capabilities, Model } from '../upstreams/provider.ts'
import { draftOf } from './80-record.ts'
import type { Exchange, Hold, Route, Way } from './exchange.ts'
import { throwIfTaken } from './lifetime/idempotency.ts'
import { usesAtMost } from './settle/tool-uses.ts'

/** For a model whose own limits nobody wrote down. */
const OUTPUT_TOKENS_UNKNOWN = 32_768
const CONTEXT_TOKENS_UNKNOWN = 131_072
/** What a model thinks at most before it answers, where its cap does not say. */
const THOUGHT_TOKENS_MAX = 32_768

/** Below this a count costs more than it could free. */
const COUNTED_BYTES_MIN = 1_024

/** An answer that is cut shorter than this helps nobody. */
const CLAMPED_TOKENS_MIN = 256
/** Funds may move between what we are told and what we ask for then. */
const CLAMP_TRIES_MAX = 3

/** Thrown before anything was reserved; after anything else something may have been. */
const NEVER_HELD: ReadonlySet<ErrorCode> = new Set(['overloaded', 'storage_full'])

export interface HoldParts {
  readonly ledger: Pick<Ledger, 'hold'>
  readonly countTokens: CountTokens
}

export type HoldCall = (route: Route, call: Call, exchange: Exchange) => Promise<Hold>

export function buildHold({ ledger, countTokens }: HoldParts): HoldCall {
  const reserve = buildReserve(ledger)

  /** The first bound was too much. */
  async function holdLess(exchange: Exchange, route: Route, { call, size, held, isFirst }: Refused): Promise<Hold> {
    let finer = size
    let last = held
    let [inputTokens, inputTokensMax]: [number?, number?] = []
    async function tryHold(sized: CallSize, cap?: number): Promise<Hold | undefined> {
      const amount = upperBound(sized, route.price)
      last = await reserve(exchange, route, { amount, coarse: noMoney })
      if (last.done !== 'held') return undefined
      return {
        ...affordable(route, call, { amount, held, inputTokensMax, cap }),
        ...(inputTokens !== undefined && { inputTokens }),
        ...(cap !== undefined && { cap }),
      } as Hold
    }
    if (!isFirst && hasRoom(last)) {
      const preferred = await tryHold(size)
      if (preferred !== undefined) return preferred
    }
    if (isCountable(call) && hasRoom(last) && couldFit(size, route, last)) {
      const count = await exchange.stop.during(countTokens(call.body))
      if (count !== undefined) {
        inputTokens = count.tokens + estimateTokens(count.uncountedBytes)
        inputTokensMax = tokensAtMost(count)
        finer = narrower(size, { inputTokensMax })
      }
      const counted = await tryHold(finer)
      if (counted !== undefined) return counted
    }
    const clamps = route.permit.caller.clamps && !call.uncapped
    for (let tries = 0; clamps && tries < CLAMP_TRIES_MAX && hasRoom(last); tries++) {
      const cap = affordableOutput(finer, route.price, readMoney(last.available))
      if (cap < CLAMPED_TOKENS_MIN) break
      const clamped = await tryHold(narrower(finer, { cap }), cap)
      if (clamped !== undefined) return clamped
    }
    const hint = call.uncapped ? '' : hintOf(finer, last, { price: route.price, capName: exchange.protocol.capName })
    throw refusalOfHold(last, upperBound(finer, route.price), hint) ?? unheld(exchange, last)
  }

  return async function hold(route, call, exchange) {
    const sizes: readonly CallSize[] = route.ways.map(way => sizeOn(way, call))
    const dearest = dearestOf(route, sizes)
    const [size, way] = [sizes[dearest]!, route.ways[dearest]!]
    const coarse = isCountable(call) ? inputBound(size, way.price) : noMoney
    const amount = upperBound(size, way.price)
    const held = await reserve(exchange, route, { amount, coarse })
    if (held.done === 'held') return { route, call, size: sizes[0]!, sizes, amount } as Hold
    const isFirst = upperBound(sizes[0]!, route.price) === amount
    return await holdLess(exchange, route, { call, size: sizes[0]!, held, isFirst })
  }
}

type Reserve = (exchange: Exchange, route: Route, bound: Bound) => Promise<Held>

function buildReserve(ledger: HoldParts['ledger']): Reserve {
  return async function reserve(exchange, route, { amount, coarse }) {
    const { callId, claim } = exchange
    const { accountId, keyId } = route.permit.caller
    exchange.mayHold = true
    let held: Held
    try {
      const idempotency = claim && { idempotency: claim.key }
      const draft = draftOf(exchange)
      held = await ledger.hold({ callId, accountId, keyId, amount, coarse, draft, ...idempotency })
    } catch (fault) {
      exchange.mayHold = !(fault instanceof Refusal && NEVER_HELD.has(fault.code))
      throw fault
    }
    exchange.mayHold = held.done === 'held'
    throwIfTaken(held)
    return held
  }
}

function sizeOn(way: Way, call: Call): CallSize {
  const { model, provider, withoutSearch } = way
  const size = sizeOf(withoutSearch ? { ...call, searchesMax: 0 } : call, model, provider.can)
  const uses = usesAtMost(way, call, size.searchesMax > 0)
  return uses === undefined ? size : { ...size, units: { ...size.units, ...uses } }
}

/** Which of its ways. */
function dearestOf({ ways }: Route, sizes: readonly CallSize[]): number {
  if (ways.length === 1) return 0
  const most = ways.map(({ price }, at) => upperBound(sizes[at]!, price))
  return most.reduce((best, amount, at) => (amount > most[best]! ? at : best), 0)
}

/** What is known of a call on whichever way it goes: its tokens were counted, or its output is cut. */
interface Known {
  readonly inputTokensMax?: number | undefined
  readonly cap?: number | undefined
}

function narrower(size: CallSize, { inputTokensMax = Infinity, cap = Infinity }: Known): CallSize {
  const { inputTokensMax: input, outputTokensMax: output } = size
  return { ...size, inputTokensMax: Math.min(input, inputTokensMax), outputTokensMax: Math.min(output, cap) }
}

interface Paid extends Known {
  readonly amount: Nanos
  /** Why more than that could not be held. */
  readonly held: Held
}

/** By those ways alone that the amount covers. The limits of one model are no bound on another. */
function affordable(route: Route, call: Call, { amount, held, ...known }: Paid): Pick<Hold, 'route' | 'call' | Sized> {
  const sized = route.ways.map(way => ({ way, size: narrower(sizeOn(way, call), known) }))
  const bound = ({ way, size }: (typeof sized)[number]): Nanos => upperBound(size, way.price)
  const paid = sized.filter(one => bound(one) <= amount)
  const [dearer, ...more] = sized.filter(one => !paid.includes(one)).map(bound)
  const cheapest = more.reduce((least, one) => (one < least! ? one : least), dearer)
  const skipped = cheapest === undefined ? undefined : refusalOfHold(held, cheapest)
  const [ways, sizes] = [paid.map(({ way }) => way), paid.map(({ size }) => size)]
  const options = ways.length === route.ways.length ? route.options : ways.map(({ option }) => option)
  const narrowed = { route: { ...route, ways, options }, call, size: sizes[0]!, sizes, amount }
  return skipped === undefined ? narrowed : { ...narrowed, skipped }
}

type Sized = 'amount' | 'size' | 'sizes' | 'skipped'

interface Bound {
  readonly amount: Nanos
  /** The part that a count of tokens could make smaller. */
  readonly coarse: Nanos
}

interface Refused {
  readonly call: Call
  readonly size: CallSize
  readonly held: Held
  /** It was the preferred way's own bound that was refused, and no dearer one's. */
  readonly isFirst: boolean
}

type Capped = Pick<Capabilities, 'capsThought'>

/**
 * A provider refuses what does not fit into its context, so no input is larger. Text that is in the body is no more
 * tokens than bytes, either; what is fetched or measured elsewhere (an image, a file, a search) may be anything.
 */
export function sizeOf(call: Call, { contextTokens, outputTokensMax: own }: Model, can: Capped): CallSize {
  const { textOnly, choices, searchesMax, outputTokensMax: asked } = call
  return {
    inputTokensMax: call.inputTokensMax ?? inputMax(call, contextTokens),
    outputTokensMax: own === undefined ? (asked ?? OUTPUT_TOKENS_UNKNOWN) : Math.min(asked ?? own, own),
    thoughtTokensMax: can.capsThought || asked === 0 ? 0 : Math.min(own ?? THOUGHT_TOKENS_MAX, THOUGHT_TOKENS_MAX),
    choices,
    searchesMax,
    textOnly,
    ...(call.units && { units: call.units }),
  }
}

function inputMax({ textOnly, bodyBytes }: Call, contextTokens: number | undefined): number {
  if (textOnly) return Math.min(bodyBytes, contextTokens ?? bodyBytes)
  return contextTokens ?? Math.max(bodyBytes, CONTEXT_TOKENS_UNKNOWN)
}

const isCountable = ({ textOnly, bodyBytes }: Call): boolean =>
  textOnly && bodyBytes >= COUNTED_BYTES_MIN && bodyBytes <= bounds.tokenCountBytesMax

type Short = Extract<Held, { available: unknown }>

const hasRoom = (held: Held): held is Short => 'available' in held

/** Whether a call of no input and one token would fit; if not, no count and no cap can help. */
const couldFit = (size: CallSize, route: Route, held: Short): boolean =>
  affordableOutput({ ...size, inputTokensMax: 0 }, route.price, readMoney(held.available)) > 0

interface Hinted {
  readonly price: Route['price']
  readonly capName: string | undefined
}

function hintOf(size: CallSize, held: Held, { price, capName = 'max_tokens' }: Hinted): string {
  const cap = hasRoom(held) ? affordableOutput(size, price, readMoney(held.available)) : 0
  return cap > 0 ? `With ${capName} of at most ${cap} it would fit.` : 'No cap on its output would make it fit.'
}

const unheld = ({ requestId }: Exchange, { done }: Held): Error => new Error(`${requestId}: not held: ${done}`)
