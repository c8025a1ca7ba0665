// Signing in, renewing and signing out, as a browser does; and that strangers learn nothing from it.

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import { buildPasswordHasher } from '../../src/store/people/password-hash.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import type { ApiAnswer, Ask } from '../support/management.ts'
import { askAs } from '../support/management.ts'
import type { Person } from '../support/people.ts'
import { addPerson, cookieOf, goodPassword, personOf, setUpOwner, signedIn, signIn } from '../support/people.ts'

// Time passes only where a test says so: a slow machine must not use up a limit of seconds.
const startMs = Date.now()
const clock = { aheadMs: 0 }
const nowMs = (): number => startMs + clock.aheadMs
const world = { clock: { nowMs, dateMs: nowMs } }
const pass = (ms: number): void => void (clock.aheadMs += ms)

let harness: Harness
let owner: Person
let asAnonymous: Ask

beforeAll(async () => {
  harness = await startHarness({ world, env: { WEIR_TRUSTED_PROXIES: '127.0.0.1' } })
  owner = await setUpOwner(harness)
  asAnonymous = askAs(harness, undefined)
})
afterAll(() => harness.stop())
// Attempts of one test do not count for the next; and the owner signs in again.
afterEach(async () => {
  pass(3_600_000)
  owner = await signedIn(harness, 'owner@example.com')
})

const refresh = (cookie: string, headers: Record<string, string> = {}): Promise<ApiAnswer> =>
  asAnonymous('POST', 'auth/refresh', undefined, { cookie, ...headers })
const isIn = async ({ ask }: Pick<Person, 'ask'>): Promise<boolean> => (await ask('GET', 'web/me')).status === 200

describe('a person who signs in', () => {
  test('is recognised whatever the case of their address', async () => {
    const sameOwner = await signedIn(harness, ' Owner@Example.COM ')
    const { body } = await sameOwner.ask('GET', 'web/me')
    expect(body).toMatchObject({ id: owner.id, email: 'owner@example.com', name: 'Olga Owner', role: 'owner' })
    expect(body.accounts).toEqual([{ account: expect.stringMatching(/^acc_/), name: 'Olga Owner', role: 'manager' }])
  })

  test('gets a token of ten minutes and a cookie that no script can read', async () => {
    const answer = await signIn(harness, { email: owner.email, password: goodPassword })
    expect(answer.body).toMatchObject({ expiresInSeconds: 600, user: { id: owner.id, role: 'owner' } })
    expect(answer.headers.get('set-cookie')).toMatch(
      /^weir_refresh=[A-Za-z0-9_-]{43}; HttpOnly; SameSite=Strict; Path=\/api\/auth; Max-Age=604800$/,
    )
    expect(answer.text).not.toContain(cookieOf(answer).split('=')[1]!)
    expect(answer.headers.get('cache-control')).toBe('no-store')
    const person = personOf(harness, answer)
    pass(599_000)
    expect(await isIn(person)).toBe(true)
    pass(32_000)
    expect(await isIn(person)).toBe(false)
  })

  test('over https gets a cookie that is sent over https alone', async () => {
    const body = { email: owner.email, password: goodPassword }
    const answer = await asAnonymous('POST', 'auth/sign-in', body, { 'x-forwarded-proto': 'https' })
    expect(answer.headers.get('set-cookie')).toEndWith('; Secure')
  })

  test('may have any role, and be a member of accounts', async () => {
    const [ownAccount] = (await owner.ask('GET', 'web/me')).body.accounts as { account: string }[]
    for (const role of ['admin', 'support', 'member'] as const) {
      const person = await addPerson(harness, owner.ask, {
        role,
        members: [{ account: ownAccount!.account, role: 'viewer' }],
      })
      const { body } = await person.ask('GET', 'web/me')
      expect(body).toMatchObject({ id: person.id, role, accounts: [{ account: ownAccount!.account, role: 'viewer' }] })
    }
  })
})

describe('a failed sign-in', () => {
  test('has the same answer and the same work for every reason', async () => {
    const disabled = await addPerson(harness, owner.ask)
    await owner.ask('PATCH', `web/users/${disabled.id}`, { disabled: true })
    const removed = await addPerson(harness, owner.ask)
    await owner.ask('DELETE', `web/users/${removed.id}`)
    const tries = {
      'wrong password': { email: owner.email, password: 'not the password' },
      'unknown': { email: 'nobody@example.com', password: goodPassword },
      'no address at all': { email: 'nobody', password: goodPassword },
      'disabled': { email: disabled.email, password: goodPassword },
      'removed': { email: removed.email, password: goodPassword },
      'SQL': { email: "' OR 1=1 --", password: goodPassword },
    }
    const answers = new Map<string, string>()
    for (const [name, body] of Object.entries(tries)) {
      const answer = await signIn(harness, body)
      expect([name, answer.status, answer.error.code]).toEqual([name, 401, 'sign_in_failed'])
      expect(answer.headers.get('set-cookie')).toBeNull()
      answers.set(name, answer.text.replace(/req_\w+/g, 'req'))
    }
    expect(new Set(answers.values()).size).toBe(1)
  })

  test('compares a password once for each reason, at the same cost', async () => {
    const hashedFor: string[] = []
    const real = buildPasswordHasher({ memoryKib: 8, passes: 1 })
    const { PasswordHasher } = await import('../../src/identity/password-hasher.ts')
    const { Secret } = await import('../../src/base/secrets/secret.ts')
    const hasher = new PasswordHasher({
      hash: real.hash,
      matches(password, hash) {
        hashedFor.push(hash)
        return real.matches(password, hash)
      },
    })
    const hash = await hasher.hash(new Secret(goodPassword))
    const cost = (text: string): string => text.split('$').slice(1, 4).join('$')
    expect(await hasher.matches(new Secret(goodPassword), hash)).toBe(true)
    expect(await hasher.matches(new Secret('another one'), hash)).toBe(false)
    expect(await hasher.matches(new Secret(goodPassword), undefined)).toBe(false)
    expect(hashedFor.map(cost)).toEqual([cost(hash), cost(hash), cost(hash)])
  })
})

test('one session is not renewed without end', async () => {
  let { cookie } = await signedIn(harness, owner.email)
  let renewed = 0
  for (; renewed < 2 * bounds.personWritesPerMinuteMax; renewed++) {
    const answer = await refresh(cookie)
    if (answer.status !== 200) break
    cookie = cookieOf(answer)
  }
  expect(renewed).toBe(bounds.personWritesPerMinuteMax)
  expect((await refresh(cookie)).error.code).toBe('tried_too_often')
  pass(1_000)
  expect((await refresh(cookie)).status).toBe(200)
})

describe('repeated attempts', () => {
  const from = (address: string) => ({ 'x-forwarded-for': address })
  const tryFrom = (address: string, email: string, password = 'not the password') =>
    asAnonymous('POST', 'auth/sign-in', { email, password }, from(address))

  test('with the right password are limited, too, and only at the place that they come from', async () => {
    const statusFrom = async (address: string): Promise<number> =>
      (await tryFrom(address, owner.email, goodPassword)).status
    for (const other of ['203.0.113.40', '2001:db8:40:1::1']) {
      const statuses: number[] = []
      // All networks of one IPv6 customer are one place.
      for (let at = 0; at < 110; at++) statuses.push(await statusFrom(other.replace(':1::', `:${at}::`)))
      expect([...new Set(statuses)]).toEqual([200, 429])
      expect(statuses.filter(status => status === 200)).toHaveLength(100)
    }
    expect([await statusFrom('203.0.113.41'), await statusFrom('2001:db8:41:1::1')]).toEqual([200, 200])
  })

  test('are slowed down, for known addresses and unknown ones', async () => {
    for (const email of [owner.email, 'nobody@example.com']) {
      const codes: (string | undefined)[] = []
      for (let at = 0; at < 14; at++) codes.push((await tryFrom('203.0.113.5', email)).error.code)
      expect(codes.filter(code => code === 'sign_in_failed')).toHaveLength(10)
      expect(codes.slice(-4)).toEqual(Array(4).fill('tried_too_often'))
    }
    expect((await tryFrom('203.0.113.5', owner.email, goodPassword)).error.code).toBe('tried_too_often')
  })

  test('from a thousand addresses do not lock the owner out of a browser where they signed in before', async () => {
    await asAnonymous('POST', 'auth/sign-in', { email: owner.email, password: goodPassword }, from('198.51.100.7'))
    const codes = new Map<string | undefined, number>()
    for (let at = 0; at < 120; at++) {
      const { error } = await tryFrom(`2001:db8:0:${at.toString(16)}::1`, owner.email)
      codes.set(error.code, (codes.get(error.code) ?? 0) + 1)
    }
    expect(codes.get('sign_in_failed')).toBe(30)
    expect((await tryFrom('192.0.2.99', owner.email, goodPassword)).error.code).toBe('tried_too_often')
    expect((await tryFrom('198.51.100.7', owner.email, goodPassword)).status).toBe(200)
  })

  test('for other names do not lock a person out of an address where they signed in before', async () => {
    const known = await addPerson(harness, owner.ask)
    expect((await tryFrom('198.51.100.30', known.email, goodPassword)).status).toBe(200)
    const codes: (string | undefined)[] = []
    for (let at = 0; at < 55; at++) codes.push((await tryFrom('198.51.100.30', `stranger${at}@example.com`)).error.code)
    expect(codes.slice(-5)).toEqual(Array(5).fill('tried_too_often'))
    expect((await tryFrom('198.51.100.30', known.email, goodPassword)).status).toBe(200)
  })

  test('with the right password count wherever it confirms a change', async () => {
    const person = await addPerson(harness, owner.ask)
    const codes: (string | undefined)[] = []
    for (let at = 0; at < 105; at++) {
      const answer = await person.ask('POST', 'web/me/recovery-codes', { currentPassword: goodPassword })
      codes.push(answer.status === 201 ? 'made' : answer.error.code)
    }
    expect(codes.filter(code => code !== 'tried_too_often')).toHaveLength(100)
    expect(codes.slice(-5)).toEqual(Array(5).fill('tried_too_often'))
  })

  test('with a stolen token do not allow guesses of the password', async () => {
    const person = await addPerson(harness, owner.ask)
    const codes: (string | undefined)[] = []
    for (let at = 0; at < 12; at++) {
      const body = { currentPassword: `guess number ${at}`, password: 'another good one' }
      codes.push((await person.ask('POST', 'web/me/password', body)).error.code)
    }
    expect(codes.slice(0, 10)).toEqual(Array(10).fill('password_wrong'))
    expect(codes.slice(10)).toEqual(Array(2).fill('tried_too_often'))
  })
})

describe('a session is renewed', () => {
  test('with another token and another cookie each time, and ends if an old cookie is used', async () => {
    const first = await signedIn(harness, owner.email)
    const second = personOf(harness, await refresh(first.cookie))
    expect(second.cookie).not.toBe(first.cookie)
    const third = personOf(harness, await refresh(second.cookie))
    expect([await isIn(first), await isIn(second), await isIn(third)]).toEqual([true, true, true])
    pass(bounds.refreshGraceMsMax)
    // Somebody has stolen the first cookie.
    const stolen = await refresh(first.cookie)
    expect([stolen.status, stolen.error.code]).toEqual([401, 'session_over'])
    expect(stolen.headers.get('set-cookie')).toStartWith('weir_refresh=; ')
    expect(harness.logs.join('')).toContain('a refresh token was used twice')
    for (const person of [first, second, third]) expect(await isIn(person)).toBe(false)
    expect((await refresh(third.cookie)).status).toBe(401)
    expect(await isIn(owner)).toBe(true)
  })

  test('in two windows that renew at once with the same cookie', async () => {
    const { cookie } = await signedIn(harness, owner.email)
    const refreshed = await Promise.all(Array.from({ length: 5 }, () => refresh(cookie)))
    expect(refreshed.map(({ status }) => status)).toEqual(Array(5).fill(200))
    const [next, ...others] = new Set(refreshed.map(cookieOf))
    expect([next === cookie, others]).toEqual([false, []])
    // A slow window gets the current cookie of the session.
    const later = personOf(harness, await refresh(next!))
    expect(cookieOf(await refresh(cookie))).toBe(later.cookie)
    pass(bounds.refreshGraceMsMax)
    expect(personOf(harness, await refresh(later.cookie)).id).toBe(owner.id)
  })

  test('again with the same cookie, if the answer was lost, until the next cookie is used', async () => {
    const { cookie } = await signedIn(harness, owner.email)
    const lost = await refresh(cookie)
    pass(60_000)
    const repeated = await refresh(cookie)
    expect([repeated.status, cookieOf(repeated) === cookieOf(lost)]).toEqual([200, false])
    // Two windows repeat it at once.
    expect(cookieOf(await refresh(cookie))).toBe(cookieOf(repeated))
    pass(bounds.sessionIdleMsMax - 1_000)
    const next = await refresh(cookie)
    const current = personOf(harness, await refresh(cookieOf(next)))
    pass(bounds.refreshGraceMsMax)
    expect(await isIn(current)).toBe(true)
    const replayed = await refresh(cookie)
    expect([replayed.status, replayed.error.code]).toEqual([401, 'session_over'])
    expect(await isIn(current)).toBe(false)
    expect((await refresh(current.cookie)).status).toBe(401)
  })

  test('for one of two who share a cookie, until the other one renews: then the session ends', async () => {
    const { cookie } = await signedIn(harness, owner.email)
    // A thief has the cookie and renews first. The owner renews later and gets another cookie than the thief.
    const ofThief = cookieOf(await refresh(cookie))
    pass(60_000)
    const ofOwner = personOf(harness, await refresh(cookie))
    pass(60_000)
    expect(await isIn(ofOwner)).toBe(true)
    expect((await refresh(ofThief)).error.code).toBe('session_over')
    expect(await isIn(ofOwner)).toBe(false)
    expect((await refresh(ofOwner.cookie)).error.code).toBe('session_over')
  })

  test('for a week without use, and for a month at most', async () => {
    let { cookie } = await signedIn(harness, owner.email)
    for (let week = 0; week < 4; week++) {
      pass(bounds.sessionIdleMsMax - 1_000)
      const refreshed = await refresh(cookie)
      expect([week, refreshed.status]).toEqual([week, 200])
      cookie = cookieOf(refreshed)
    }
    pass(bounds.sessionIdleMsMax - 1_000)
    expect((await refresh(cookie)).error.code).toBe('session_over')
    const idle = await signedIn(harness, owner.email)
    pass(bounds.sessionIdleMsMax)
    expect((await refresh(idle.cookie)).error.code).toBe('session_over')
  })

  test('only with a valid cookie', async () => {
    const invalidCookies = ['', 'weir_refresh=', `weir_refresh=${'x'.repeat(43)}`, `other=${'x'.repeat(43)}`]
    for (const cookie of [...invalidCookies, `weir_refresh=${owner.token}`, `weir_refresh=${'x'.repeat(30_000)}`]) {
      const { status, error } = await refresh(cookie)
      expect([status, error.code]).toEqual([401, 'session_over'])
    }
  })
})

describe('a session ends', () => {
  test('when the person signs out, at once', async () => {
    const [kept, ended] = [await signedIn(harness, owner.email), await signedIn(harness, owner.email)]
    const gone = await asAnonymous('POST', 'auth/sign-out', undefined, { cookie: kept.cookie })
    expect([gone.status, gone.headers.get('set-cookie')?.split(';')[0]]).toEqual([204, 'weir_refresh='])
    expect([await isIn(kept), await isIn(ended)]).toEqual([false, true])
    expect((await refresh(kept.cookie)).error.code).toBe('session_over')
    expect((await asAnonymous('POST', 'auth/sign-out')).status).toBe(204)
  })

  test('when the person signs out everywhere', async () => {
    const person = await addPerson(harness, owner.ask)
    const otherSessions = [await signedIn(harness, person.email), await signedIn(harness, person.email)]
    const cookieHeader = { cookie: otherSessions[0]!.cookie }
    expect((await asAnonymous('POST', 'auth/sign-out-everywhere', undefined, cookieHeader)).status).toBe(204)
    for (const one of [person, ...otherSessions]) expect(await isIn(one)).toBe(false)
    expect(await isIn(owner)).toBe(true)
  })

  test('when it is removed from the list of sessions, which has no session of other people', async () => {
    const person = await addPerson(harness, owner.ask)
    const otherSession = await signedIn(harness, person.email)
    type Listed = { data: { id: string; current: boolean }[] }
    const { data } = (await person.ask('GET', 'web/sessions?ended=false')).body as Listed
    expect(data.map(({ current }) => current)).toEqual([false, true])
    const ownerSession = ((await owner.ask('GET', 'web/sessions')).body.data as { id: string }[])[0]!
    expect((await person.ask('DELETE', `web/sessions/${ownerSession.id}`)).status).toBe(404)
    expect((await person.ask('DELETE', `web/sessions/${data[0]!.id}`)).status).toBe(204)
    expect([await isIn(person), await isIn(otherSession), await isIn(owner)]).toEqual([true, false, true])
    await signedIn(harness, person.email)
    expect((await person.ask('DELETE', 'web/sessions')).body).toEqual({ ended: 1 })
    expect(await isIn(person)).toBe(true)
  })

  test('with a new password, except for the session that sets it', async () => {
    const person = await addPerson(harness, owner.ask)
    const otherSession = await signedIn(harness, person.email)
    const change = { currentPassword: goodPassword, password: 'quite another password' }
    const weak = { ...change, password: 'short' }
    expect((await person.ask('POST', 'web/me/password', weak)).error.code).toBe('password_weak')
    const changed = await person.ask('POST', 'web/me/password', change)
    expect(changed.status).toBe(200)
    expect(await isIn(otherSession)).toBe(false)
    expect((await refresh(otherSession.cookie)).status).toBe(401)
    // The token before has an older version. The session goes on with the token of the answer, and with the cookie.
    expect(await isIn(person)).toBe(false)
    expect(await isIn(personOf(harness, changed))).toBe(true)
    expect(await isIn(personOf(harness, await refresh(person.cookie)))).toBe(true)
    expect((await signIn(harness, { email: person.email, password: goodPassword })).status).toBe(401)
    expect((await signIn(harness, { email: person.email, password: 'quite another password' })).status).toBe(200)
  })

  test('with another role, and when the person is disabled or removed', async () => {
    for (const end of [{ role: 'support' }, { disabled: true }, undefined]) {
      const person = await addPerson(harness, owner.ask)
      expect(await isIn(person)).toBe(true)
      if (end === undefined) await owner.ask('DELETE', `web/users/${person.id}`)
      else await owner.ask('PATCH', `web/users/${person.id}`, end)
      expect([end, await isIn(person), (await refresh(person.cookie)).status]).toEqual([end, false, 401])
    }
  })

  test('when there are too many sessions, the oldest first', async () => {
    const person = await addPerson(harness, owner.ask)
    let last = person
    for (let at = 0; at < bounds.sessionsOfPersonMax; at++) last = await signedIn(harness, person.email)
    expect([await isIn(person), await isIn(last)]).toEqual([false, true])
  })
})

describe('requests from another site', () => {
  const foreignOrigins: readonly Record<string, string>[] = [
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site', 'origin': 'https://evil.example' },
    { 'origin': 'http://127.0.0.1:1', 'host': '127.0.0.1:2' },
  ]
  test.each(foreignOrigins)('with %j neither renew nor end a session', async headers => {
    const person = await signedIn(harness, owner.email)
    for (const path of ['auth/refresh', 'auth/sign-out', 'auth/sign-out-everywhere']) {
      const { status, error } = await asAnonymous('POST', path, undefined, { cookie: person.cookie, ...headers })
      expect([path, status, error.code]).toEqual([path, 403, 'origin_refused'])
    }
    const body = { email: owner.email, password: goodPassword }
    expect((await asAnonymous('POST', 'auth/sign-in', body, headers)).error.code).toBe('origin_refused')
    expect(await isIn(person)).toBe(true)
  })

  test('get no CORS permission', async () => {
    const preflight = { 'origin': 'https://evil.example', 'access-control-request-method': 'POST' }
    const { headers } = await fetch(`${harness.url}/api/auth/refresh`, { method: 'OPTIONS', headers: preflight })
    expect(headers.get('access-control-allow-origin')).toBeNull()
  })

  test('are distinguished from those of the console itself, direct and behind a proxy', async () => {
    const { host } = new URL(harness.url)
    const ownOrigins: readonly Record<string, string>[] = [
      { origin: `http://${host}` },
      { origin: `https://${host}`, 'sec-fetch-site': 'same-origin' },
      { 'origin': 'https://weir.example', 'x-forwarded-host': 'weir.example' },
    ]
    for (const headers of ownOrigins) {
      const person = await signedIn(harness, owner.email)
      expect((await refresh(person.cookie, headers)).status).toBe(200)
    }
  })
})
