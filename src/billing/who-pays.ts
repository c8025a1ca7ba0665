// Who pays for which ending, as one table. A failure of ours or of the provider is never billed on an estimate.

import type { Usage, UsageSource } from '../base/usage.ts'
import { noUsage } from '../base/usage.ts'

export type Outcome =
  | 'completed'
  | 'client_left'
  | 'refused' // by us or by the upstream, before any content
  | 'upstream_failed'
  | 'too_long' // cut by the bound on a whole call
  | 'drained' // cut by a shutdown that could not wait
  | 'gateway_fault'
  | 'replayed' // answered again for its idempotency key

type Charge = 'nothing' | 'reported' | 'reported_or_estimated'

/** What is charged when nothing was delivered, and when something was. */
const rules: Readonly<Record<Outcome, readonly [withoutContent: Charge, withContent: Charge]>> = {
  completed: ['reported', 'reported_or_estimated'],
  client_left: ['reported', 'reported_or_estimated'],
  refused: ['nothing', 'nothing'],
  upstream_failed: ['nothing', 'reported'],
  too_long: ['nothing', 'reported_or_estimated'],
  drained: ['nothing', 'reported'],
  gateway_fault: ['nothing', 'nothing'],
  replayed: ['nothing', 'nothing'],
}

export interface Delivered {
  readonly outcome: Outcome
  readonly content: boolean
  readonly reported: Usage | undefined
  estimate(): Usage
}

export function chargedUsage(delivered: Delivered): readonly [usage: Usage, source: UsageSource] {
  const charge = rules[delivered.outcome][delivered.content ? 1 : 0]
  if (charge === 'nothing') return [noUsage, 'none']
  if (delivered.reported !== undefined) return [delivered.reported, 'reported']
  return charge === 'reported' ? [noUsage, 'none'] : [delivered.estimate(), 'estimated']
}
