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

/** Throws an Error whose message is a sentence for the operator. */
export function checkRoutes(rows: readonly RouteRow[]): void {
  const byName = new Map(rows.map(row => [row.name, row]))
  const walk = (name: string, path: readonly string[]): void => {
    if (path.includes(name)) throw new Error(`These names stand for each other: ${[...path, name].join(', ')}.`)
    for (const { model } of byName.get(name)?.members ?? []) if (model !== name) walk(model, [...path, name])
  }
  for (const { name } of rows) walk(name, [])
}
