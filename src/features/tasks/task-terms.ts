// What is pinned when a task is admitted, so that whoever settles it, be it after a restart, bills and records it as
// what it was then.

import type { Price } from '../../base/money/price.ts'
import type { Units } from '../../base/money/usage.ts'
import type { CallSize, PricedOrFree } from '../../billing/price.ts'
import type { RecordDraft } from '../../store/ledger/hold-types.ts'

export interface Admission {
  readonly draft: RecordDraft
  /** Absent: it is free. */
  readonly price?: {
    readonly version: number
    readonly perMille: string
    readonly serviceClass?: string | undefined
    readonly atMs: number
  }
  /** What was held for. */
  readonly tokensMax: number
  readonly units: Units
  readonly searches: boolean
  /** The class of service, as its caller wrote it. */
  readonly tier?: string
  /** It has an idempotency key. */
  readonly claimed: boolean
}

export interface Admitted {
  readonly draft: RecordDraft
  readonly price: PricedOrFree
  readonly size: CallSize
  readonly tier: string | undefined
  readonly claimed: boolean
}

export function writeAdmission({ draft, price, size, tier, claimed }: Admitted): string {
  const admission: Admission = {
    draft,
    ...(price && {
      price: {
        version: price.version,
        perMille: String(price.perMille),
        serviceClass: price.serviceClass,
        atMs: price.atMs,
      },
    }),
    tokensMax: size.outputTokensMax,
    units: size.units ?? {},
    searches: size.searchesMax > 0,
    ...(tier !== undefined && { tier }),
    claimed,
  }
  return JSON.stringify(admission)
}

export const readAdmission = (text: string): Admission => JSON.parse(text) as Admission

/** `priceOf` gives the price of a version, which never changes. */
export function pricedAgain({ price }: Admission, priceOf: (version: number) => Price): PricedOrFree {
  if (price === undefined) return undefined
  const { version, perMille, serviceClass, atMs } = price
  return { price: priceOf(version), version, perMille: BigInt(perMille), serviceClass, atMs }
}
