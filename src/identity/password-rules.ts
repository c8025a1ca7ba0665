// The rules for passwords and e-mail addresses of people.

import { bounds } from '../base/bounds.ts'
import type { Hint } from '../base/hints.ts'
import { hintOf } from '../base/hints.ts'

/** Passwords that attackers try first. Shorter ones are refused anyway. */
const COMMON = new Set([
  '1234567890',
  '12345678910',
  '0123456789',
  '9876543210',
  'password123',
  'password1234',
  'qwertyuiop',
  '1q2w3e4r5t',
  'iloveyou123',
  'administrator',
  'changeme123',
  'letmein123',
  'welcome123',
  'adminadmin',
  'passwordpassword',
  'qwerty123456',
  '123456789a',
  'abcdefghij',
  'qwertyuiop123',
  'correcthorsebatterystaple',
])
const DISTINCT_MIN = 5

/** What is wrong with a password, as a sentence for the person who chose it; undefined if it is accepted. */
export function passwordProblem(password: string, email: string): Hint | undefined {
  const chars = [...password].length
  const { passwordCharsMin: charsMin, passwordCharsMax: charsMax } = bounds
  if (chars < charsMin || chars > charsMax) return hintOf('password_length', { min: charsMin, max: charsMax })
  const lower = password.toLowerCase()
  if (new Set(lower).size < DISTINCT_MIN) return hintOf('password_distinct', { min: DISTINCT_MIN })
  if (COMMON.has(lower) || COMMON.has(lower.replace(/[\W_]/g, ''))) return hintOf('password_common')
  const [local = ''] = email.toLowerCase().split('@')
  if (lower === email.toLowerCase() || (local.length >= DISTINCT_MIN && lower === local))
    return hintOf('password_is_email')
  return undefined
}

/** The form in which an address is stored and compared; undefined if the text is not an e-mail address. */
export function parseEmail(text: string): string | undefined {
  const email = text.trim().toLowerCase()
  const isValid =
    email.length <= bounds.emailCharsMax && /^[^\s@\p{Cc}]+@[^\s@.\p{Cc}]+(\.[^\s@.\p{Cc}]+)*$/u.test(email)
  return isValid ? email : undefined
}

export const domainOf = (email: string): string => email.slice(email.lastIndexOf('@') + 1)
