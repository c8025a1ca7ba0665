// What this browser remembers for its viewer.

/** Undefined also for a damaged value, which must not break a page. */
export function readStored(key: string): unknown {
  try {
    return JSON.parse(localStorage.getItem(key) ?? 'null') ?? undefined
  } catch {
    return undefined
  }
}

/** The entries of a stored list that have the right type. Undefined if no list is stored. */
export function readStoredList<T>(key: string, isEntry: (value: unknown) => value is T): readonly T[] | undefined {
  const stored = readStored(key)
  return Array.isArray(stored) ? stored.filter(isEntry) : undefined
}
