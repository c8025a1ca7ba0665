// The second factor: required once it is confirmed, each code valid once, and what to do without it.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { Secret } from '../../src/base/secrets/secret.ts'
import { totpCodeOf, totpStepAt } from '../../src/identity/totp.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import type { ApiAnswer } from '../support/management.ts'
import type { Person } from '../support/people.ts'
import { addPerson, goodPassword, personOf, setUpOwner, signedIn, signIn } from '../support/people.ts'

// Time passes only where a test says so: a code is valid for half a minute, and the next one may begin at any moment.
const startMs = Date.now()
const clock = { aheadMs: 0 }
const nowMs = (): number => startMs + clock.aheadMs
const world = { clock: { nowMs, dateMs: nowMs } }

let harness: Harness
let owner: Person

beforeAll(async () => {
  harness = await startHarness({ world })
  owner = await setUpOwner(harness)
})
afterAll(() => harness.stop())

const confirm = { currentPassword: goodPassword }
const codeNow = (secret: Secret, steps = 0): string => totpCodeOf(secret, totpStepAt(nowMs()) + steps)
/** Codes that are wrong: of a million codes the right ones of this minute may be any. */
const wrongCodes = (secret: Secret): readonly string[] => {
  const right = [-2, -1, 0, 1, 2].map(steps => codeNow(secret, steps))
  return Array.from({ length: 20 }, (_, at) => String(at).padStart(6, '0')).filter(code => !right.includes(code))
}
const later = (): void => void (clock.aheadMs += 30_000)
const enter = ({ email }: Person, code?: string): Promise<ApiAnswer> =>
  signIn(harness, { email, password: goodPassword, ...(code !== undefined && { code }) })

/** A person with an authenticator. */
async function enrolled(): Promise<{ person: Person; secret: Secret; codes: readonly string[] }> {
  owner = await signedIn(harness, owner.email)
  const invited = await addPerson(harness, owner.ask)
  const enrolment = await invited.ask('POST', 'web/me/second-factor', confirm)
  const secret = new Secret(String(enrolment.body.secret))
  const confirmed = await invited.ask('POST', 'web/me/second-factor/confirm', { code: codeNow(secret) })
  expect(confirmed.status).toBe(200)
  return { person: invited, secret, codes: confirmed.body.recoveryCodes as string[] }
}

describe('setting up a second factor', () => {
  test('needs the password, shows the secret once, and takes effect when it is confirmed', async () => {
    const person = await addPerson(harness, owner.ask)
    const wrong = await person.ask('POST', 'web/me/second-factor', { currentPassword: 'another password' })
    expect([wrong.status, wrong.error.code]).toEqual([403, 'password_wrong'])
    const { status, body } = await person.ask('POST', 'web/me/second-factor', confirm)
    expect(status).toBe(201)
    expect(body.secret).toMatch(/^[A-Z2-7]{32}$/)
    expect(body.url).toContain(`secret=${String(body.secret)}&issuer=Weir`)
    expect((await enter(person)).status).toBe(200)
    expect((await person.ask('GET', 'web/me')).body.secondFactor).toBe(false)
    const secret = new Secret(String(body.secret))
    const refused = await person.ask('POST', 'web/me/second-factor/confirm', { code: wrongCodes(secret)[0] })
    expect([refused.status, refused.error.param]).toEqual([400, 'code'])
    const confirmed = await person.ask('POST', 'web/me/second-factor/confirm', { code: codeNow(secret) })
    expect(confirmed.body.recoveryCodes).toHaveLength(10)
    expect(new Set(confirmed.body.recoveryCodes as string[]).size).toBe(10)
    expect((await person.ask('GET', 'web/me')).body.secondFactor).toBe(true)
    expect((await person.ask('POST', 'web/me/second-factor', confirm)).error.code).toBe('state_unfit')
  })

  test('stores the secret encrypted, and codes as digests', async () => {
    const { secret, codes } = await enrolled()
    const db = openDatabase(join(harness.folder, 'weir.db'), { readonly: true })
    const rows = JSON.stringify([...db.query('SELECT hex(sealed) AS h, * FROM totp').all()])
    const storedCodes = JSON.stringify(db.query('SELECT * FROM recovery_code').all())
    db.close()
    expect(rows).not.toContain(Buffer.from(secret.reveal()).toString('hex').toUpperCase())
    for (const code of codes) expect(storedCodes).not.toContain(code)
  })
})

describe('signing in with a second factor', () => {
  test('needs the right code', async () => {
    const { person, secret } = await enrolled()
    later()
    const without = await enter(person)
    expect([without.status, without.error.code]).toEqual([401, 'code_needed'])
    for (const code of [wrongCodes(secret)[0]!, '12345', 'abc', codeNow(secret, 9), codeNow(secret, -9)]) {
      expect((await enter(person, code)).error.code).toBe('sign_in_failed')
    }
    expect((await enter(person, codeNow(secret))).status).toBe(200)
  })

  test('says that a code is needed only after the right password', async () => {
    const { person } = await enrolled()
    const { error } = await signIn(harness, { email: person.email, password: 'not the password' })
    expect(error.code).toBe('sign_in_failed')
  })

  test('accepts no code twice, nor an earlier one, even at the same time', async () => {
    const { person, secret } = await enrolled()
    // The code that confirmed the second factor is used up.
    expect((await enter(person, codeNow(secret))).error.code).toBe('sign_in_failed')
    later()
    const [early, now] = [codeNow(secret, -1), codeNow(secret)]
    const answers = await Promise.all(Array.from({ length: 5 }, () => enter(person, now)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect((await enter(person, now)).error.code).toBe('sign_in_failed')
    expect((await enter(person, early)).error.code).toBe('sign_in_failed')
    later()
    expect((await enter(person, codeNow(secret))).status).toBe(200)
  })

  test('slows down guesses of codes', async () => {
    const { person, secret } = await enrolled()
    clock.aheadMs += 3_600_000
    for (const code of wrongCodes(secret).slice(0, 10)) await enter(person, code)
    expect((await enter(person, codeNow(secret))).error.code).toBe('tried_too_often')
    clock.aheadMs += 3_600_000
  })

  test('accepts a recovery code once, and only of that person', async () => {
    const [first, second] = [await enrolled(), await enrolled()]
    expect((await enter(second.person, first.codes[0])).error.code).toBe('sign_in_failed')
    const answers = await Promise.all(
      Array.from({ length: 4 }, () => enter(first.person, first.codes[0]!.toUpperCase())),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect((await enter(first.person, first.codes[1])).status).toBe(200)
  })
})

describe('afterwards', () => {
  test('new recovery codes make the old ones invalid', async () => {
    const { person, codes } = await enrolled()
    const fresh = await person.ask('POST', 'web/me/recovery-codes', confirm)
    expect(fresh.status).toBe(201)
    expect((await enter(person, codes[0])).status).toBe(401)
    expect((await enter(person, (fresh.body.recoveryCodes as string[])[0])).status).toBe(200)
  })

  test('the second factor is removed with the password, or by the operator', async () => {
    const { person, codes } = await enrolled()
    const wrong = await person.ask('POST', 'web/me/second-factor/remove', { currentPassword: 'another one' })
    expect(wrong.error.code).toBe('password_wrong')
    expect((await person.ask('POST', 'web/me/second-factor/remove', confirm)).status).toBe(204)
    const signedInAgain = personOf(harness, await enter(person))
    expect((await signedInAgain.ask('GET', 'web/me')).body.secondFactor).toBe(false)
    expect((await enter(person, codes[0])).status).toBe(200)
    const lost = await enrolled()
    const reset = { 'user': lost.person.email, 'password': goodPassword, 'second-factor': 'off' }
    await harness.weir('users reset-password', reset)
    expect((await enter(lost.person)).status).toBe(200)
  })
})
