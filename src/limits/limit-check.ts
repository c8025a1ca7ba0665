// Checks a limit before it is stored.

import { bounds } from '../base/bounds.ts'
import { AMOUNT_MAX } from '../base/collections/gcra.ts'
import { HintedError, hintOf } from '../base/hints.ts'
import type { LimitRow } from '../store/rules/rules.ts'

const resources: readonly unknown[] = ['requests', 'tokens', 'concurrency'] satisfies LimitRow['resource'][]
const spans: readonly unknown[] = ['minute', 'day'] satisfies LimitRow['span'][]
const scopes: readonly unknown[] = ['key', 'account', 'model'] satisfies LimitRow['per'][number][]

/** Throws a HintedError. */
export function checkLimit({ resource, span, amount, per, tier, model }: Omit<LimitRow, 'id'>): void {
  if (!resources.includes(resource)) {
    throw new HintedError(hintOf('limit_resource'), 'resource')
  }
  if (resource === 'concurrency') {
    if (span !== null) throw new HintedError(hintOf('limit_no_window'), 'span')
  } else if (!spans.includes(span)) {
    throw new HintedError(hintOf('limit_window', { resource }), 'span')
  }
  if (!Number.isSafeInteger(amount) || amount < 1 || amount > AMOUNT_MAX) {
    throw new HintedError(hintOf('limit_amount', { max: AMOUNT_MAX }), 'amount')
  }
  if (!Array.isArray(per) || !per.every(scope => scopes.includes(scope)) || new Set(per).size !== per.length) {
    throw new HintedError(hintOf('limit_per'), 'per')
  }
  if (tier === '') throw new HintedError(hintOf('limit_tier'), 'tier')
  if (model !== null && (model === '' || model.length > bounds.modelNameCharsMax)) {
    throw new HintedError(hintOf('limit_model', { max: bounds.modelNameCharsMax }), 'model')
  }
}
