// What the names stand for that an operator has given to models.

import type { MemberRow, PolicyName, RouteRow } from '../store/rules.ts'

export interface Resolved {
  readonly policy: PolicyName
  /** Each a real model, `<provider>/<model>`. */
  readonly members: readonly MemberRow[]
}

export interface Names {
  /** Undefined for a name that no operator gave. */
  resolve(asked: string): Resolved | undefined
}

export function compileRoutes(rows: readonly RouteRow[]): Names {
  const exact = new Map(rows.map(row => [row.name, row]))
  return { resolve: asked => exact.get(asked) }
}
