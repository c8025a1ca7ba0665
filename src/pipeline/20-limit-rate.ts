// Caller → Permit: one call against every limit that it meets.

import { bounds } from '../base/bounds.ts'
import type { ErrorCode } from '../base/errors.ts'
import { errorRows, Refusal } from '../base/errors.ts'
import { estimateTokens } from '../billing/price.ts'
import { noLease } from '../limits/leases.ts'
import type { Quota, Refused } from '../limits/limits.ts'
import { Limits } from '../limits/limits.ts'
import type { Subject, Who } from '../limits/subject.ts'
import type { Call } from '../protocols/neutral/call.ts'
import type { Caller, Permit } from './exchange.ts'
import type { Named } from './route/targets.ts'

export interface LimitRateParts {
  readonly limits: Limits
  nowMs(): number
}

/** What is called. */
export interface About extends Pick<Subject, 'model' | 'names' | 'asksProvider'> {
  readonly tokens: number
}

export type LimitRate = (caller: Caller, about: About) => Permit

/** Looks at something that is kept, is explained, or was refused: one request in every limit of a minute. */
export const looking: About = { model: null, tokens: 0 }

/** Has tokens counted, for which a provider may be asked: one request, and a place for as long as it takes. */
export const counting: About = { ...looking, asksProvider: true }

/** For an answer whose length nobody knows yet. It is corrected when the call is over. */
const OUTPUT_TOKENS_GUESS = 1_024

/** What it is taken to use. */
export function tokensOf({ inputBytes, outputTokensMax, choices }: Call): number {
  const output = Math.min(outputTokensMax ?? OUTPUT_TOKENS_GUESS, OUTPUT_TOKENS_GUESS)
  return estimateTokens(inputBytes) + output * choices
}

/** By every name of what it calls: a limit of a model holds for its other names, too. */
export const aboutCall = (call: Call, { model, names }: Named): About => ({ model, names, tokens: tokensOf(call) })

/** Who is counted. */
export const whoOf = ({ limitsKeyId, accountId, tier, qpm, hasOwnLimit }: CountedKey): Who => ({
  ...{ keyId: limitsKeyId, accountId, tier, qpm, hasOwnLimit },
})

type CountedKey = Pick<Caller, 'limitsKeyId' | 'accountId' | 'tier' | 'qpm' | 'hasOwnLimit'>

export function buildLimitRate({ limits, nowMs }: LimitRateParts): LimitRate {
  return function limitRate(caller, { model, names, tokens, asksProvider }) {
    const admission = limits.admit({ ...whoOf(caller), model, names, tokens, asksProvider }, nowMs())
    if (!admission.admitted) throw refusalOf(admission, caller.keyId)
    return { caller, quotas: admission.quotas, lease: admission.lease } as Permit
  }
}

/** The same for a call that is only explained: every limit is told, and nothing is counted. */
export function buildLookAtLimits({ limits, nowMs }: LimitRateParts): LimitRate {
  return function lookAtLimits(caller, { model, names, tokens }) {
    const subject = { ...whoOf(caller), model, names, tokens }
    const quotas = limits.look(subject, nowMs())
    const refused = limits.refusalOf(subject, nowMs())
    if (refused !== undefined) throw refusalOf({ ...refused, quotas }, caller.keyId)
    return { caller, quotas, lease: noLease } as Permit
  }
}

/** A call that is only explained has a limit of its own, and is one request in every limit of a minute. */
export function buildExplanationLimit(parts: LimitRateParts): (caller: Caller) => void {
  const limits = new Limits()
  const limitRate = buildLimitRate(parts)
  return function countExplanation(caller) {
    const qpm = Math.min(caller.qpm, bounds.explainedPerMinuteMax)
    const admission = limits.admit({ ...whoOf(caller), qpm, ...looking }, parts.nowMs())
    if (!admission.admitted) {
      throw new Refusal('explained_too_often', `key ${caller.keyId}`, { retryAfterMs: admission.retryAfterMs })
    }
    limitRate(caller, looking)
  }
}

/** Why a caller need not send its body: whatever is in it would be refused. */
export type RefuseUnread = (caller: Caller) => Refusal | undefined

export function buildRefuseUnread({ limits, nowMs }: LimitRateParts): RefuseUnread {
  return function refuseUnread(caller) {
    const refused = limits.exhausted(whoOf(caller), nowMs())
    return refused && refusalOf(refused, caller.keyId)
  }
}

/**
 * A request that was refused before it met its limits is one of its key's calls all the same: it was read, and
 * whoever sends nothing but such requests must come to an end, too. One that we had no room for is not.
 */
export function countRefused(limitRate: LimitRate, caller: Caller, fault: unknown): void {
  if (fault instanceof Refusal && errorRows[fault.code].kind === 'overloaded') return
  try {
    limitRate(caller, looking).lease.release()
  } catch {
    // There is nothing left to count it against: the next is refused unread.
  }
}

/** In the words of the contract, which knows fewer. */
const reasons: Partial<Record<ErrorCode, string>> = {
  qpm_exceeded: 'qpm_exceeded',
  rpd_exceeded: 'qpm_exceeded',
  tpm_exceeded: 'tpm_exceeded',
  tpd_exceeded: 'tpm_exceeded',
  concurrency_exceeded: 'concurrency_exceeded',
}

/** Why a call was not let in, for X-Pipeline-RateLimit. */
export const limitReason = (fault: unknown): string =>
  (fault instanceof Refusal ? reasons[fault.code] : undefined) ?? 'overloaded'

function refusalOf({ by, quotas, retryAfterMs }: Refused, keyId: number): Refusal {
  const hint = `The limit of ${by.whose} is ${amountText(by)}.${laterText(retryAfterMs)}`
  return new Refusal(codeOf(by), `key ${keyId}: ${by.whose}, ${amountText(by)}`, { retryAfterMs, quotas, hint })
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

const MINUTE_MS = 60_000

/** What Retry-After may not say, for it is read by programs that would sleep as long. */
function laterText(waitMs: number): string {
  if (waitMs <= MINUTE_MS) return ''
  const minutes = Math.ceil(waitMs / MINUTE_MS)
  const hours = Math.floor(minutes / 60)
  return ` There is room again in ${hours > 0 ? `${hours} h ` : ''}${minutes % 60} min.`
}
