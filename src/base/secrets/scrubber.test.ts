// Tests that a secret is removed from texts in every form in which an upstream might repeat it.

import { describe, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { expectCheap } from '../../../test/support/cpu.ts'
import { FRAGMENT_CHARS, Scrubber } from './scrubber.ts'

const secret = 'sk-canary/Upstream+0123456789_abcDEF=xyz'
const scrubber = new Scrubber(secret)
const base64 = (text: string): string => Buffer.from(text).toString('base64')
const base64url = (text: string): string => Buffer.from(text).toString('base64url')
const hex = (text: string): string => Buffer.from(text).toString('hex')
const spaced = (text: string, separator: string, every: number): string =>
  text.replaceAll(new RegExp(`.{${every}}`, 'g'), `$&${separator}`)
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
function base32(text: string): string {
  const bits = [...Buffer.from(text)].map(byte => byte.toString(2).padStart(8, '0')).join('')
  const letters = bits.match(/.{1,5}/g)!.map(five => BASE32[Number.parseInt(five.padEnd(5, '0'), 2)]!)
  return letters.join('').padEnd(Math.ceil(letters.length / 8) * 8, '=')
}
const reversed = (text: string): string => [...text].reverse().join('')
const percent = (text: string): string => [...text].map(char => `%${hex(char)}`).join('')

/** Whether a text has a fragment of the secret that must be removed, plain or encoded. */
function hasFragment(text: string): boolean {
  const letters = (from: string): string => from.replaceAll(/[^A-Za-z0-9]/g, '').toLowerCase()
  const [all, plain] = [letters(text), letters(secret)]
  const encoded = [0, 1, 2].map(before => letters(base64('x'.repeat(before) + secret)).slice(4, -4))
  const forms = [plain, reversed(plain), ...encoded, letters(base32(secret)).slice(0, -8), hex(secret)]
  return forms.some(form => {
    for (let index = 0; index + FRAGMENT_CHARS <= form.length; index++) {
      if (all.includes(form.slice(index, index + FRAGMENT_CHARS))) return true
    }
    return false
  })
}

const forms: readonly [string, string][] = [
  ['plain', secret],
  ['upper case', secret.toUpperCase()],
  ['lower case', secret.toLowerCase()],
  ['after Bearer', `Authorization: Bearer ${secret}`],
  ['base64', base64(secret)],
  ['base64 after one byte', base64(`:${secret}`)],
  ['base64 after two bytes', base64(`u:${secret}:p`)],
  ['base64 of a Basic pair', `Basic ${base64(`some-user:${secret}`)}`],
  ['base64url', base64url(secret)],
  ['base64url after one byte', base64url(`?${secret}?`)],
  ['base64url after two bytes', base64url(`??${secret}??`)],
  ['base64 in lines', spaced(base64(secret), '\n', 8)],
  ['base64 in a URL', encodeURIComponent(base64(secret))],
  ['percent-encoded', encodeURIComponent(secret)],
  ['percent-encoded in lower case', encodeURIComponent(secret).toLowerCase()],
  ['percent-encoded throughout', percent(secret)],
  ['hex', hex(secret)],
  ['hex in upper case', hex(secret).toUpperCase()],
  ['hex in pairs', spaced(hex(secret), ' ', 2)],
  ['hex with colons', spaced(hex(secret), ':', 2)],
  ['hex with prefixes', [...secret].map(char => `0x${hex(char)}`).join(', ')],
  ['hex escapes', [...secret].map(char => `\\x${hex(char)}`).join('')],
  ['unicode escapes', [...secret].map(char => `\\u00${hex(char)}`).join('')],
  ['HTML entities', [...secret].map(char => `&#${char.charCodeAt(0)};`).join('')],
  ['HTML entities in hex', [...secret].map(char => `&#x${hex(char)};`).join('')],
  ['in JSON in JSON', JSON.stringify(JSON.stringify({ key: secret }))],
  ['with spaces', spaced(secret, ' ', 1)],
  ['in lines', spaced(secret, '\n', 5)],
  ['in escaped lines', spaced(secret, '\\n', 5)],
  ['with an ellipsis', spaced(secret, '…', 4)],
  ['with zero-width spaces', spaced(secret, '\u200b', 3)],
  ['with dashes and quotes', spaced(secret, '" - "', 3)],
  ['the beginning of the secret', `you sent ${secret.slice(0, 24)}…`],
  ['the end of the secret', `you sent …${secret.slice(-24)}`],
  ['the middle of the secret', secret.slice(8, 28)],
  ['the beginning and the end of the secret', `${secret.slice(0, 16)}…${secret.slice(-16)}`],
  ['the middle of the secret in base64', base64(secret.slice(5, 27))],
  ['base32', base32(secret)],
  ['base32 in lower case', base32(secret).toLowerCase()],
  ['base32 in lines', spaced(base32(secret), '\n', 8)],
  ...[1, 2, 3, 4].map((before): [string, string] => [
    `base32 after ${before} bytes`,
    base32('????'.slice(-before) + secret),
  ]),
  ['reversed', reversed(secret)],
  ['reversed, with dashes', spaced(reversed(secret), '-', 3)],
  ['twice', `${secret}${secret}`],
]

test.each(forms)('the secret is removed in this form: %s', (_name, form) => {
  const text = `Incorrect key: ${form} (see the documents)`
  expect(hasFragment(text) || !text.includes(secret)).toBe(true)
  const scrubbed = scrubber.scrub(text)
  expect(scrubbed).toContain('[secret]')
  expect(hasFragment(scrubbed)).toBe(false)
  expect(scrubbed.startsWith('Incorrect key: ')).toBe(true)
  expect(scrubbed.endsWith(' (see the documents)')).toBe(true)
})

test.each([
  'The model `gpt-5` does not exist or you do not have access to it.',
  'Invalid base64: c2stY2FuYX is too short',
  'request 0123456789 failed after 9876543210 ms with sk-… as its key',
  'sk-canary is not a key',
  '',
])('other text stays: %s', text => {
  expect(scrubber.scrub(text)).toBe(text)
})

test('a fragment of the minimum length is removed, and a shorter one stays', () => {
  const plain = new Scrubber('abcdefghijklmnopqrstuvwxyz')
  expect(plain.scrub('ABCDEFGHIJKL…')).toBe('ABCDEFGHIJKL…')
  expect(plain.scrub('ABCDEFGHIJKLM…')).toBe('[secret]…')
})

const keys: readonly [string, string, string][] = [
  ['Anthropic', 'sk-ant-api03-', 'Zq8nT4wLx2VbR7yKc5MjH9dPfG3sA6eU1oN0iWtB'],
  ['OpenAI', 'sk-proj-', 'Zq8nT4wLx2VbR7yKc5Mj_T3BlbkFJH9dPfG3sA6eU1oN0iWtB'],
  ['OpenRouter', 'sk-or-v1-', '8f14e45fceea167a5a36dedd4bea2543c9f0f895fb98ab9159f51fd0297e236d'],
  ['Google', 'AIzaSy', 'Zq8nT4wLx2VbR7yKc5MjH9dPfG3sA6eU1'],
  ['Ark', '', 'c4ca4238-a0b9-4382-8dcc-509a6f75849b'],
  ['Azure', '', '4wLx2VbR7yKc5MjH9dPfG3sA6eU1oN0iWtB8nT3qV6zXr1pSkY5mJQQJ99BDACYeBjFXJ3w3AAABACOGq7Xk'],
]

describe.each(keys)('a key of %s', (_name, prefix, random) => {
  const key = prefix + random
  const keyScrubber = new Scrubber(key)

  test('is removed in parts, each of which shows less than half', () => {
    const chars = Math.floor(random.length * 0.45)
    for (const from of [0, 8, random.indexOf('JQQJ99') - chars, random.length - chars]) {
      const shown = random.slice(from, from + chars)
      if (from < 0 || /JQQJ99\w+COG/.test(shown)) continue // Everybody knows this part of a key of Azure.
      for (const form of [shown, shown.toUpperCase(), reversed(shown), spaced(shown, ' ', 4), hex(shown)]) {
        expect(keyScrubber.scrub(`<<${form}>>`)).toMatch(/^<<\W*\[secret\]\W*>>$/)
      }
      for (const form of [base64(shown), base32(shown)]) expect(keyScrubber.scrub(form)).toContain('[secret]')
    }
  })

  test('cannot be guessed letter by letter by a caller whose text an upstream repeats', () => {
    // The public prefix of such a key, and at most eleven letters of its secret part.
    const known = /T3BlbkFJ|JQQJ99BDACYeBjFXJ3w3AAABACOG/.exec(random)?.[0]
    const guesses = [`${prefix}${random.slice(0, 5)}`, random.slice(0, 11), random.slice(-4)]
    if (known !== undefined) guesses.push(known, random.slice(random.indexOf(known) - 3).slice(0, known.length + 6))
    for (const guess of guesses) {
      for (const form of [guess, hex(guess), base64(guess), `${guess} ${guess} ${guess}`]) {
        const repeated = `Unknown parameter: '${form}'`
        expect(keyScrubber.scrub(repeated)).toBe(repeated)
      }
    }
  })
})

test('words and numbers that are also in a secret stay', () => {
  const words = new Scrubber('internationalization-x9Q-AUTHENTICATION-7f-202520262027-k3Jq8ZbT1w')
  for (const text of ['The internationalization failed', 'Authentication: AUTHENTICATION', 'at 202520262027 ms']) {
    expect(words.scrub(text)).toBe(text)
  }
  expect(words.scrub('7f 202520262027-k3J')).toBe('[secret]')
})

test('of a signed token, what everybody can compute stays, and the signature is removed', () => {
  const header = Buffer.from('{"alg":"HS256","typ":"JWT"}').toString('base64url')
  const claims = Buffer.from('{"name":"somebody","group":"a group of people"}').toString('base64url')
  const signature = 'Zq8nT4wLx2VbR7yKc5MjH9dPfG3sA6eU1oN0iWtB'
  const token = new Scrubber(`${header}.${claims}.${signature}`)
  expect(token.scrub(`Bearer ${header}.${claims}.${signature}`)).toBe('Bearer [secret]')
  expect(token.scrub(`${header}.${claims.slice(0, 9)}`)).toBe(`${header}.${claims.slice(0, 9)}`)
  expect(token.scrub(`it ends with ${signature.slice(-14)}`)).toBe('it ends with [secret]')
})

test('a long text costs no more than in proportion to its length, whatever it repeats', async () => {
  const pem = generateKeyPairSync('rsa', { modulusLength: 4_096 }).privateKey.export({ type: 'pkcs8', format: 'pem' })
  const long = new Scrubber(pem as string)
  const same = new Scrubber('a'.repeat(1_000))
  const texts = [pem as string, 'a', '\\u0061', '&#x61;', secret.slice(0, 11)]
  await expectCheap(10_000, () => {
    for (const text of texts) {
      const repeated = text.repeat(Math.ceil(200_000 / text.length))
      for (const one of [long, same, scrubber]) one.scrub(repeated)
    }
  })
})

test('a short secret is removed only if it is complete', () => {
  expect(new Scrubber('sk-1').scrub('sk-1 SK-1 risk-123')).toBe('[secret] SK-1 risk-123')
  expect(new Scrubber('p@ss w/rd').scrub('p%40ss%20w%2Frd')).toBe('[secret]')
})

test('only the secret fields of a service account in JSON are removed', () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
  const account = { type: 'service_account', private_key: pem, token_uri: 'https://oauth2.googleapis.com/token' }
  const accountScrubber = new Scrubber(JSON.stringify(account))
  const harmless = 'https://oauth2.googleapis.com/token knows no service_account with this BEGIN PRIVATE KEY'
  expect(accountScrubber.scrub(harmless)).toBe(harmless)
  const line = pem.split('\n')[5]!
  // The key is random. A sign at the start or end of a line is not taken for a part of the secret.
  expect(accountScrubber.scrub(`(${line})`).replace(/[+/]/g, '')).toBe('([secret])')
  expect(accountScrubber.scrub(JSON.stringify(pem))).not.toContain(line.slice(0, FRAGMENT_CHARS))
})
