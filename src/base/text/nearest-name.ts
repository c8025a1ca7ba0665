// Suggests a known name for a name that is misspelt.

/** The edit distance (Damerau-Levenshtein): inserted, deleted, changed and swapped letters. At most `max` + 1. */
export function editDistance(one: string, other: string, max: number): number {
  if (Math.abs(one.length - other.length) > max) return max + 1
  let rowBeforeLast: number[] = []
  let lastRow = Array.from({ length: other.length + 1 }, (_, column) => column)
  let lastLeast = 0
  for (let row = 1; row <= one.length; row++) {
    const currentRow = [row]
    let rowLeast = row
    for (let column = 1; column <= other.length; column++) {
      const isSame = one[row - 1] === other[column - 1]
      let least = Math.min(lastRow[column]! + 1, currentRow[column - 1]! + 1, lastRow[column - 1]! + (isSame ? 0 : 1))
      const isSwapped =
        row > 1 && column > 1 && one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1]
      if (isSwapped) least = Math.min(least, rowBeforeLast[column - 2]! + 1)
      currentRow.push(least)
      if (least < rowLeast) rowLeast = least
    }
    // A swap may still use the row before: it costs one edit more than there.
    if (rowLeast > max && lastLeast >= max) return max + 1
    lastLeast = rowLeast
    rowBeforeLast = lastRow
    lastRow = currentRow
  }
  return lastRow[other.length]!
}

/** The nearest of the names, if its edit distance is at most `max`. Ignores case, `_` and `-`. */
export function nearestName(written: string, names: Iterable<string>, max = 2): string | undefined {
  const normalize = (name: string): string => name.toUpperCase().replaceAll(/[_-]/g, '')
  let [best, least]: [string | undefined, number] = [undefined, max + 1]
  for (const name of names) {
    const edits = Math.min(editDistance(written, name, max), editDistance(normalize(written), normalize(name), max))
    if (edits < least) [best, least] = [name, edits]
  }
  return best
}
