// Every limit that a call meets, in one step: it passes all of them and is counted by all, or is refused by one and
// counted by none.

import type { LimitRow } from '../store/rules.ts'

/** What is limited: a call, as far as limits care. */
export interface Subject {
  readonly keyId: number
  readonly accountId: number
  readonly tier: string
  /** The key's own calls a minute, or its tier's. */
  readonly qpm: number
  /** As callers name it. */
  readonly model: string
  /** What it is taken to use until that is known. */
  readonly tokens: number
}

/** What is left of one limit. */
export interface Quota {
  readonly resource: LimitRow['resource']
  readonly span: LimitRow['span']
  readonly limit: number
  readonly remaining: number
  /** Until all of it is there again. */
  readonly resetMs: number
}

export type Admission =
  | { readonly admitted: true; readonly quotas: readonly Quota[]; readonly lease: Lease }
  | { readonly admitted: false; readonly quotas: readonly Quota[]; readonly by: Quota; readonly retryAfterMs: number }

/** What an admitted call has taken. Both may be told more than once; the first counts. */
export interface Lease {
  /** What it used in the end: the difference to what was taken is given back, or owed. */
  correct(tokens: number): void
  /** It is over, and its place is free. */
  release(): void
}
