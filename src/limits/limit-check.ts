// Checks a limit before it is stored.

import { bounds } from '../base/bounds.ts'
import { AMOUNT_MAX } from '../base/collections/gcra.ts'
import type { LimitRow } from '../store/rules/rules.ts'

const resources: readonly unknown[] = ['requests', 'tokens', 'concurrency'] satisfies LimitRow['resource'][]
const spans: readonly unknown[] = ['minute', 'day'] satisfies LimitRow['span'][]
const scopes: readonly unknown[] = ['key', 'account', 'model'] satisfies LimitRow['per'][number][]

/** Throws an Error with a message for the operator. */
export function checkLimit({ resource, span, amount, per, tier, model }: Omit<LimitRow, 'id'>): void {
  if (!resources.includes(resource)) {
    throw new Error('The resource of a limit must be one of requests, tokens or concurrency.')
  }
  if (resource === 'concurrency') {
    if (span !== null)
      throw new Error('A limit of concurrency has no window: it limits calls at the same time. Leave the window out.')
  } else if (!spans.includes(span)) {
    throw new Error(`A limit of ${resource} needs a window: minute or day.`)
  }
  if (!Number.isSafeInteger(amount) || amount < 1 || amount > AMOUNT_MAX) {
    throw new Error(
      `The amount of a limit must be a whole number from 1 to ${AMOUNT_MAX}. To block all calls, revoke the key.`,
    )
  }
  if (!Array.isArray(per) || !per.every(scope => scopes.includes(scope)) || new Set(per).size !== per.length) {
    throw new Error('A limit can be counted per key, account and model, each named once.')
  }
  if (tier === '') throw new Error('The tier of a limit must not be empty. Leave it out for all tiers.')
  if (model !== null && (model === '' || model.length > bounds.modelNameCharsMax)) {
    throw new Error(
      `The model of a limit must have 1 to ${bounds.modelNameCharsMax} characters. Leave it out for all models.`,
    )
  }
}
