// Tests that a secret is removed from texts in every form in which an upstream might repeat it.

import { expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { FRAGMENT_CHARS, Scrubber } from './scrubber.ts'

const secret = 'sk-canary/Upstream+0123456789_abcDEF=xyz'
const scrubber = new Scrubber(secret)
const base64 = (text: string): string => Buffer.from(text).toString('base64')
const base64url = (text: string): string => Buffer.from(text).toString('base64url')
const hex = (text: string): string => Buffer.from(text).toString('hex')
const spaced = (text: string, separator: string, every: number): string =>
  text.replaceAll(new RegExp(`.{${every}}`, 'g'), `$&${separator}`)
const percent = (text: string): string => [...text].map(char => `%${hex(char)}`).join('')

/** Whether a text has a fragment of the secret that must be removed, plain or encoded. */
function hasFragment(text: string): boolean {
  const letters = (from: string): string => from.replaceAll(/[^A-Za-z0-9]/g, '').toLowerCase()
  const [all, plain] = [letters(text), letters(secret)]
  const encoded = [0, 1, 2].map(before => letters(base64('x'.repeat(before) + secret)).slice(4, -4))
  const forms = [plain, ...encoded, hex(secret)]
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

test('a caller whose text an upstream repeats cannot guess a key letter by letter', () => {
  const key = 'sk-ant-api03-Zq8nT4wLx2VbR7yKc5MjH9dPfG3sA6eU1oN0iWtB'
  const keyScrubber = new Scrubber(key)
  const letters = key.replaceAll(/\W/g, '').length
  for (let known = 8; known < letters / 2 - 4; known++) {
    const right = key.slice(0, known + 3)
    for (const form of [right, hex(right), base64(right), `${right} ${right} ${right}`]) {
      const repeated = `Unknown parameter: '${form}'`
      expect(keyScrubber.scrub(repeated)).toBe(repeated)
    }
  }
  expect(keyScrubber.scrub(`Incorrect key: ${key.slice(0, 20)}***${key.slice(-20)}`)).not.toContain(key.slice(0, 20))
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
