// Caller → Permit: checks one call against every limit that applies to it.

import { bounds } from '../base/bounds.ts'
import type { ErrorCode } from '../base/errors.ts'
import { errorRows, Refusal } from '../base/errors.ts'
import type { Hint } from '../base/hints.ts'
import { hintOf } from '../base/hints.ts'
import { MINUTE_MS } from '../base/time.ts'
import { estimateTokens } from '../billing/price.ts'
import { joinLeases, noLimitLease } from '../limits/leases.ts'
import type { LimitCounter } from '../limits/limit-counter.ts'
import type { CountedCall } from '../limits/limit-owner.ts'
import type { CountedKey, LimitedCall } from '../limits/limited-call.ts'
import { limitedKeyOf } from '../limits/limited-call.ts'
import type { LimitAdmission, LimitRefusal, Quota } from '../limits/limits.ts'
import type { Call } from '../protocols/neutral/call.ts'
import type { Caller, Permit } from './exchange.ts'
import type { ModelNames } from './route/targets.ts'

export interface LimitRateParts {
  readonly limits: LimitCounter
  nowMs(): number
}

/** What a call asks of the limits. */
export interface CallDemand extends Pick<LimitedCall, 'model' | 'names' | 'callsProvider'> {
  readonly tokens: number
  /** How the call was admitted before the names of its model or the rules changed. What counted it does not do so again. */
  readonly counted?: { readonly permit: Permit; readonly demand: CallDemand }
}

/** A promise only if several processes count together: one process answers at once. */
export type LimitRate = (caller: Caller, about: CallDemand) => Permit | Promise<Permit>

/** For reading something stored, for an explanation and for a refused request: one request in each limit per minute. */
export const requestDemand: CallDemand = { model: null, tokens: 0 }

/** For a token count, which may ask a provider: one request, and one concurrent call while it runs. */
export const countDemand: CallDemand = { ...requestDemand, callsProvider: true }

/** For an answer of unknown length. The settlement corrects it. */
const OUTPUT_TOKENS_GUESS = 1_024

/** The tokens that a call is expected to use. */
export function expectedTokens({ inputBytes, outputTokensMax, choices }: Call): number {
  const output = Math.min(outputTokensMax ?? OUTPUT_TOKENS_GUESS, OUTPUT_TOKENS_GUESS)
  return estimateTokens(inputBytes) + output * choices
}

/** A limit of a model also counts calls that use another name of the model. */
export const demandOf = (call: Call, { model, names }: ModelNames): CallDemand => ({
  model,
  names,
  tokens: expectedTokens(call),
})

/** A call as the limits count it. */
const limitedCallOf = (caller: CountedKey, { model, names, callsProvider, tokens }: CallDemand): LimitedCall => ({
  ...limitedKeyOf(caller),
  model,
  names,
  callsProvider,
  tokens,
})

/** Its caller may have had another tier or other rights then. */
function countedCallOf({ counted }: CallDemand): CountedCall | undefined {
  if (counted?.permit.rules === undefined) return undefined
  const { caller, rules } = counted.permit
  return { call: limitedCallOf(caller, counted.demand), rules }
}

export function buildLimitRate({ limits, nowMs }: LimitRateParts): LimitRate {
  const permitOf = (admission: LimitAdmission, caller: Caller, { counted }: CallDemand): Permit => {
    if (!admission.admitted) throw refusalOf(admission, caller.keyId)
    const { quotas, lease, rules } = admission
    const all = counted === undefined ? lease : joinLeases(counted.permit.lease, lease)
    return { caller, quotas, lease: all, rules } as Permit
  }
  return function limitRate(caller, demand) {
    const counted = countedCallOf(demand)
    const admission =
      counted === undefined
        ? limits.admit(limitedCallOf(caller, demand), nowMs())
        : limits.admitRest(limitedCallOf(caller, demand), counted, nowMs())
    if (admission instanceof Promise) return admission.then(admitted => permitOf(admitted, caller, demand))
    return permitOf(admission, caller, demand)
  }
}

/** Checks the limits for an explanation: all of them are reported, and nothing is counted. */
export function buildCheckLimits({ limits, nowMs }: LimitRateParts): LimitRate {
  return async function lookAtLimits(caller, { model, names, tokens }) {
    const subject = { ...limitedKeyOf(caller), model, names, tokens }
    const quotas = await limits.quotasOfCall(subject, nowMs())
    const refused = await limits.refusalOfCall(subject, nowMs())
    if (refused !== undefined) throw refusalOf({ ...refused, quotas }, caller.keyId)
    return { caller, quotas, lease: noLimitLease, rules: undefined } as Permit
  }
}

/** Explanations have a limit of their own; each also counts as one request in every limit per minute. */
export function buildExplanationLimit({
  explanationLimits,
  ...parts
}: LimitRateParts & { readonly explanationLimits: Pick<LimitCounter, 'admit'> }): CountExplanation {
  const limitRate = buildLimitRate(parts)
  return async function countExplanation(caller, isByCaller = true) {
    const qpm = Math.min(isByCaller ? caller.qpm : Infinity, bounds.explainedPerMinuteMax)
    // No key has the id of an account, so that what people ask is counted apart.
    const who = { ...limitedKeyOf(caller), ...(!isByCaller && { keyId: caller.accountId }) }
    const admission = await explanationLimits.admit({ ...who, qpm, ...requestDemand }, parts.nowMs())
    if (!admission.admitted) {
      throw new Refusal('explained_too_often', `key ${caller.keyId}`, { retryAfterMs: admission.retryAfterMs })
    }
    if (isByCaller) await limitRate(caller, requestDemand)
  }
}

/**
 * `isByCaller`: the request came with the key itself. What people ask about keys is counted together for an account, and
 * the limits of the key count nothing.
 */
export type CountExplanation = (caller: Caller, isByCaller?: boolean) => Promise<void>

/** The refusal of a call whose key has nothing left, before its body is read. */
export type RefuseUnread = (caller: Caller) => Refusal | undefined

export function buildRefuseUnread({ limits, nowMs }: LimitRateParts): RefuseUnread {
  return function refuseUnread(caller) {
    const refused = limits.refusalOfKey(limitedKeyOf(caller), nowMs())
    return refused && refusalOf(refused, caller.keyId)
  }
}

/**
 * Counts a request that was refused before the limits were checked. Its body was read, and a caller that sends only
 * such requests must be limited as well. A request that the gateway refused because of its own load is not counted.
 */
export async function countRefused(limitRate: LimitRate, caller: Caller, fault: unknown): Promise<void> {
  if (fault instanceof Refusal && errorRows[fault.code].kind === 'overloaded') return
  try {
    const { lease } = await limitRate(caller, requestDemand)
    lease.release()
  } catch {
    // The limit is used up: the next request is refused before its body is read.
  }
}

/** The public contract has fewer reasons than there are error codes. */
const reasons: Partial<Record<ErrorCode, string>> = {
  qpm_exceeded: 'qpm_exceeded',
  rpd_exceeded: 'qpm_exceeded',
  tpm_exceeded: 'tpm_exceeded',
  tpd_exceeded: 'tpm_exceeded',
  concurrency_exceeded: 'concurrency_exceeded',
}

/** The reason in X-Pipeline-RateLimit. */
export const limitReason = (fault: unknown): string =>
  (fault instanceof Refusal ? reasons[fault.code] : undefined) ?? 'overloaded'

function refusalOf({ by, quotas, retryAfterMs }: LimitRefusal, keyId: number): Refusal {
  return new Refusal(codeOf(by), `key ${keyId}: ${by.whose}, ${amountText(by)}`, {
    retryAfterMs,
    quotas,
    hint: hintOf(amountCode(by), { whose: by.whose, limit: by.limit, later: laterText(retryAfterMs) }),
  })
}

function codeOf({ resource, span }: Quota): ErrorCode {
  if (resource === 'concurrency') return 'concurrency_exceeded'
  if (resource === 'tokens') return span === 'day' ? 'tpd_exceeded' : 'tpm_exceeded'
  return span === 'day' ? 'rpd_exceeded' : 'qpm_exceeded'
}

function amountText({ resource, span, limit }: Quota): string {
  if (resource === 'concurrency') return `${limit} at the same time`
  return `${limit} ${resource === 'tokens' ? 'tokens ' : ''}a ${span}`
}

function amountCode({ resource, span }: Quota) {
  if (resource === 'concurrency') return 'call_limit_concurrency'
  return `call_limit_${resource}_${span!}` as const
}

/** Retry-After is short, because programs sleep as long as it says; this text has the real time. */
function laterText(waitMs: number): Hint | string {
  if (waitMs <= MINUTE_MS) return ''
  const minutes = Math.ceil(waitMs / MINUTE_MS)
  const hours = Math.floor(minutes / 60)
  return hours > 0
    ? hintOf('call_later_hours', { hours, minutes: minutes % 60 })
    : hintOf('call_later_minutes', { minutes })
}
