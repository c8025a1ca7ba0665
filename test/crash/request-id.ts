// Converts a request id from the head of an answer to the number in the database: base 32 without i, l, o, u.

const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz'

export function parseTextId(text: string): number | undefined {
  if (!/^req_[0-9a-hjkmnp-tv-z]{11}$/.test(text)) return undefined
  return [...text.slice(4)].reduce((sum, digit) => sum * 32 + DIGITS.indexOf(digit), 0)
}
