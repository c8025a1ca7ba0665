// What is left of several that a call could take, when some cannot serve it.

import { Refusal } from '../base/errors.ts'

/** One that is unfit is left out; if all are, the first says why. */
export function fitting<From, To>(
  all: readonly From[],
  fit: (one: From) => To,
  onUnfit?: (one: From, why: Refusal) => void,
): readonly To[] {
  if (all.length === 1) return [fit(all[0]!)]
  const fits: To[] = []
  let unfit: unknown
  for (const one of all) {
    try {
      fits.push(fit(one))
    } catch (fault) {
      if (!(fault instanceof Refusal)) throw fault
      unfit ??= fault
      onUnfit?.(one, fault)
    }
  }
  if (fits.length === 0) throw unfit
  return fits
}
