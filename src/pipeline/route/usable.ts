// What is left of several that a call could take, when some cannot serve it.

import { Refusal } from '../../base/errors.ts'

/** One that is unfit is left out; if all are, the first says why. */
export function fitting<From, To>(
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
