// Tests that passwords are hashed a few at a time, and that an unknown person takes as long as a known one.

import { expect, test } from 'bun:test'
import { bounds } from '../base/bounds.ts'
import { Secret } from '../base/secrets/secret.ts'
import { PasswordHasher } from './password-hasher.ts'

const password = new Secret('a long password')

function gatedHasher() {
  const gate = Promise.withResolvers<void>()
  const seen = { running: 0, most: 0, compared: [] as string[] }
  const hasher = new PasswordHasher({
    hash: async text => `hash of ${text}`,
    async matches(text, hash) {
      seen.most = Math.max(seen.most, ++seen.running)
      seen.compared.push(hash)
      await gate.promise
      seen.running--
      return hash === `hash of ${text}`
    },
  })
  return { hasher, gate, seen }
}

test('some passwords are hashed at once, some wait, and the rest are refused', async () => {
  const { hasher, gate, seen } = gatedHasher()
  const most = bounds.passwordHashesMax + bounds.passwordsWaitingMax
  const requests = Array.from({ length: most + 5 }, () =>
    hasher.matches(password, 'hash of a long password').catch((fault: Error) => fault.name),
  )
  await Promise.resolve().then(() => gate.resolve())
  const results = await Promise.all(requests)
  expect(results.filter(answer => answer === true)).toHaveLength(most)
  expect(results.filter(answer => answer === 'Refusal')).toHaveLength(5)
  expect([seen.most, seen.running]).toEqual([bounds.passwordHashesMax, 0])
  expect(await hasher.matches(password, 'hash of a long password')).toBe(true)
})

test('a failed hash releases its slot', async () => {
  const hasher = new PasswordHasher({ hash: () => Promise.reject(new Error('no')), matches: async () => true })
  for (let attempt = 0; attempt < 50; attempt++) await expect(hasher.hash(password)).rejects.toThrow('no')
})

test('an unknown person is compared with a dummy hash and never matches', async () => {
  const { hasher, gate, seen } = gatedHasher()
  gate.resolve()
  expect(await hasher.matches(new Secret('nobody has this password'), undefined)).toBe(false)
  expect(seen.compared).toEqual(['hash of nobody has this password'])
})
