// Finds text that is not valid Unicode, because it contains half of a surrogate pair. The databases cannot store such text:
// what is read later would differ from what was written and hashed.

/** The path to the first such name or text in a JSON value. Undefined if there is none. */
export function pathOfBrokenText(value: unknown): readonly PropertyKey[] | undefined {
  if (typeof value === 'string') return value.isWellFormed() ? undefined : []
  if (typeof value !== 'object' || value === null) return undefined
  for (const [name, below] of Object.entries(value)) {
    if (!name.isWellFormed()) return []
    const path = pathOfBrokenText(below)
    if (path !== undefined) return [Array.isArray(value) ? Number(name) : name, ...path]
  }
  return undefined
}
