// The terms of a task, stored when it is admitted. Its settlement uses them, even after a restart, so that it is billed
// and recorded by the price of that time.

import type { Price } from '../../base/money/price.ts'
import type { Units } from '../../base/money/usage.ts'
import type { CallPriceOrFree, CallSize } from '../../billing/price.ts'
import type { RecordDraft } from '../../store/ledger/hold-types.ts'

export interface TaskTerms {
  readonly draft: RecordDraft
  /** Undefined for a free task. */
  readonly price?: {
    readonly version: number
    readonly perMille: string
    readonly serviceClass?: string | undefined
    readonly atMs: number
  }
  /** The size that was reserved. */
  readonly tokensMax: number
  readonly units: Units
  readonly searches: boolean
  /** The service class that the caller sent. */
  readonly tier?: string
  /** The task has an idempotency key. */
  readonly claimed: boolean
}

export interface AdmittedTask {
  readonly draft: RecordDraft
  readonly price: CallPriceOrFree
  readonly size: CallSize
  readonly tier: string | undefined
  readonly claimed: boolean
}

export function writeTaskTerms({ draft, price, size, tier, claimed }: AdmittedTask): string {
  const admission: TaskTerms = {
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

export const readTaskTerms = (text: string): TaskTerms => JSON.parse(text) as TaskTerms

/** `priceOf` returns the price of a version, which never changes. */
export function taskPrice({ price }: TaskTerms, priceOf: (version: number) => Price): CallPriceOrFree {
  if (price === undefined) return undefined
  const { version, perMille, serviceClass, atMs } = price
  return { price: priceOf(version), version, perMille: BigInt(perMille), serviceClass, atMs }
}
