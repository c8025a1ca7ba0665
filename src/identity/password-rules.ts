// What a password and an address to sign in with must be.

import { bounds } from '../base/bounds.ts'

/** What is tried first wherever somebody tries; all that is shorter is refused anyway. */
const COMMON = new Set([
  ...['1234567890', '12345678910', '0123456789', '9876543210', 'password123', 'password1234', 'qwertyuiop'],
  ...['1q2w3e4r5t', 'iloveyou123', 'administrator', 'changeme123', 'letmein123', 'welcome123', 'adminadmin'],
  ...['passwordpassword', 'qwerty123456', '123456789a', 'abcdefghij', 'qwertyuiop123', 'correcthorsebatterystaple'],
])
const DISTINCT_MIN = 5

/** What is wrong with it, in a sentence for whoever has chosen it; undefined: nothing. */
export function passwordProblem(password: string, email: string): string | undefined {
  const chars = [...password].length
  const { passwordCharsMin: least, passwordCharsMax: most } = bounds
  if (chars < least || chars > most) return `It must have ${least} to ${most} characters.`
  const lower = password.toLowerCase()
  if (new Set(lower).size < DISTINCT_MIN) return `It must have at least ${DISTINCT_MIN} different characters.`
  if (COMMON.has(lower) || COMMON.has(lower.replace(/[\W_]/g, ''))) return 'It is one of those that are tried first.'
  const [local = ''] = email.toLowerCase().split('@')
  if (lower === email.toLowerCase() || (local.length >= DISTINCT_MIN && lower === local)) return 'It is the address.'
  return undefined
}

/** As it is kept and compared; undefined for what is no address. */
export function parseEmail(text: string): string | undefined {
  const email = text.trim().toLowerCase()
  const isFit = email.length <= bounds.emailCharsMax && /^[^\s@\p{Cc}]+@[^\s@.\p{Cc}]+(\.[^\s@.\p{Cc}]+)*$/u.test(email)
  return isFit ? email : undefined
}

export const domainOf = (email: string): string => email.slice(email.lastIndexOf('@') + 1)
