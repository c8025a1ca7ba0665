// The first run: only somebody with the set-up token becomes the owner, and nobody after them.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { buildWebEndpoints } from '../../src/management/resources/table.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import type { Ask } from '../support/management.ts'
import { askAs } from '../support/management.ts'
import { goodPassword, personOf } from '../support/people.ts'

const HOUR_MS = 3_600_000
// Time passes only where a test says so: a slow machine would get more guesses.
const startMs = Date.now()
const clock = { aheadMs: 0 }
const nowMs = (): number => startMs + clock.aheadMs
const world = { clock: { nowMs, dateMs: nowMs } }

let harness: Harness
let asAnonymous: Ask

const startFresh = async (): Promise<void> => {
  harness = await startHarness({ world })
  asAnonymous = askAs(harness, undefined)
}

const freshToken = async (): Promise<string> => String((await harness.weir('setup', { token: true })).setupToken)
const owner = (token: string, email = 'owner@example.com') => ({ token, name: 'Olga', email, password: goodPassword })
const setUp = (token: string, email?: string) => asAnonymous('POST', 'auth/setup', owner(token, email))
const people = (): unknown[] => {
  const db = openDatabase(join(harness.folder, 'weir.db'), { readonly: true })
  try {
    return db.query('SELECT email, role FROM person').all()
  } finally {
    db.close()
  }
}

describe('before the site is set up', () => {
  beforeAll(startFresh)
  afterAll(() => harness.stop())

  test('the answer says so, and no other endpoint of /api/auth/* answers', async () => {
    expect((await asAnonymous('GET', 'auth/setup')).body).toEqual({ needed: true })
    const start = await asAnonymous('POST', 'auth/session')
    expect([start.status, start.body]).toEqual([200, { setupNeeded: true, site: expect.anything() }])
    const isOpen = (path: string): boolean => ['/api/auth/setup', '/api/auth/session'].includes(path)
    const rows = buildWebEndpoints(harnessParts()).filter(({ path }) => path.startsWith('/api/auth/'))
    expect(rows.length).toBeGreaterThan(6)
    const requests = [
      ...rows.filter(({ path }) => !isOpen(path)).map(({ method, path }) => [method, path.slice(5)]),
      ['GET', 'auth/nothing'],
      ['POST', 'auth/setup/'],
      ['DELETE', 'auth/x/y'],
    ]
    for (const [method, path] of requests) {
      const { status, error } = await asAnonymous(method!, path!, method === 'GET' ? undefined : {})
      expect([path, status, error.code]).toEqual([path!, 403, 'setup_needed'])
    }
  })

  test('no endpoint of /api/web/* answers', async () => {
    for (const path of ['web/me', 'web/users', 'web/settings', 'web/nothing']) {
      expect([path, (await asAnonymous('GET', path)).status]).toEqual([path, 401])
    }
  })

  const wrongTokens: readonly (readonly [string, () => Promise<string>])[] = [
    ['no token', async () => ''],
    ['a guess', async () => randomBytes(16).toString('base64url')],
    ['another way to write it', async () => `${await freshToken()} `],
    ['half of it', async () => (await freshToken()).slice(0, 11)],
    [
      'one that is void',
      async () => {
        const first = await freshToken()
        await freshToken()
        return first
      },
    ],
    [
      'what is kept of it',
      async () => {
        await freshToken()
        const db = openDatabase(join(harness.folder, 'weir.db'), { readonly: true })
        const { value } = db.query("SELECT value FROM setting WHERE name = 'setup_token'").get() as { value: string }
        db.close()
        return (JSON.parse(value) as { digest: string }).digest
      },
    ],
  ]
  test.each(wrongTokens)('%s makes nobody the owner', async (_, make) => {
    const { status, error } = await setUp(await make())
    expect([status, error.code]).toEqual([403, 'setup_refused'])
    expect(people()).toEqual([])
  })

  test('a set-up token is valid for an hour', async () => {
    const token = await freshToken()
    clock.aheadMs += HOUR_MS
    expect((await setUp(token)).error.code).toBe('setup_refused')
    expect(people()).toEqual([])
  })

  test('guesses are slowed down, and cost no password hash', async () => {
    const guesses = await Promise.all(Array.from({ length: 60 }, () => setUp(randomBytes(16).toString('base64url'))))
    const codes = guesses.map(({ error }) => error.code)
    expect(codes.filter(code => code === 'setup_refused').length).toBeLessThanOrEqual(20)
    expect(codes.filter(code => code === 'tried_too_often').length).toBeGreaterThanOrEqual(40)
    const late = guesses.find(({ error }) => error.code === 'tried_too_often')
    expect(late!.headers.get('retry-after')).toMatch(/^\d+$/)
    clock.aheadMs += HOUR_MS
  })

  test('a refused password does not use up the token', async () => {
    const token = await freshToken()
    for (const password of ['short', 'aaaaaaaaaaaaaaa', 'password1234', 'owner@example.com']) {
      const { status, error } = await asAnonymous('POST', 'auth/setup', { ...owner(token), password })
      expect([status, error.code, error.param]).toEqual([400, 'password_weak', 'password'])
    }
    expect((await asAnonymous('POST', 'auth/setup', { ...owner(token), role: 'owner' })).error.code).toBe(
      'field_unknown',
    )
  })

  test('of many with the right token at once, one becomes the owner', async () => {
    const token = await freshToken()
    const answers = await Promise.all(Array.from({ length: 12 }, (_, at) => setUp(token, `owner-${at}@example.com`)))
    const statuses = answers.map(({ status }) => status).sort()
    expect(statuses.filter(status => status === 201)).toHaveLength(1)
    expect(statuses.filter(status => status !== 201 && status !== 409 && status !== 503)).toEqual([])
    expect(people()).toHaveLength(1)
  })

  test('after set-up the token is invalid, and another one does nothing', async () => {
    expect((await asAnonymous('GET', 'auth/setup')).body).toEqual({ needed: false })
    const db = openDatabase(join(harness.folder, 'weir.db'), { readonly: true })
    expect(db.query("SELECT * FROM setting WHERE name = 'setup_token'").get()).toBeNull()
    db.close()
    expect((await setUp(randomBytes(16).toString('base64url'))).error.code).toBe('state_unfit')
    await expect(harness.weir('setup', { token: true })).rejects.toThrow('There is an owner already')
    const registration = { email: 'two@example.com', name: 'Two', password: goodPassword }
    await expect(harness.manage('POST', '/machine/setup-owner', registration)).rejects.toThrow(
      'There is an owner already',
    )
    expect(people()).toHaveLength(1)
  })
})

/** Endpoints are built with parts that only their answers use. */
const harnessParts = () => ({ nowMs: () => 0 }) as unknown as Parameters<typeof buildWebEndpoints>[0]

describe('the owner becomes the manager of', () => {
  test('the account of the key that the first start has created, if that is the only account', async () => {
    await startFresh()
    const key = await harness.key()
    const person = personOf(harness, await setUp(await freshToken()))
    const { id: account } = (await harness.weir('balance', { account: key })) as { id: string }
    const { accounts } = (await person.ask('GET', 'web/me')).body
    expect(accounts).toEqual([{ account, name: 'unnamed', role: 'manager' }])
    await harness.stop()
  })

  test('an account of their own, if there are others', async () => {
    await startFresh()
    await harness.key()
    await harness.key()
    const created = await harness.manage('POST', '/machine/setup-owner', {
      email: 'o@example.com',
      password: goodPassword,
    })
    expect(created).toMatchObject({ owner: expect.stringMatching(/^usr_/), email: 'o@example.com' })
    const signed = await asAnonymous('POST', 'auth/sign-in', { email: 'o@example.com', password: goodPassword })
    const { accounts } = (await personOf(harness, signed).ask('GET', 'web/me')).body as { accounts: { name: string }[] }
    expect(accounts.map(({ name }) => name)).toEqual(['o'])
    await harness.stop()
  })
})
