// Matches names against patterns with `*`. Written by hand instead of with a RegExp, so that no pattern and no name can
// make it slow.

/** Each `*` matches any characters, also none, also a slash. */
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
    // The first match is enough: it leaves the most text for the rest of the pattern.
    const found = name.indexOf(pattern.slice(from, star), at)
    at = found + star - from
    if (found < 0 || at > end) return false
    from = star + 1
  }
  return true
}
