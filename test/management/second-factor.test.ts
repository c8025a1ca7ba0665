// The second factor: asked for once it is confirmed, no code good twice, and what to do without it.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { Secret } from '../../src/base/secrets/secret.ts'
import { totpCodeOf, totpStepAt } from '../../src/identity/totp.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import type { Told } from '../support/management.ts'
import type { Person } from '../support/people.ts'
import { addPerson, goodPassword, personOf, setUpOwner, signedIn, signIn } from '../support/people.ts'

const clock = { aheadMs: 0 }
const world = { clock: { nowMs: () => performance.now() + clock.aheadMs, dateMs: () => Date.now() + clock.aheadMs } }

let harness: Harness
let owner: Person

beforeAll(async () => {
  harness = await startHarness({ world })
  owner = await setUpOwner(harness)
})
afterAll(() => harness.stop())

const confirm = { currentPassword: goodPassword }
const codeNow = (secret: Secret, steps = 0): string =>
  totpCodeOf(secret, totpStepAt(Date.now() + clock.aheadMs) + steps)
const later = (): void => void (clock.aheadMs += 30_000)
const enter = ({ email }: Person, code?: string): Promise<Told> =>
  signIn(harness, { email, password: goodPassword, ...(code !== undefined && { code }) })

/** Somebody with an authenticator. */
async function enrolled(): Promise<{ person: Person; secret: Secret; codes: readonly string[] }> {
  owner = await signedIn(harness, owner.email)
  const invited = await addPerson(harness, owner.ask)
  const begun = await invited.ask('POST', 'web/me/second-factor', confirm)
  const secret = new Secret(String(begun.body.secret))
  const told = await invited.ask('POST', 'web/me/second-factor/confirm', { code: codeNow(secret) })
  expect(told.status).toBe(200)
  return { person: invited, secret, codes: told.body.recoveryCodes as string[] }
}

describe('beginning', () => {
  test('needs the password, shows the secret once, and counts when it is confirmed', async () => {
    const person = await addPerson(harness, owner.ask)
    const wrong = await person.ask('POST', 'web/me/second-factor', { currentPassword: 'another password' })
    expect([wrong.status, wrong.error.code]).toEqual([403, 'password_wrong'])
    const { status, body } = await person.ask('POST', 'web/me/second-factor', confirm)
    expect(status).toBe(201)
    expect(body.secret).toMatch(/^[A-Z2-7]{32}$/)
    expect(body.url).toContain(`secret=${String(body.secret)}&issuer=Weir`)
    expect((await enter(person)).status).toBe(200)
    expect((await person.ask('GET', 'web/me')).body.secondFactor).toBe(false)
    const refused = await person.ask('POST', 'web/me/second-factor/confirm', { code: '000000' })
    expect([refused.status, refused.error.param]).toEqual([400, 'code'])
    const secret = new Secret(String(body.secret))
    const told = await person.ask('POST', 'web/me/second-factor/confirm', { code: codeNow(secret) })
    expect(told.body.recoveryCodes).toHaveLength(10)
    expect(new Set(told.body.recoveryCodes as string[]).size).toBe(10)
    expect((await person.ask('GET', 'web/me')).body.secondFactor).toBe(true)
    expect((await person.ask('POST', 'web/me/second-factor', confirm)).error.code).toBe('state_unfit')
  })

  test('keeps the secret sealed, and codes as digests', async () => {
    const { secret, codes } = await enrolled()
    const db = openDatabase(join(harness.folder, 'weir.db'), { readonly: true })
    const rows = JSON.stringify([...db.query('SELECT hex(sealed) AS h, * FROM totp').all()])
    const kept = JSON.stringify(db.query('SELECT * FROM recovery_code').all())
    db.close()
    expect(rows).not.toContain(Buffer.from(secret.reveal()).toString('hex').toUpperCase())
    for (const code of codes) expect(kept).not.toContain(code)
  })
})

describe('signing in', () => {
  test('needs a code then, and the right one', async () => {
    const { person, secret } = await enrolled()
    later()
    const without = await enter(person)
    expect([without.status, without.error.code]).toEqual([401, 'code_needed'])
    for (const code of ['000000', '12345', 'abc', codeNow(secret, 9), codeNow(secret, -9)]) {
      expect((await enter(person, code)).error.code).toBe('sign_in_failed')
    }
    expect((await enter(person, codeNow(secret))).status).toBe(200)
  })

  test('a code is told to be needed only to whoever has the password', async () => {
    const { person } = await enrolled()
    const { error } = await signIn(harness, { email: person.email, password: 'not the password' })
    expect(error.code).toBe('sign_in_failed')
  })

  test('no code is good twice, nor one before it; also not at once', async () => {
    const { person, secret } = await enrolled()
    // The one that it was confirmed with is used up.
    expect((await enter(person, codeNow(secret))).error.code).toBe('sign_in_failed')
    later()
    const [early, now] = [codeNow(secret, -1), codeNow(secret)]
    const told = await Promise.all(Array.from({ length: 5 }, () => enter(person, now)))
    expect(told.filter(({ status }) => status === 200)).toHaveLength(1)
    expect((await enter(person, now)).error.code).toBe('sign_in_failed')
    expect((await enter(person, early)).error.code).toBe('sign_in_failed')
    later()
    expect((await enter(person, codeNow(secret))).status).toBe(200)
  })

  test('guesses of it are slowed down', async () => {
    const { person, secret } = await enrolled()
    clock.aheadMs += 3_600_000
    for (let at = 0; at < 10; at++) await enter(person, String(at).padStart(6, '0'))
    expect((await enter(person, codeNow(secret))).error.code).toBe('tried_too_often')
    clock.aheadMs += 3_600_000
  })

  test('a recovery code is good once, and is nobody else’s', async () => {
    const [mine, other] = [await enrolled(), await enrolled()]
    expect((await enter(other.person, mine.codes[0])).error.code).toBe('sign_in_failed')
    const told = await Promise.all(Array.from({ length: 4 }, () => enter(mine.person, mine.codes[0]!.toUpperCase())))
    expect(told.filter(({ status }) => status === 200)).toHaveLength(1)
    expect((await enter(mine.person, mine.codes[1])).status).toBe(200)
  })
})

describe('afterwards', () => {
  test('fresh recovery codes make the old ones void', async () => {
    const { person, codes } = await enrolled()
    const fresh = await person.ask('POST', 'web/me/recovery-codes', confirm)
    expect(fresh.status).toBe(201)
    expect((await enter(person, codes[0])).status).toBe(401)
    expect((await enter(person, (fresh.body.recoveryCodes as string[])[0])).status).toBe(200)
  })

  test('it is taken away with the password, or by the operator', async () => {
    const { person, codes } = await enrolled()
    const wrong = await person.ask('POST', 'web/me/second-factor/remove', { currentPassword: 'another one' })
    expect(wrong.error.code).toBe('password_wrong')
    expect((await person.ask('POST', 'web/me/second-factor/remove', confirm)).status).toBe(204)
    const again = personOf(harness, await enter(person))
    expect((await again.ask('GET', 'web/me')).body.secondFactor).toBe(false)
    expect((await enter(person, codes[0])).status).toBe(200)
    const lost = await enrolled()
    const reset = { 'user': lost.person.email, 'password': goodPassword, 'second-factor': 'off' }
    await harness.weir('users reset-password', reset)
    expect((await enter(lost.person)).status).toBe(200)
  })
})
