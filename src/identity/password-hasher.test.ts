// Passwords are hashed a few at a time, and an unknown person takes as long as a known one.

import { expect, test } from 'bun:test'
import { bounds } from '../base/bounds.ts'
import { Secret } from '../base/secrets/secret.ts'
import { PasswordHasher } from './password-hasher.ts'

const password = new Secret('a long password')

function gatedDesk() {
  const gate = Promise.withResolvers<void>()
  const seen = { running: 0, most: 0, compared: [] as string[] }
  const desk = new PasswordHasher({
    hash: async text => `hash of ${text}`,
    async matches(text, hash) {
      seen.most = Math.max(seen.most, ++seen.running)
      seen.compared.push(hash)
      await gate.promise
      seen.running--
      return hash === `hash of ${text}`
    },
  })
  return { desk, gate, seen }
}

test('some are hashed at once, some wait, and the rest are refused', async () => {
  const { desk, gate, seen } = gatedDesk()
  const most = bounds.passwordHashesMax + bounds.passwordsWaitingMax
  const asked = Array.from({ length: most + 5 }, () =>
    desk.matches(password, 'hash of a long password').catch((fault: Error) => fault.name),
  )
  await Promise.resolve().then(() => gate.resolve())
  const told = await Promise.all(asked)
  expect(told.filter(answer => answer === true)).toHaveLength(most)
  expect(told.filter(answer => answer === 'Refusal')).toHaveLength(5)
  expect([seen.most, seen.running]).toEqual([bounds.passwordHashesMax, 0])
  expect(await desk.matches(password, 'hash of a long password')).toBe(true)
})

test('a failed one releases its slot', async () => {
  const desk = new PasswordHasher({ hash: () => Promise.reject(new Error('no')), matches: async () => true })
  for (let at = 0; at < 50; at++) await expect(desk.hash(password)).rejects.toThrow('no')
})

test('an unknown person is compared with a dummy hash and never matches', async () => {
  const { desk, gate, seen } = gatedDesk()
  gate.resolve()
  expect(await desk.matches(new Secret('nobody has this password'), undefined)).toBe(false)
  expect(seen.compared).toEqual(['hash of nobody has this password'])
})
