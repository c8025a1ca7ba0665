// The state of one call while it runs, and the proofs that its stages pass on.
//
// Only its own stage can create a Caller, a Permit, a Route or a Hold. So the types enforce the order of the stages:
// there is no Route without a Permit, and nothing is sent upstream without a Hold.

import type { Brand } from '../base/brand.ts'
import type { Deadline } from '../base/deadlines.ts'
import type { ErrorCode, Refusal } from '../base/errors.ts'
import type { Nanos } from '../base/money/money.ts'
import type { Stop } from '../base/stop.ts'
import type { CallPriceOrFree, CallSize } from '../billing/price.ts'
import type { Outcome } from '../billing/who-pays.ts'
import type { KeyRights } from '../identity/key-rights.ts'
import type { GateLease } from '../limits/gate.ts'
import type { LimitLease } from '../limits/leases.ts'
import type { LimitRuleSet } from '../limits/limit-rule.ts'
import type { Quota } from '../limits/limits.ts'
import type { Call } from '../protocols/neutral/call.ts'
import type { Conversation } from '../protocols/neutral/conversation.ts'
import type { Losses } from '../protocols/neutral/losses.ts'
import type { Protocol, StreamFraming } from '../protocols/protocol.ts'
import { runsAtProvider } from '../protocols/request/services.ts'
import type { TriedChannel } from '../routing/attempts.ts'
import type { AttemptResult } from '../routing/health/health.ts'
import type { RetryLease } from '../routing/retry-budget.ts'
import type { DeferredHash } from './attempt/body-hash.ts'
import type { MediaLease } from './attempt/media-memory.ts'
import type { ResponseIdRewrite } from './attempt/response-id.ts'
import type { EmbeddingsTranslation, Translation } from './attempt/translation-types.ts'
import type { Claim } from './lifetime/idempotency.ts'
import type { AnswerLease } from './reply/memory-budget.ts'
import type { RouteChoice } from './route/choice-reason.ts'
import type { CreatedReferences } from './route/created-references.ts'
import type { Target, TargetGroup } from './route/targets.ts'
import type { BodyRecorder } from './settle/body-recorder.ts'
import type { Cost } from './settle/call-cost.ts'
import type { StoredCall } from './settle/stored-call.ts'
import type { UsageMeter } from './settle/usage-meter.ts'
import { newMeter } from './settle/usage-meter.ts'
import type { Timings } from './timings.ts'

/** The dates after which a key stops working. */
export interface KeyDates {
  readonly expiresMs: number | null
  /** When the old text of a renewed key stops working. */
  readonly untilMs: number | null
}

/** Proves that the caller is authenticated. Created in 10-authenticate. */
export type Caller = Brand<
  {
    readonly keyId: number
    /** The version of what is known of the key and its account. */
    readonly version: number
    /** The digest of the key's text that the call was sent with. */
    readonly digest: Buffer
    readonly accountId: number
    readonly tier: string
    readonly qpm: number
    /** The key whose limits count this call. A key that a member created shares the limits of the operator's key. */
    readonly limitsKeyId: number
    readonly hasOwnLimit: boolean
    /** The tier's price multiplier. */
    readonly perMille: bigint
    /** Where the funds do not cover the highest possible cost, calls are refused; otherwise their output may be cut. */
    readonly strictCap: boolean
    /** Calls are refused where a translation would lose something. */
    readonly strict: boolean
    /** Requests and answers of this key are stored. */
    readonly keepsBodies: boolean
    /** The key may see channels and upstream requests in explanations. */
    readonly explains: boolean
  } & KeyRights &
    KeyDates,
  'Caller'
>

/** Proves that the limits admit the call. Created in 20-limit-rate. */
export type Permit = Brand<
  {
    readonly caller: Caller
    /** What is left of the tightest limit of requests, and of the tightest limit of tokens. */
    readonly quotas: readonly Quota[]
    /** What the call has taken from its limits, and returns when it is over. */
    readonly lease: LimitLease
    /** The rules that have counted the call. Undefined if it was not counted. */
    readonly rules: LimitRuleSet | undefined
  },
  'Permit'
>

/** A target with its price and its size for one call. An attempt is made with one candidate. */
export interface Candidate extends Target {
  readonly price: CallPriceOrFree
  /** The largest size of the call on this target. */
  readonly size: CallSize
  /** The upstream's id of the response that the call continues, where only one channel stores that response. */
  readonly previousResponseId?: string
  /** The search is left out of the request, because its price on this target is unknown. */
  readonly withoutSearch?: boolean
}

/** Proves that the model exists and that channels can serve it. Created in 30-route. */
export type Route = Brand<
  {
    readonly permit: Permit
    /** The targets of the model name that the caller sent. */
    readonly group: TargetGroup
    /** Those that can serve the call: at least one, in order of preference. */
    readonly candidates: readonly Candidate[]
  },
  'Route'
>

/** Proves that the highest possible cost is reserved, durably, or a first slice of it. Created in 35-hold. */
export type Hold = Brand<
  {
    readonly route: Route
    readonly call: Call
    /** Covers each candidate of the route at its size; with slices, the first slice of its output. */
    readonly amount: Nanos
    /**
     * The money for the output is reserved in slices while the answer arrives (settle/reservation.ts). `collected`: the
     * caller wants a plain answer, so the upstream is asked for a stream, which is collected.
     */
    readonly slices?: 'streamed' | 'collected'
    /** The refusal of the cheapest candidate that the funds do not cover, if there is one. */
    readonly skipped?: Refusal
    /** The cap on the output of each choice that the funds impose. */
    readonly cap?: number
    /** The counted input tokens, where they were counted: a better estimate than the bytes. */
    readonly inputTokens?: number
  },
  'Hold'
>

/**
 * One try to get an answer from one channel, with all of its state. The next try replaces it whole, because failed
 * attempts are not billed and leave nothing behind.
 */
export interface Attempt {
  /** The candidate in use: the preferred one until a channel is picked. Undefined before the call is routed. */
  candidate: Candidate | undefined
  readonly meter: UsageMeter
  /** The first half of the SHA-256 of the upstream body, in hex. */
  upstreamHash: DeferredHash | undefined
  /** Where the upstream speaks another dialect. */
  translation: Translation | undefined
  /** The same for an embeddings call. */
  embeddings: EmbeddingsTranslation | undefined
  /** What was removed from the request, where the upstream speaks the caller's dialect. */
  nativeLosses: Losses | undefined
  /** The fields and headers that the channel replaces. */
  overrides: readonly string[] | undefined
  /** The model does not reason, because the request says so and the model obeys. */
  reasoningOff: boolean
  /** When the first content had arrived, of a plain answer that is collected from a stream. */
  firstContentMs: number | undefined
  /** Counts the call on the channel that answers, until the call is over. */
  channelUse: { end(result: AttemptResult): void } | undefined
}

export const newAttempt = (candidate?: Candidate): Attempt => ({
  candidate,
  meter: newMeter(),
  upstreamHash: undefined,
  translation: undefined,
  embeddings: undefined,
  nativeLosses: undefined,
  overrides: undefined,
  reasoningOff: false,
  firstContentMs: undefined,
  channelUse: undefined,
})

export interface FinishedAttempt extends TriedChannel {
  readonly sinceMs: number
  /** Until it failed, or until its answer had begun. */
  readonly ms: number
  /** The HTTP status of the upstream, if it sent one. */
  readonly status?: number | undefined
  /** How long the upstream asked to wait before the next request. */
  readonly retryAfterMs?: number | undefined
  /** The upstream did no work for this attempt, so that the same channel may be tried again. */
  readonly isRetryable?: boolean
}

export interface CallEnding {
  readonly outcome: Outcome
  readonly status: number
  /** The code of the refusal that ended the call. */
  readonly error?: ErrorCode
  /** The caller has received content, also where the answer was not streamed. */
  readonly contentDelivered?: boolean
}

/** One call while it runs. Each part has one owner, which is the only one that changes it. */
export interface Exchange {
  readonly callId: number
  readonly requestId: string
  readonly startedMs: number
  /** The wall-clock time at which the call arrived. */
  readonly createdMs: number
  readonly protocol: Protocol
  readonly timings: Timings
  readonly options: CallOptions
  readonly routing: RoutingState
  readonly lifetime: CallLifetime
  readonly storage: AnswerStorage
  readonly settlement: SettlementState
  caller?: Caller
  /**
   * The revision of the rules and prices with which the call is admitted, where other processes can change them. Null: they
   * were read after the call arrived, and newer ones do not count for it.
   */
  revision?: number | null
  /** The current dates of the key, where they have changed since the call arrived. */
  keyDates?: KeyDates
  call?: Call
  /** The first half of the SHA-256 of the request body, in hex. */
  requestHash?: string
  permit?: Permit
  route?: Route
  hold?: Hold
  /** The running attempt, or the last one. */
  attempt: Attempt
  readonly attempts: FinishedAttempt[]
  /** The neutral request, from the first translation until an answer has begun. */
  conversation?: Conversation | undefined
  /** How many losses the head of the answer listed; the end of a stream lists the others. */
  lossesInHead?: number
  /** Our own count of the input tokens, for a call from which the token counter learns. */
  countedInput?: Promise<number | undefined>
}

/** What the caller asks for besides the call itself, in headers and tags. Set once, when the body is read. */
export interface CallOptions {
  /** The caller's headers that are forwarded to an upstream of the same dialect. */
  forwardedHeaders?: Readonly<Record<string, string>>
  /** How the stream is framed, where it is not a stream of server-sent events. */
  framing?: StreamFraming | undefined
  /** Whether the caller wants comments in its stream, where it said so. */
  comments?: 'on' | 'off'
  /** The call is refused where a translation would lose something. */
  strict?: boolean
  /** JSON: tags by which the caller groups its costs. */
  tags?: string
  /** The idempotency key of the call. */
  claim?: Claim
  /** Records the bodies of a call that are stored. */
  recorder?: BodyRecorder
}

/** The state of the channel picker for one call. */
export interface RoutingState {
  /** Equal for all turns of a conversation, once it was needed. */
  conversationKey?: string
  /** The id of the conversation for the record. Undefined before the call is routed, and where it has none. */
  conversation?: string | undefined
  /** The key by which turns of one conversation find the same channel, where there is more than one channel. */
  affinity?: { readonly name: string; readonly cacheMs: number | undefined } | undefined
  /** Which channels routing could choose from, and why it chose this one. */
  routeChoice?: RouteChoice
  /** The call's share of the retry budget. */
  retryLease?: RetryLease
}

/** How long the call lives: its connection, its stop, and what it holds until it is closed. */
export interface CallLifetime {
  /** Stops the call: the caller disconnected, or the gateway must end the call. */
  readonly stop: Stop<StopReason>
  /** Set when the caller has disconnected and the call still runs to its end. */
  readonly callerGone: Stop<StopReason>
  /** Ends a call that runs on without its caller. */
  callerGoneDeadline?: Deadline
  /** When the caller disconnected. */
  callerGoneMs?: number
  /** The call is closed; a disconnect of its caller has no effect any more. */
  isOver?: boolean
  /** The call runs in the background, whether its caller is connected or not. */
  detached?: boolean
  /** Counts the call at the gate until it is closed. */
  gateLease?: GateLease
  /** The memory that the answer holds. */
  memory?: AnswerLease | undefined
  /** The memory that fetched media hold. */
  media?: MediaLease
  /** The caller's address, for the log. */
  address(): string
  /** Closes the connection of a caller that does not read. */
  closeConnection(): void
  /** Gives the connection back to the server, although the call goes on. */
  releaseConnection(): void
  /** Ends the call and returns its leases. */
  close(): void
}

/** What is stored of the answer, so that later calls can name it. */
export interface AnswerStorage {
  /** The answer as it is stored, for a call whose answer can be retrieved later. */
  storedCall?: StoredCall
  /** The answer should have been stored, and was not. */
  notStored?: boolean
  /** Replaces the upstream's response id by the id that the caller gets. */
  responseIdRewrite?: ResponseIdRewrite
  /** Collects the ids of what the upstream stores, for a call whose answer may contain some. */
  createdReferences?: CreatedReferences | undefined
  /** Resolves when these ids are written as the account's own. */
  referencesOwned?: Promise<void>
}

/** The money of a call that is reserved in slices. Changed by settle/reservation.ts. */
export interface Reservation {
  /** The hold of the call, with all its extensions. */
  amount: Nanos
  /** How many output tokens of all choices together the amount covers on the candidate in use. */
  tokens: number
  /** The next slice is reserved when no more than this many tokens are left. */
  reserveAtTokens: number
  /** The extension that is being written. */
  extending?: Promise<void> | undefined
  /** Why the last extension was refused: it would have paid for what has arrived already, so that the call ends. */
  refusal?: Refusal
}

/** How the call ended and what it costs, and how far that is written. */
export interface SettlementState {
  /** A hold was requested and not clearly refused: it may exist, even if its confirmation was lost. */
  mayHaveHold: boolean
  /** What is reserved so far, for a call whose money is reserved in slices. */
  reservation?: Reservation
  /** The last checkpoint of what was delivered. */
  checkpoint?: { readonly atMs: number; readonly bytes: number }
  /** When the first content, or a plain answer that is not collected from a stream, had arrived. */
  firstContentMs?: number
  /** When the call ended, even if its record is written later. */
  endedMs?: number
  /** How the call ended. */
  ending?: CallEnding
  /** The refusal that the caller got, where that differs from `ending`: the end may be impossible to write. */
  refusedEnding?: CallEnding
  /** What the call used and costs. */
  cost?: Cost
  /** The tokens that are billed, once they are known. */
  usedTokens?: number
  /** Set by the first ending; later endings get the same promise. */
  settled?: Promise<void>
  /** Resolves when the call is settled and what must be stored of it is stored. */
  settledAndStored?: Promise<void>
}

/** The parts of a call that has just arrived. */
export const newCallParts = (): Pick<Exchange, 'options' | 'routing' | 'storage' | 'settlement'> => ({
  options: {},
  routing: {},
  storage: {},
  settlement: { mayHaveHold: false },
})

/** Why a call was stopped from outside: the outcome decides its bill, the refusal is sent to the caller. */
export interface StopReason {
  readonly outcome: Outcome
  /** Undefined for a caller that has disconnected. */
  readonly refusal?: Refusal
}

/** The cap on the output of each choice with this candidate, where the funds impose one. */
export const capFor = ({ cap }: Hold, { size }: Candidate): number | undefined =>
  cap === undefined ? undefined : Math.min(cap, size.outputTokensMax)

/** What the running attempt loses: fields of the request that are not sent, and parts of the answer. */
export function lossesOf({ attempt: { translation, embeddings, nativeLosses } }: Exchange): readonly string[] {
  return (translation?.source.notes.losses ?? embeddings?.losses ?? nativeLosses)?.codes ?? []
}

/** Whether the provider runs tools for the model. Such tools may reach servers of the caller. */
export function runsTools(exchange: Exchange): boolean {
  const { call, attempt } = exchange
  const { candidate } = attempt
  if (call === undefined || candidate === undefined) return false
  if (call.searchesMax > 0 && !candidate.withoutSearch && !lossesOf(exchange).includes('web_search')) return true
  // Of the tools that a provider runs, a translation passes only the search.
  return call.serverTools === true && candidate.upstreamProtocol.name === call.dialect
}

/**
 * Whether the provider runs a tool that is not its own search. Agents offer the search with every call, and no server of
 * the caller takes part in it: only the upstream itself can fail such a call.
 */
export const namesTools = ({ call, attempt: { candidate } }: Exchange): boolean =>
  candidate?.upstreamProtocol.name === call?.dialect && call?.services?.some(runsAtProvider) === true

/** Whether the upstream is asked for a stream. */
export const asksForStream = ({ call, slices }: Hold): boolean => call.stream || slices === 'collected'

/** The most output tokens, of all choices together, that may be charged by an estimate. */
export function outputLimit(exchange: Exchange, { size }: Candidate): number {
  const { outputTokensMax, thoughtTokensMax = 0, choices } = size
  const limit = (outputTokensMax + thoughtTokensMax) * choices
  const { reservation } = exchange.settlement
  // A call that ran out of funds pays what was reserved. What arrived beyond that was not passed on.
  return reservation === undefined || fundsRefusal(exchange) === undefined ? limit : Math.min(limit, reservation.tokens)
}

/** Why the gateway ends an answer early whose beginning the caller gets. */
export type AnswerCut = Required<StopReason>

/**
 * The funds are used up; or a plain answer that is collected from a stream has reached a bound of the gateway, as it
 * would again. Such a bound ends a stream with an error event, for which a plain answer has no place.
 */
export function cutOf({ call, attempt, lifetime: { stop } }: Exchange): AnswerCut | undefined {
  const { outcome, refusal } = stop.reason ?? {}
  if (outcome === undefined || refusal === undefined) return undefined
  const isCollected = call?.stream === false && attempt.meter.deliveredBytes > 0
  const isAtBound = isCollected && (outcome === 'over_bound' || outcome === 'too_long')
  return outcome === 'out_of_funds' || isAtBound ? { outcome, refusal } : undefined
}

/** The refusal that ended the call because its funds are used up, where there is one. */
export const fundsRefusal = ({ lifetime: { stop } }: Exchange): Refusal | undefined =>
  stop.reason?.outcome === 'out_of_funds' ? stop.reason.refusal : undefined

export const callerLeft: StopReason = { outcome: 'client_left' }

/** The call runs on without its caller, who cannot ask for the answer again. Only its cost still matters. */
export const isAbandoned = ({ lifetime: { callerGone }, options: { claim } }: Exchange): boolean =>
  callerGone.reason !== undefined && claim === undefined
