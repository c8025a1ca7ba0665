// What somebody may have meant who wrote a name that is not known.

/** How many letters must be added, taken away, changed or swapped to make one of the other. */
export function distance(one: string, other: string, most: number): number {
  if (Math.abs(one.length - other.length) > most) return most + 1
  let before: number[] = []
  let last = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (let row = 1; row <= one.length; row++) {
    const now = [row]
    for (let at = 1; at <= other.length; at++) {
      const isSame = one[row - 1] === other[at - 1]
      let least = Math.min(last[at]! + 1, now[at - 1]! + 1, last[at - 1]! + (isSame ? 0 : 1))
      const isSwapped = row > 1 && at > 1 && one[row - 1] === other[at - 2] && one[row - 2] === other[at - 1]
      if (isSwapped) least = Math.min(least, before[at - 2]! + 1)
      now.push(least)
    }
    before = last
    last = now
  }
  return last[other.length]!
}

/** The nearest of the names, if it is near; what is between words does not count. */
export function nearest(written: string, names: Iterable<string>, most = 2): string | undefined {
  const bare = (name: string): string => name.toUpperCase().replaceAll(/[_-]/g, '')
  let [found, least]: [string | undefined, number] = [undefined, most + 1]
  for (const name of names) {
    const away = Math.min(distance(written, name, most), distance(bare(written), bare(name), most))
    if (away < least) [found, least] = [name, away]
  }
  return found
}
