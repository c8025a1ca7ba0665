// Texts of people between words of ours.

/** Letters that are written from right to left, and characters that turn the order of what follows them. */
const TURNS = /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc]/
const END = '\u2069'

/** A text of people between words of ours: whatever it contains, the words around it keep their order. */
export function isolated(text: string): string {
  if (!TURNS.test(text)) return text
  let depth = 0
  // An end without a beginning would end what is begun here.
  const whole = text.replace(/[\u2066-\u2069]/g, sign => {
    depth += sign === END ? -1 : 1
    if (depth >= 0) return sign
    depth = 0
    return ''
  })
  return `\u2068${whole}${END}`
}
