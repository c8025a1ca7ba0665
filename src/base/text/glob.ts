// Names with `*` in them, by hand: no pattern of an operator's and no name of a caller's can make it slow.

/** Whether the name is one that the pattern means. Each `*` stands for anything, also nothing, also a slash. */
export function matchesGlob(pattern: string, name: string): boolean {
  const first = pattern.indexOf('*')
  if (first < 0) return pattern === name
  const last = pattern.lastIndexOf('*')
  const end = name.length - (pattern.length - last - 1)
  if (end < first) return false
  if (!name.startsWith(pattern.slice(0, first)) || !name.endsWith(pattern.slice(last + 1))) return false
  let at = first
  for (let from = first + 1; from <= last; ) {
    const star = pattern.indexOf('*', from)
    // The first place is as good as any: what follows has the most room then.
    const found = name.indexOf(pattern.slice(from, star), at)
    at = found + star - from
    if (found < 0 || at > end) return false
    from = star + 1
  }
  return true
}
