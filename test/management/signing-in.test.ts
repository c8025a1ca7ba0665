// Signing in, going on and signing out, as a browser does.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import type { Ask } from '../support/management.ts'
import { askAs } from '../support/management.ts'
import type { Person } from '../support/people.ts'
import { addPerson, setUpOwner, signedIn } from '../support/people.ts'

let harness: Harness
let owner: Person
let nobody: Ask

beforeAll(async () => {
  harness = await startHarness()
  owner = await setUpOwner(harness)
  nobody = askAs(harness, undefined)
})
afterAll(() => harness.stop())

test('the owner is who they say, and has an account of their own', async () => {
  const { status, body } = await owner.ask('GET', 'web/me')
  expect(status).toBe(200)
  expect(body).toMatchObject({ id: owner.id, email: 'owner@example.com', name: 'Olga Owner', role: 'owner' })
  expect(body.accounts).toEqual([{ account: expect.stringMatching(/^acc_/), name: 'Olga Owner', role: 'manager' }])
})

test('somebody of each role, with memberships', async () => {
  const [first] = ((await owner.ask('GET', 'web/me')).body.accounts) as { account: string }[]
  for (const role of ['admin', 'support', 'member'] as const) {
    const person = await addPerson(harness, owner.ask, { role, members: [{ account: first!.account, role: 'viewer' }] })
    const { body } = await person.ask('GET', 'web/me')
    expect(body).toMatchObject({ id: person.id, role, accounts: [{ account: first!.account, role: 'viewer' }] })
  }
})

test('signs in again, goes on, signs out', async () => {
  const again = await signedIn(harness, 'Owner@Example.com ')
  expect((await again.ask('GET', 'web/me')).status).toBe(200)
  const gone = await nobody('POST', 'auth/sign-out', undefined, { cookie: again.cookie })
  expect(gone.status).toBe(204)
  expect((await again.ask('GET', 'web/me')).error.code).toBe('token_invalid')
  expect((await nobody('POST', 'auth/refresh', undefined, { cookie: again.cookie })).error.code).toBe('session_over')
  expect((await owner.ask('GET', 'web/me')).status).toBe(200)
})
