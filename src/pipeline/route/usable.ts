// Selects those items that can serve a call.

import { Refusal } from '../../base/errors.ts'

/** Leaves out items for which `convert` throws a refusal. If none is left, the first refusal is thrown. */
export function selectUsable<From, To>(
  all: readonly From[],
  convert: (one: From) => To,
  onUnfit?: (one: From, why: Refusal) => void,
): readonly To[] {
  if (all.length === 1) return [convert(all[0]!)]
  const usable: To[] = []
  let unfit: unknown
  for (const one of all) {
    try {
      usable.push(convert(one))
    } catch (fault) {
      if (!(fault instanceof Refusal)) throw fault
      unfit ??= fault
      onUnfit?.(one, fault)
    }
  }
  if (usable.length === 0) throw unfit
  return usable
}
