// What each stage hands to the next, and everything known of one call when it is over.
//
// Caller, Permit, Route and Hold are proofs: only their own stage can make one, so the order of the stages is held
// by the types (a Route cannot be had without a Permit, and no byte goes upstream without a Hold).

import type { Brand } from '../base/brand.ts'
import type { Deadline } from '../base/deadlines.ts'
import type { ErrorCode, Refusal } from '../base/errors.ts'
import type { Nanos } from '../base/money/money.ts'
import type { Stop } from '../base/stop.ts'
import type { CallSize, PricedOrFree } from '../billing/price.ts'
import type { Outcome } from '../billing/who-pays.ts'
import type { KeyRights } from '../identity/key-rights.ts'
import type { GateLease } from '../limits/gate.ts'
import type { LimitLease } from '../limits/leases.ts'
import type { Quota } from '../limits/limits.ts'
import type { Call } from '../protocols/neutral/call.ts'
import type { Conversation } from '../protocols/neutral/conversation.ts'
import type { Losses } from '../protocols/neutral/losses.ts'
import type { Framing, Protocol } from '../protocols/protocol.ts'
import type { Tried } from '../routing/attempts.ts'
import type { Option } from '../routing/choice/option.ts'
import type { Fate } from '../routing/health/health.ts'
import type { RetryLease } from '../routing/retry-budget.ts'
import type { PolicyName } from '../store/rules/rules.ts'
import type { SlowHash } from './attempt/body-hash.ts'
import type { Renaming } from './attempt/response-id.ts'
import type { Translation, VectorTranslation } from './attempt/translation-types.ts'
import type { Claim } from './lifetime/idempotency.ts'
import type { AnswerLease } from './reply/memory-budget.ts'
import type { Chosen } from './route/choice-reason.ts'
import type { NamesMade } from './route/created-references.ts'
import type { Lane } from './route/targets.ts'
import type { Recorder } from './settle/body-recorder.ts'
import type { Cost } from './settle/call-cost.ts'
import type { KeptCall } from './settle/stored-call.ts'
import type { Meter } from './settle/usage-meter.ts'
import type { Timings } from './timings.ts'

/** Until when a key may be used. */
export interface KeyDates {
  readonly expiresMs: number | null
  /** Of a text that was renewed: how long it still works. */
  readonly untilMs: number | null
}

/** Proves who calls. Made in 10-authenticate. */
export type Caller = Brand<
  {
    readonly keyId: number
    readonly accountId: number
    readonly tier: string
    readonly qpm: number
    /** By whose limits it is counted: a key that a member made shares those of one that an operator has limited. */
    readonly limitsKeyId: number
    readonly hasOwnLimit: boolean
    /** The tier's price multiplier. */
    readonly perMille: bigint
    /** A call that its funds do not cover is cut to what they cover. */
    readonly clamps: boolean
    /** A call is refused rather than lose something in translation. */
    readonly strict: boolean
    /** Requests and answers of this key are kept. */
    readonly keepsBodies: boolean
    /** It may be told of channels and of what goes upstream. */
    readonly explains: boolean
  } & KeyRights &
    KeyDates,
  'Caller'
>

/** Proves that the caller may call now. Made in 20-limit-rate. */
export type Permit = Brand<
  {
    readonly caller: Caller
    /** Of requests and of tokens what is left of the tightest limit. */
    readonly quotas: readonly Quota[]
    /** What it has taken of limits and gives back. */
    readonly lease: LimitLease
  },
  'Permit'
>

/** A model at a provider that may answer the call, at its price: what an attempt is made with. */
export interface Way extends Lane {
  readonly price: PricedOrFree
  /** What the call follows, by its name at the only channel that has it. */
  readonly follows?: string
  /** The caller offers a search whose price nobody knows, and does without it: it was never the caller's point. */
  readonly withoutSearch?: boolean
}

/** Proves that the model exists and can be reached. Made in 30-route. It is itself the way in use: the first, then the
 * one of the attempt under way. */
export type Route = Brand<
  Way & {
    readonly permit: Permit
    /** The name that the caller used. */
    readonly asked: string
    readonly policy: PolicyName
    /** The preferred ones first. */
    readonly ways: readonly Way[]
    /** Of each way, in the same order. */
    readonly options: readonly Option[]
  },
  'Route'
>

/** Proves that the worst case is reserved, durably. Made in 35-hold. */
export type Hold = Brand<
  {
    readonly route: Route
    readonly call: Call
    readonly amount: Nanos
    /** What it was held for, on the way in use. */
    readonly size: CallSize
    /** The same for each way of the route. */
    readonly sizes: readonly CallSize[]
    /** Why ways to the model were given up for lack of money, where some were. */
    readonly skipped?: Refusal
    /** The cap on each choice that the funds imposed. */
    readonly cap?: number
    /** Of the input, where they were counted: a better estimate than its bytes. */
    readonly inputTokens?: number
  },
  'Hold'
>

export interface Attempt extends Tried {
  readonly ms: number
  /** How long its upstream wants to be left alone. */
  readonly retryAfterMs?: number | undefined
  /** Its upstream has made nothing of it, and may think otherwise in a moment. */
  readonly again?: boolean
}

export interface Ending {
  readonly outcome: Outcome
  readonly status: number
  /** The code of the refusal that ended it. */
  readonly error?: ErrorCode
  /** The caller has its content, also where that was no stream. */
  readonly shown?: boolean
}

export interface Exchange {
  readonly callId: number
  readonly requestId: string
  readonly startedMs: number
  /** The date at which it came. */
  readonly createdMs: number
  readonly protocol: Protocol
  readonly timings: Timings
  readonly attempts: Attempt[]
  /** Of the attempt under way; what a failed attempt gave counts for nothing. */
  meter: Meter
  /** Stops the call: the caller left, or the gateway must end it. */
  readonly stop: Stop<StopReason>
  /** The caller left, and the call goes on to its end without it. */
  readonly alone: Stop<StopReason>
  /** When that ends, too. */
  untilAlone?: Deadline
  /** Closed; whether its caller is there does not matter any more. */
  isOver?: boolean
  /** Where the caller is, for the log. */
  address(): string
  /** What it holds of its answer, once there is one. */
  memory?: AnswerLease | undefined
  /** Closes the caller's connection, for a caller that does not read. */
  cut(): void
  /** The caller's connection is like any other again, though the call goes on. */
  handOver(): void
  /** The call is over and answered; nobody need wait for it. */
  close(): void
  call?: Call
  /** What came and what went, each the first half of its SHA-256 in hex. */
  cameHash?: string
  wentHash?: SlowHash | undefined
  /** Of the caller's headers those that go to an upstream of the same dialect. */
  passed?: Readonly<Record<string, string>>
  /** Where the caller's stream is not one of server-sent events. */
  framing?: Framing | undefined
  /** What it said of comments in its stream, if anything. */
  comments?: 'on' | 'off'
  /** The caller would rather be refused than lose something in translation. */
  strict?: boolean
  /** What the call means, once a translation has asked and until an answer is there. */
  said?: Conversation | undefined
  /** Of the attempt under way, where its upstream speaks another dialect. */
  translation?: Translation | undefined
  /** How many of its losses stood in the head of the answer; those of a stream's end come later. */
  lossesInHead?: number
  /** The same of embeddings. */
  vectors?: VectorTranslation | undefined
  /** Of the attempt under way, where its upstream speaks the caller's dialect: what was taken out of the request. */
  nativeLosses?: Losses | undefined
  /** Of the attempt under way: what its channel sends otherwise than the caller asked. */
  overrides?: readonly string[] | undefined
  /** Of the attempt under way: its model was told not to think, and obeys. */
  unthinking?: boolean
  /** JSON: what the caller wants its costs to be sorted by. */
  tags?: string
  /** It came with an idempotency key. */
  claim?: Claim
  /** Of a call of which something is kept. */
  recorder?: Recorder
  /** Of a call whose answer can be asked for again. */
  kept?: KeptCall
  /** Its answer was to be kept, and is not. */
  unkept?: boolean
  /** The upstream's answer bears another name than the caller was given. */
  renaming?: Renaming
  /** Of a call whose answer may give ids to what the upstream keeps. */
  names?: NamesMade | undefined
  /** Those ids are noted as its account's. */
  owned?: Promise<void>
  /** It goes on in the background, whether its caller is there or not. */
  detached?: boolean
  /** What there was to choose from. */
  chosen?: Chosen
  /** Its place among the calls under way; given back when it is closed. */
  lease?: GateLease
  caller?: Caller
  /** What has become of its key's dates since it came. */
  keyDates?: KeyDates
  permit?: Permit
  route?: Route
  hold?: Hold
  /** On the channel that answers, until the call is over. */
  turn?: { end(fate: Fate): void }
  /** Its share of what may be tried again. */
  retry?: RetryLease
  /** What it is a turn of, where it matters which channel has the others. */
  conversation?: { readonly name: string; readonly cacheMs: number | undefined } | undefined
  /** What it is billed for, once that is known. */
  usedTokens?: number
  /** When it ended, once it has, however late that is written down. */
  endedMs?: number
  /** When its caller left. */
  leftMs?: number
  /** How it ended, once it has. */
  ending?: Ending
  /** What its caller was told in place of an answer, which may be because its end could not be written down. */
  refused?: Ending
  /** What it used and costs, once that is known. */
  billed?: Cost
  /** What we count of its input, for a call that is learned from. */
  counted?: Promise<number | undefined>
  /** When the first content, or a whole plain answer, was in hand. */
  firstMs?: number
  /** A hold was asked for and not plainly refused: there may be one, even if we never heard of it. */
  mayHold: boolean
  /** The last note in the ledger of what has been delivered. */
  checkpoint?: { readonly atMs: number; readonly bytes: number }
  /** Set by the first ending; later ones get the same promise. */
  settled?: Promise<void>
  /** The same, and what is to be kept of it is kept. */
  ended?: Promise<void>
}

/** Why a call was stopped from outside: what that means for its bill, and what its caller is told. */
export interface StopReason {
  readonly outcome: Outcome
  /** Nothing for a caller that is gone. */
  readonly refusal?: Refusal
}

/** What of the request the upstream of the attempt under way is not told, and what of its answer the caller is not. */
export function lossesOf({ translation, vectors, nativeLosses }: Exchange): readonly string[] {
  return (translation?.source.notes.losses ?? vectors?.losses ?? nativeLosses)?.codes ?? []
}

/** Whether the provider runs tools for the model, which may reach servers of the caller's. */
export function runsTools(exchange: Exchange): boolean {
  const { call, route } = exchange
  if (call === undefined || route === undefined) return false
  if (call.searchesMax > 0 && !route.withoutSearch && !lossesOf(exchange).includes('web_search')) return true
  // Of all tools of the provider's, a translation passes only a search.
  return call.serverTools === true && route.spoken.name === call.dialect
}

export const callerLeft: StopReason = { outcome: 'client_left' }

/** It goes on without its caller, who cannot ask for its answer again: only what it costs is still of interest. */
export const isForNobody = ({ alone, claim }: Exchange): boolean => alone.reason !== undefined && claim === undefined
