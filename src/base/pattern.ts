// Patterns of names: any text, in which each `*` stands for any number of characters, also none.

export function matchesPattern(pattern: string, name: string): boolean {
  const star = pattern.indexOf('*')
  if (star < 0) return pattern === name
  const last = pattern.lastIndexOf('*')
  const tail = pattern.length - last - 1
  if (name.length < star + tail || !name.startsWith(pattern.slice(0, star))) return false
  if (!name.endsWith(pattern.slice(last + 1))) return false
  // Each part between two stars as early as it can stand: what is left for the others is then as long as can be.
  let at = star
  for (let from = star + 1; from < last; ) {
    const next = pattern.indexOf('*', from)
    const found = name.indexOf(pattern.slice(from, next), at)
    if (found < 0) return false
    at = found + next - from
    from = next + 1
  }
  return at <= name.length - tail
}
