// Tables of the fields that a translation carries. A field that is not in the table is reported as a loss.

import { isDeepStrictEqual } from 'node:util'

/**
 * - `read`: the translation carries the field
 * - `moot`: nothing is lost without the field, whatever its value
 * - `lost`: no other dialect can carry the field, as for all fields that are not in the table
 * - `unless`: lost, unless the field has this value, which is its default
 */
export type FieldTable = Readonly<Record<string, 'read' | 'moot' | 'lost' | { readonly unless: unknown }>>

/** Returns the paths of present fields that are not carried. Null counts as absent. */
export function findLostFields(json: Readonly<Record<string, unknown>>, table: FieldTable, path = ''): string[] {
  const unread: string[] = []
  for (const name in json) {
    const value = json[name]
    if (value === null || value === undefined) continue
    const rule = Object.hasOwn(table, name) ? table[name]! : 'lost'
    const isLost = typeof rule === 'object' ? !isDeepStrictEqual(value, rule.unless) : rule === 'lost'
    if (isLost) unread.push(path === '' ? name : `${path}.${name}`)
  }
  return unread
}

/** Builds a table in which all fields have the same rule. `names` are separated by spaces. */
export const tableOf = <Rule extends 'read' | 'moot' | 'lost'>(rule: Rule, names: string): Record<string, Rule> =>
  Object.fromEntries(names.split(' ').map(name => [name, rule]))

/**
 * Adds a loss for each field of an answer that the translation does not carry. Empty values, zero and false count as
 * absent, because vendors write such fields into every answer. `path` is the path of the object.
 */
export function addLostFields(
  json: Readonly<Record<string, unknown>>,
  table: FieldTable,
  { path, losses }: LossPath,
): void {
  for (const name in json) {
    const rule = Object.hasOwn(table, name) ? table[name] : 'lost'
    if (rule === 'lost' && !isEmpty(json[name])) losses.add(`answer.${path === '' ? '' : `${path}.`}${name}`)
  }
}

export interface LossPath {
  readonly path: string
  readonly losses: { add(code: string): void }
}

export function isEmpty(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return !value
  for (const _ in value) return false
  return true
}
