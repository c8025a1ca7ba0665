// The properties of a caller and of a call that limits depend on.

import type { RuleNames } from '../base/text/rule-names.ts'

export interface LimitedCaller {
  readonly keyId: number
  readonly accountId: number
  readonly tier: string
  /** Calls a minute: of the key itself, or of its tier. */
  readonly qpm: number
  /** An operator has set the key's calls a minute, so the default limits of its tier do not apply. */
  readonly hasOwnLimit?: boolean
  /** A member created the key, and it is counted by `keyId`, another key; the limits of all keys of the account apply. */
  readonly sharesLimits?: boolean
}

/** A key with the key whose limits count it. */
export interface CountedKey extends Omit<LimitedCaller, 'sharesLimits'> {
  readonly limitsKeyId: number
}

/** The caller as the limits count it. */
export const limitedKeyOf = ({ keyId, limitsKeyId, accountId, tier, qpm, hasOwnLimit }: CountedKey): LimitedCaller => ({
  keyId: limitsKeyId,
  accountId,
  tier,
  qpm,
  ...(hasOwnLimit !== undefined && { hasOwnLimit }),
  sharesLimits: limitsKeyId !== keyId,
})

/** A call. */
export interface LimitedCall extends LimitedCaller {
  /** The model for limits per model. Null for a request without a model: limits of tokens or models do not apply. */
  readonly model: string | null
  /** For a request without a model: whether it goes to a provider. If not, only limits of a minute count it. */
  readonly callsProvider?: boolean | undefined
  /** All names of the model, with the requested one. Default: `model` alone. */
  readonly names?: RuleNames | undefined
  /** The estimated tokens, until the real number is known. */
  readonly tokens: number
}
