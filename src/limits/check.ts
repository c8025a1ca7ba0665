// Says what is wrong with a limit before it is laid down.

import type { LimitRow } from '../store/rules.ts'

/** Throws an Error whose message is a sentence for the operator. */
export function checkLimit({ resource, span, amount }: Omit<LimitRow, 'id'>): void {
  if (resource === 'concurrency') {
    if (span !== null) throw new Error('A limit of concurrency has no window: it is of calls at the same time.')
  } else if (span === null) throw new Error(`A limit of ${resource} needs a window: minute or day.`)
  if (!Number.isSafeInteger(amount) || amount < 1) throw new Error('The amount of a limit must be a whole number.')
}
