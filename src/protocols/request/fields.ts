// Which fields of an object a reader carries, as a table: a field that is in none is known to be lost, by construction.

/**
 * `read`: its meaning is carried · `moot`: nothing is lost without it, whatever it says · `lost`: no other dialect
 * could be told. A field that is not in the table is lost as well.
 */
export type FieldTable = Readonly<Record<string, 'read' | 'moot' | 'lost'>>

/** The paths of the fields that are there and not carried. Null is absent. */
export function unreadFields(json: Readonly<Record<string, unknown>>, table: FieldTable, path = ''): string[] {
  const unread: string[] = []
  for (const name in json) {
    if (json[name] === null || json[name] === undefined) continue
    const fate = Object.hasOwn(table, name) ? table[name] : 'lost'
    if (fate === 'lost') unread.push(path === '' ? name : `${path}.${name}`)
  }
  return unread
}

/** A table of fields that all have the same fate. */
export const fields = <Fate extends 'read' | 'moot' | 'lost'>(fate: Fate, names: string): Record<string, Fate> =>
  Object.fromEntries(names.split(' ').map(name => [name, fate]))

/**
 * Lists what an answer has and a translation does not carry. In an answer whatever is empty, zero or false is absent:
 * vendors write fields that say nothing into every answer. `path` is where the object stands.
 */
export function noteLost(json: Readonly<Record<string, unknown>>, table: FieldTable, { path, losses }: LostAt): void {
  for (const name in json) {
    const fate = Object.hasOwn(table, name) ? table[name] : 'lost'
    if (fate === 'lost' && !isEmpty(json[name])) losses.add(`answer.${path === '' ? '' : `${path}.`}${name}`)
  }
}

export interface LostAt {
  readonly path: string
  readonly losses: { add(code: string): void }
}

function isEmpty(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return !value
  for (const _ in value) return false
  return true
}
