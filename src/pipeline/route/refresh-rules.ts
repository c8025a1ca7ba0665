// Reads what other processes have changed, after routing has refused a call: the name, the price or the right that it needs
// may have been created on another gateway a moment ago.

import type { ErrorCode } from '../../base/errors.ts'
import type { Changes } from '../../store/engine/store-engine.ts'

/** The refusals of calls that newer rules or prices may admit. */
const UNSERVED: readonly ErrorCode[] = [
  'model_unknown',
  'provider_unknown',
  'model_ambiguous',
  'model_forbidden',
  'no_channel',
  'price_unknown',
]

/** Resolves to whether something has changed. Calls that ask at the same time share a query. */
export async function refreshRules(changes: Pick<Changes, 'revision' | 'refresh'>, code: ErrorCode): Promise<boolean> {
  const { revision } = changes
  if (revision === undefined || !UNSERVED.includes(code)) return false
  // Where the database does not answer, the call keeps its refusal.
  await changes.refresh().catch(() => {})
  return changes.revision !== revision
}
