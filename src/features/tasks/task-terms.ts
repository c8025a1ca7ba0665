// The terms of a task, stored when it is admitted. Its settlement uses them, even after a restart, so that it is billed
// and recorded by the price of that time.

import type { Price } from '../../base/money/price.ts'
import type { Units } from '../../base/money/usage.ts'
import type { CallPriceOrFree } from '../../billing/price.ts'
import { draftOf } from '../../pipeline/80-record.ts'
import type { Candidate, Exchange } from '../../pipeline/exchange.ts'
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

export function writeTaskTerms(exchange: Exchange, { price, size }: Candidate): string {
  const { call, options, requestHash = null, attempt } = exchange
  const terms: TaskTerms = {
    draft: { ...draftOf(exchange), requestHash, upstreamHash: attempt.upstreamHash?.text ?? null },
    ...(price && {
      price: {
        version: price.version,
        perMille: String(price.perMille),
        serviceClass: price.serviceClass,
        atMs: price.atMs,
      },
    }),
    tokensMax: size.outputTokensMax,
    units: call?.units ?? {},
    searches: size.searchesMax > 0,
    ...(call?.serviceClass !== undefined && { tier: call.serviceClass }),
    claimed: options.claim !== undefined,
  }
  return JSON.stringify(terms)
}

export const readTaskTerms = (text: string): TaskTerms => JSON.parse(text) as TaskTerms

/** `priceOf` returns the price of a version, which never changes. */
export async function taskPrice(
  { price }: TaskTerms,
  priceOf: (version: number) => Promise<Price>,
): Promise<CallPriceOrFree> {
  if (price === undefined) return undefined
  const { version, perMille, serviceClass, atMs } = price
  return { price: await priceOf(version), version, perMille: BigInt(perMille), serviceClass, atMs }
}
