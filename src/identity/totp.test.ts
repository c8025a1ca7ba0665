// Tests the codes of an authenticator with the examples of the RFCs.

import { describe, expect, test } from 'bun:test'
import { Secret } from '../base/secrets/secret.ts'
import {
  decodeBase32,
  encodeBase32,
  mintRecoveryCode,
  mintTotpSecret,
  parseRecoveryCode,
  showTotp,
  totpCodeOf,
  totpStepAt,
  totpStepOfCode,
} from './totp.ts'

/** The examples of RFC 6238, appendix B. */
const secret = new Secret(encodeBase32(Buffer.from('12345678901234567890')))
const examples: readonly [seconds: number, code: string][] = [
  [59, '94287082'],
  [1_111_111_109, '07081804'],
  [1_111_111_111, '14050471'],
  [1_234_567_890, '89005924'],
  [2_000_000_000, '69279037'],
  [20_000_000_000, '65353130'],
]

test.each(examples)('the code at %d seconds is %s', (seconds, code) => {
  expect(totpCodeOf(secret, totpStepAt(seconds * 1_000), 8)).toBe(code)
  expect(totpCodeOf(secret, totpStepAt(seconds * 1_000))).toBe(code.slice(2))
})

test('base32 is that of RFC 4648, and is decoded again', () => {
  const pairs = [
    ['', ''],
    ['f', 'MY'],
    ['fo', 'MZXQ'],
    ['foo', 'MZXW6'],
    ['foobar', 'MZXW6YTBOI'],
  ] as const
  for (const [bytes, text] of pairs) {
    expect(encodeBase32(Buffer.from(bytes))).toBe(text)
    expect(decodeBase32(text).toString()).toBe(bytes)
  }
})

describe('a code', () => {
  const nowMs = 1_234_567_890_000
  test('is accepted a step early and a step late, and returns its step', () => {
    const step = totpStepAt(nowMs)
    for (const offset of [-1, 0, 1])
      expect(totpStepOfCode(secret, totpCodeOf(secret, step + offset), nowMs)).toBe(step + offset)
    for (const offset of [-2, 2])
      expect(totpStepOfCode(secret, totpCodeOf(secret, step + offset), nowMs)).toBeUndefined()
  })
})

test('secrets and recovery codes are random and have their format', () => {
  expect(mintTotpSecret().reveal()).toMatch(/^[A-Z2-7]{32}$/)
  expect(mintTotpSecret().reveal()).not.toBe(mintTotpSecret().reveal())
  expect(mintRecoveryCode()).toMatch(/^([a-z2-7]{4}-){3}[a-z2-7]{4}$/)
  const code = mintRecoveryCode()
  expect(parseRecoveryCode(code.toUpperCase().replaceAll('-', ' '))).toBe(code)
  const invalid = ['', '123456', 'abcd-efgh-ijkl-mno1', `${code}a`]
  expect(invalid.map(parseRecoveryCode)).toEqual(invalid.map(() => undefined))
})

test('the URL for an authenticator contains site and address, escaped', () => {
  expect(showTotp(new Secret('ABC'), { site: 'A & B', email: 'a+b@c.d' }).url).toBe(
    'otpauth://totp/A%20%26%20B:a%2Bb%40c.d?secret=ABC&issuer=A%20%26%20B',
  )
})
