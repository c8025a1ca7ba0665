// Counts the pages of a PDF, if its bytes show all of them.
//
// The pages of a PDF are the leaves of a tree. A caller can hide parts of the tree (in compressed objects, behind
// encryption) and can name one page many times. So the number is known only for a tree of one level that is written in
// the open: then no page is outside of its one list of kids. Names may be written with escapes (`/K#69ds`), which all
// searches here understand. Text that only looks like a name makes the number larger or unknown, and never smaller.

/** Matches a name, however it is escaped. */
function nameOf(word: string, after = ''): RegExp {
  const letters = [...word].map(letter => `(?:${letter}|#${letter.charCodeAt(0).toString(16)})`)
  return new RegExp(`/${letters.join('')}${after}`, 'gi')
}

/** Objects inside of compressed streams, and objects that are encrypted. */
const HIDING = [nameOf('ObjStm'), nameOf('Encrypt')]
const KIDS = nameOf('Kids')
const PAGE = nameOf('Page', '(?![a-z])')
const COUNT = nameOf('Count')

/** A document has this signature near its beginning, not always at it. */
const HEAD_BYTES = 1_024

export const isPdf = (bytes: Buffer): boolean => bytes.subarray(0, HEAD_BYTES).includes('%PDF-')

/** Undefined: unknown. */
export function countPdfPages(bytes: Buffer): number | undefined {
  const text = bytes.toString('latin1')
  if (HIDING.some(name => text.search(name) >= 0)) return undefined
  const [kids, ...others] = text.matchAll(KIDS)
  if (kids === undefined || others.length > 0) return undefined
  const start = kids.index + kids[0].length
  const list = /^[\s\0]*\[([^\]]*)\]/.exec(text.slice(start, start + LIST_CHARS_MAX))?.[1]
  // A comment or a string could hide the end of the list.
  if (list === undefined || /[%([]/.test(list)) return undefined
  const listed = list.split('R').length - 1 + (list.split('<<').length - 1)
  let most = Math.max(1, listed, text.match(PAGE)?.length ?? 0)
  let counts = 0
  for (const { 0: name, index } of text.matchAll(COUNT)) {
    const count = ++counts > COUNTS_MAX ? undefined : readCount(text, index + name.length)
    if (count === undefined) return undefined
    most = Math.max(most, count)
  }
  return most
}

/** Longer lists belong to documents with more pages than providers accept. */
const LIST_CHARS_MAX = 1024 * 1024
/** The entries of a table of contents also have counts. */
const COUNTS_MAX = 1_000

/** Some readers believe the number of pages that the tree says. Undefined for a number that is written elsewhere. */
function readCount(text: string, at: number): number | undefined {
  const [, number, reference] = /^[\s\0]*([+-]?\d+)([\s\0]+\d+[\s\0]+R)?/.exec(text.slice(at, at + 64)) ?? []
  return number === undefined || reference !== undefined ? undefined : Math.abs(Number(number))
}
