// Says what is wrong with a limit before it is laid down.

import { bounds } from '../base/bounds.ts'
import { AMOUNT_MAX } from '../base/collections/gcra.ts'
import type { LimitRow } from '../store/rules/rules.ts'

const resources: readonly unknown[] = ['requests', 'tokens', 'concurrency'] satisfies LimitRow['resource'][]
const spans: readonly unknown[] = ['minute', 'day'] satisfies LimitRow['span'][]
const scopes: readonly unknown[] = ['key', 'account', 'model'] satisfies LimitRow['per'][number][]

/** Throws an Error whose message is a sentence for the operator. */
export function checkLimit({ resource, span, amount, per, tier, model }: Omit<LimitRow, 'id'>): void {
  if (!resources.includes(resource)) {
    throw new Error('A limit is one of requests, tokens or concurrency.')
  }
  if (resource === 'concurrency') {
    if (span !== null) throw new Error('A limit of concurrency has no window: it is of calls at the same time.')
  } else if (!spans.includes(span)) {
    throw new Error(`A limit of ${resource} needs a window: minute or day.`)
  }
  if (!Number.isSafeInteger(amount) || amount < 1 || amount > AMOUNT_MAX) {
    throw new Error(`The amount of a limit must be a whole number from 1 to ${AMOUNT_MAX}. To let nobody call, revoke.`)
  }
  if (!Array.isArray(per) || !per.every(scope => scopes.includes(scope)) || new Set(per).size !== per.length) {
    throw new Error('A limit may be taken apart per key, account and model, each named once.')
  }
  if (tier === '') throw new Error('The tier of a limit must be named, or left out.')
  if (model !== null && (model === '' || model.length > bounds.modelNameCharsMax)) {
    throw new Error(`The model of a limit must have 1 to ${bounds.modelNameCharsMax} characters, or be left out.`)
  }
}
