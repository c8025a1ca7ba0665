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
