// The hint of an error in another language than English. English hints are the gateway's own sentences.

import type { Hint } from '../api/errors.ts'

type Find = (key: string, values?: Hint['values']) => string | undefined

/** Undefined: there is no text for the hint. */
export function hintText(find: Find, hint: Hint | null): string | undefined {
  if (hint === null) return undefined
  const { name, role } = hint.values
  return find(`hint_${hint.code}`, {
    ...hint.values,
    ...(name === '' && { name: find('hint_whole') ?? '' }),
    ...(role !== undefined && { role: find(`hint_role_${role}`) ?? role }),
  })
}
