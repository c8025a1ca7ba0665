// People and what they may: nobody raises themselves, nobody gives what they do not have, and there is always an owner.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import type { Ask, Told } from '../support/management.ts'
import { askAs } from '../support/management.ts'
import type { Person } from '../support/people.ts'
import { addPerson, goodPassword, setUpOwner, signedIn, signIn } from '../support/people.ts'

const clock = { aheadMs: 0 }
const world = { clock: { nowMs: () => performance.now() + clock.aheadMs, dateMs: () => Date.now() + clock.aheadMs } }
const DAY_MS = 86_400_000

let harness: Harness
let nobody: Ask
let owner: Person
let admin: Person
let support: Person

beforeAll(async () => {
  harness = await startHarness({ world })
  nobody = askAs(harness, undefined)
  owner = await setUpOwner(harness)
  admin = await addPerson(harness, owner.ask, { role: 'admin' })
  support = await addPerson(harness, owner.ask, { role: 'support' })
})
afterAll(() => harness.stop())

const accountOf = async ({ ask }: Person): Promise<string> =>
  ((await ask('GET', 'web/me')).body.accounts as { account: string }[])[0]!.account
const told = ({ status, error }: Told) => [status, error.code]

describe('the list of people', () => {
  test('is for those who look after the site', async () => {
    const member = await addPerson(harness, owner.ask)
    for (const { ask } of [owner, admin, support]) {
      const { status, body } = await ask('GET', `web/users?email=${member.email}`)
      expect([status, (body.data as { id: string }[]).map(({ id }) => id)]).toEqual([200, [member.id]])
    }
    expect(told(await member.ask('GET', 'web/users'))).toEqual([403, 'role_too_low'])
    expect(told(await member.ask('GET', `web/users/${owner.id}`))).toEqual([403, 'role_too_low'])
    expect((await nobody('GET', 'web/users')).status).toBe(401)
  })

  test('tells no hash and no digest', async () => {
    const { text } = await owner.ask('GET', 'web/users')
    expect(text).not.toMatch(/argon|password|digest|sealed|"ver"/)
  })

  test('takes what is searched for as it is', async () => {
    for (const text of ['%', '_', "'", '\\', '%25', '" OR 1=1']) {
      const { status, body } = await owner.ask('GET', `web/users?email=${encodeURIComponent(text)}`)
      expect([status, body.data]).toEqual([200, []])
    }
  })
})

describe('nobody raises themselves', () => {
  test('over their own profile', async () => {
    const member = await addPerson(harness, owner.ask)
    for (const field of ['role', 'disabled', 'ver', 'id', 'password', 'accounts']) {
      expect(told(await member.ask('PATCH', 'web/me', { [field]: 'owner' }))).toEqual([400, 'field_unknown'])
    }
    expect((await member.ask('PATCH', 'web/me', { name: 'Another' })).body).toMatchObject({ name: 'Another' })
  })

  test('over the list of people', async () => {
    const member = await addPerson(harness, owner.ask)
    for (const { ask, id } of [member, support]) {
      expect(told(await ask('PATCH', `web/users/${id}`, { role: 'owner' }))).toEqual([403, 'role_too_low'])
    }
    for (const { ask, id } of [admin, owner]) {
      for (const change of [{ role: 'owner' }, { role: 'member' }, { disabled: true }]) {
        expect(told(await ask('PATCH', `web/users/${id}`, change))).toEqual([403, 'role_too_low'])
      }
      expect(told(await ask('DELETE', `web/users/${id}`))).toEqual([403, 'role_too_low'])
    }
  })

  test('admins touch no owner and make none', async () => {
    const member = await addPerson(harness, owner.ask)
    expect(told(await admin.ask('PATCH', `web/users/${member.id}`, { role: 'owner' }))).toEqual([403, 'role_too_low'])
    for (const change of [{ name: 'x' }, { role: 'member' }, { disabled: true }]) {
      expect(told(await admin.ask('PATCH', `web/users/${owner.id}`, change))).toEqual([403, 'role_too_low'])
    }
    expect(told(await admin.ask('DELETE', `web/users/${owner.id}`))).toEqual([403, 'role_too_low'])
    expect(told(await admin.ask('POST', `web/users/${owner.id}/password-reset`))).toEqual([403, 'role_too_low'])
    const invited = await admin.ask('POST', 'web/invitations', { email: 'x@example.com', role: 'owner' })
    expect(told(invited)).toEqual([403, 'role_too_low'])
    expect((await admin.ask('PATCH', `web/users/${member.id}`, { role: 'admin' })).body.role).toBe('admin')
  })
})

describe('there is always an owner', () => {
  test('the last one is not demoted, disabled or removed, by nobody', async () => {
    const cli = async (name: string, input: Record<string, unknown>) =>
      harness.weir(name, { user: owner.email, ...input }).then(String, (fault: Error) => fault.message)
    expect(await cli('users role', { role: 'member' })).toContain('There must be an owner')
    expect(await cli('users disable', {})).toContain('There must be an owner')
    const byOperator = askAs(harness, String((await harness.weir('token')).token))
    for (const change of [{ role: 'admin' }, { disabled: true }]) {
      expect(told(await byOperator('PATCH', `web/users/${owner.id}`, change))).toEqual([409, 'last_owner'])
    }
    expect(told(await byOperator('DELETE', `web/users/${owner.id}`))).toEqual([409, 'last_owner'])
  })

  test('also when many of them end each other at once', async () => {
    const own = await startHarness()
    const first = await setUpOwner(own)
    const others = await Promise.all([1, 2, 3, 4].map(() => addPerson(own, first.ask, { role: 'owner' })))
    const all = [first, ...others]
    const ways = [
      ['PATCH', { role: 'member' }],
      ['PATCH', { disabled: true }],
      ['DELETE', undefined],
    ] as const
    const asked = all.flatMap((by, at) =>
      all
        .filter(other => other !== by)
        .map((other, way) => {
          const [method, body] = ways[(at + way) % ways.length]!
          return by.ask(method, `web/users/${other.id}`, body)
        }),
    )
    await Promise.all(asked)
    const byOperator = askAs(own, String((await own.weir('token')).token))
    expect((await byOperator('GET', 'web/users?role=owner&disabled=false')).body.data).toHaveLength(1)
    await own.stop()
  })
})

describe('somebody who is removed', () => {
  test('is gone but for what they have done, and their address is free', async () => {
    const member = await addPerson(harness, owner.ask)
    expect((await owner.ask('DELETE', `web/users/${member.id}`)).status).toBe(204)
    const { body } = await owner.ask('GET', `web/users/${member.id}`)
    expect(body).toMatchObject({ name: 'removed', disabled: true, removed: true, accounts: 0 })
    expect((await owner.ask('GET', `web/users?email=${member.email}`)).body.data).toEqual([])
    const back = await owner.ask('PATCH', `web/users/${member.id}`, { disabled: false })
    expect(told(back)).toEqual([404, 'resource_unknown'])
    const log = await owner.ask('GET', 'web/audit-log?limit=200')
    expect(log.text).not.toContain(member.email)
    expect((await addPerson(harness, owner.ask, { email: member.email })).id).not.toBe(member.id)
  })

  test('a change by somebody who saw another version is refused', async () => {
    const member = await addPerson(harness, owner.ask)
    const seen = (await owner.ask('GET', `web/users/${member.id}`)).headers.get('etag')!
    expect((await owner.ask('PATCH', `web/users/${member.id}`, { name: 'A' }, { 'if-match': seen })).status).toBe(200)
    const late = await owner.ask('PATCH', `web/users/${member.id}`, { name: 'B' }, { 'if-match': seen })
    expect(told(late)).toEqual([412, 'version_stale'])
  })
})

describe('members of an account', () => {
  test('are seen by its members, and by nobody else', async () => {
    const manager = await addPerson(harness, owner.ask)
    const account = await accountOf(manager)
    const viewer = await addPerson(harness, owner.ask, { members: [{ account, role: 'viewer' }] })
    const stranger = await addPerson(harness, owner.ask)
    for (const { ask } of [manager, viewer, support, admin]) {
      const { status, body } = await ask('GET', `web/accounts/${account}/members`)
      const roles = (body.data as { user: string; role: string }[]).map(({ user, role }) => [user, role])
      expect([status, roles]).toEqual([
        200,
        [
          [manager.id, 'manager'],
          [viewer.id, 'viewer'],
        ],
      ])
    }
    const path = `web/accounts/${account}/members`
    expect(told(await stranger.ask('GET', path))).toEqual([404, 'resource_unknown'])
    const raised = await stranger.ask('PATCH', `${path}/${viewer.id}`, { role: 'manager' })
    expect(told(raised)).toEqual([404, 'resource_unknown'])
    expect(told(await stranger.ask('DELETE', `${path}/${viewer.id}`))).toEqual([404, 'resource_unknown'])
    expect(told(await stranger.ask('POST', path, { user: stranger.id, role: 'viewer' }))).toEqual([403, 'role_too_low'])
  })

  test('are changed by its managers; a member leaves, and does not rise', async () => {
    const manager = await addPerson(harness, owner.ask)
    const account = await accountOf(manager)
    const path = `web/accounts/${account}/members`
    const developer = await addPerson(harness, owner.ask, { members: [{ account, role: 'developer' }] })
    const raised = await developer.ask('PATCH', `${path}/${developer.id}`, { role: 'manager' })
    expect(told(raised)).toEqual([403, 'role_too_low'])
    expect(told(await developer.ask('DELETE', `${path}/${manager.id}`))).toEqual([403, 'role_too_low'])
    expect(told(await support.ask('PATCH', `${path}/${developer.id}`, { role: 'viewer' }))[0]).toBeGreaterThan(400)
    expect((await manager.ask('PATCH', `${path}/${developer.id}`, { role: 'viewer' })).body.role).toBe('viewer')
    expect((await developer.ask('DELETE', `${path}/${developer.id}`)).status).toBe(204)
    expect((await developer.ask('GET', path)).status).toBe(404)
    expect((await admin.ask('POST', path, { user: developer.id, role: 'manager' })).status).toBe(201)
    expect(told(await admin.ask('POST', path, { user: developer.id, role: 'viewer' }))).toEqual([409, 'name_taken'])
    expect((await developer.ask('DELETE', `${path}/${manager.id}`)).status).toBe(204)
  })
})

describe('an invitation', () => {
  const accept = (token: unknown, more = {}) =>
    nobody('POST', 'auth/invitation', { token, name: 'New', password: goodPassword, ...more })

  test('is good once, for its address and role, and its token is kept by nobody', async () => {
    const made = await owner.ask('POST', 'web/invitations', { email: 'New@Example.com', role: 'support' })
    expect(made.body).toMatchObject({ email: 'new@example.com', role: 'support', state: 'open' })
    const { token, id } = made.body as { token: string; id: string }
    expect((await accept(token, { email: 'other@example.com' })).error.code).toBe('field_unknown')
    expect((await accept(token, { role: 'owner' })).error.code).toBe('field_unknown')
    const both = await Promise.all([accept(token), accept(token)])
    expect(both.map(({ status }) => status).filter(status => status === 201)).toHaveLength(1)
    expect(told(await accept(token))).toEqual([400, 'invitation_invalid'])
    const { data } = (await owner.ask('GET', 'web/invitations?email=new@example.com')).body
    expect(data).toMatchObject([{ id, state: 'accepted' }])
    expect(JSON.stringify(data)).not.toContain(token)
    expect((await owner.ask('GET', 'web/audit-log')).text).not.toContain(token)
    expect(harness.logs.join('')).not.toContain(token)
  })

  test('is no more when it was revoked or is too old', async () => {
    const made = (await owner.ask('POST', 'web/invitations', { email: 'gone@example.com' })).body
    expect((await owner.ask('DELETE', `web/invitations/${String(made.id)}`)).status).toBe(204)
    expect((await accept(made.token)).error.code).toBe('invitation_invalid')
    const old = (await owner.ask('POST', 'web/invitations', { email: 'old@example.com', days: 1 })).body
    clock.aheadMs += DAY_MS
    owner = await signedIn(harness, owner.email)
    admin = await signedIn(harness, admin.email)
    support = await signedIn(harness, support.email)
    expect((await accept(old.token)).error.code).toBe('invitation_invalid')
    expect((await accept('x'.repeat(43))).error.code).toBe('invitation_invalid')
  })

  test('by a manager is to their account, and to nothing else', async () => {
    const manager = await addPerson(harness, owner.ask)
    const [account, foreign] = [await accountOf(manager), await accountOf(owner)]
    const invite = (body: object) => manager.ask('POST', 'web/invitations', { email: 'm@example.com', ...body })
    expect(told(await invite({}))).toEqual([403, 'role_too_low'])
    expect(told(await invite({ role: 'support', account, accountRole: 'viewer' }))).toEqual([403, 'role_too_low'])
    expect(told(await invite({ account: foreign, accountRole: 'viewer' }))).toEqual([404, 'resource_unknown'])
    expect(told(await invite({ account }))).toEqual([400, 'field_invalid'])
    const made = await invite({ account, accountRole: 'manager' })
    expect(made.status).toBe(201)
    expect((await manager.ask('GET', 'web/invitations')).body.data).toMatchObject([{ id: made.body.id }])
    const viewer = await addPerson(harness, owner.ask, { members: [{ account, role: 'developer' }] })
    const asViewer = { email: 'v@example.com', account, accountRole: 'viewer' }
    expect(told(await viewer.ask('POST', 'web/invitations', asViewer))).toEqual([403, 'role_too_low'])
    expect((await viewer.ask('GET', 'web/invitations')).body.data).toEqual([])
    expect((await viewer.ask('DELETE', `web/invitations/${String(made.body.id)}`)).status).toBe(404)
  })

  test('is worth nothing when whoever made it may not give it any more', async () => {
    const second = await addPerson(harness, owner.ask, { role: 'admin' })
    const made = (await second.ask('POST', 'web/invitations', { email: 'late@example.com', role: 'admin' })).body
    await owner.ask('PATCH', `web/users/${second.id}`, { role: 'member' })
    expect((await accept(made.token)).error.code).toBe('invitation_invalid')
    const manager = await addPerson(harness, owner.ask)
    const account = await accountOf(manager)
    const asked = { email: 'late2@example.com', account, accountRole: 'manager' }
    const another = (await manager.ask('POST', 'web/invitations', asked)).body
    await owner.ask('PATCH', `web/users/${manager.id}`, { disabled: true })
    expect((await accept(another.token)).error.code).toBe('invitation_invalid')
  })

  test('of somebody who is there is theirs to accept, and nobody else’s', async () => {
    const [manager, guest, other] = [await addPerson(harness, owner.ask), await addPerson(harness, owner.ask), support]
    const account = await accountOf(manager)
    const asked = { email: guest.email, account, accountRole: 'developer' }
    const { token } = (await manager.ask('POST', 'web/invitations', asked)).body
    expect(told(await accept(token))).toEqual([409, 'name_taken'])
    expect(told(await other.ask('POST', 'web/invitations/accept', { token }))).toEqual([400, 'invitation_invalid'])
    expect((await guest.ask('POST', 'web/invitations/accept', { token })).status).toBe(204)
    const { accounts } = (await guest.ask('GET', 'web/me')).body as { accounts: { account: string; role: string }[] }
    expect(accounts.find(one => one.account === account)?.role).toBe('developer')
  })

  test('a site can keep them to admins', async () => {
    await owner.ask('PATCH', 'web/settings', { invitations: 'admins' })
    const manager = await addPerson(harness, owner.ask)
    const asked = { email: 'x@example.com', account: await accountOf(manager), accountRole: 'viewer' }
    expect(told(await manager.ask('POST', 'web/invitations', asked))).toEqual([403, 'role_too_low'])
    await owner.ask('PATCH', 'web/settings', { invitations: null })
    expect((await manager.ask('POST', 'web/invitations', asked)).status).toBe(201)
  })
})

describe('another password', () => {
  test('is chosen with a token of an admin, once, and ends all sessions', async () => {
    const member = await addPerson(harness, owner.ask)
    const first = (await admin.ask('POST', `web/users/${member.id}/password-reset`)).body
    const { token } = (await admin.ask('POST', `web/users/${member.id}/password-reset`)).body
    const choose = (given: unknown, password: string) => nobody('POST', 'auth/password', { token: given, password })
    expect((await choose(first.token, 'a password of mine')).error.code).toBe('invitation_invalid')
    const joining = { token, name: 'x', password: goodPassword }
    expect((await nobody('POST', 'auth/invitation', joining)).error.code).toBe('invitation_invalid')
    expect((await choose(token, 'short')).error.code).toBe('password_weak')
    expect((await choose(token, 'a password of mine')).status).toBe(204)
    expect((await choose(token, 'a password of mine')).error.code).toBe('invitation_invalid')
    expect((await member.ask('GET', 'web/me')).status).toBe(401)
    expect((await signedIn(harness, member.email, 'a password of mine')).id).toBe(member.id)
  })

  test('and those who may list everybody another address, with the present password', async () => {
    const support = await addPerson(harness, owner.ask, { role: 'support' })
    const change = (body: object) => support.ask('PATCH', 'web/me', body)
    expect(told(await change({ email: 'moved@example.com' }))).toEqual([403, 'password_wrong'])
    const body = { email: 'Moved@example.com', currentPassword: goodPassword }
    expect(told(await change({ ...body, currentPassword: 'not this one' }))).toEqual([403, 'password_wrong'])
    expect(told(await change({ ...body, email: owner.email }))).toEqual([409, 'name_taken'])
    expect((await change(body)).body.email).toBe('moved@example.com')
    expect((await signIn(harness, { email: support.email, password: goodPassword })).status).toBe(401)
    expect((await signedIn(harness, 'moved@example.com')).id).toBe(support.id)
  })

  test('but a member gets the same answer for an address that is taken and for one that is not', async () => {
    const member = await addPerson(harness, owner.ask)
    const removed = await addPerson(harness, owner.ask)
    expect((await owner.ask('DELETE', `web/users/${removed.id}`)).status).toBe(204)
    const answer = async (email: string, currentPassword: string | undefined): Promise<unknown> => {
      const { status, text } = await member.ask('PATCH', 'web/me', { name: 'Same', email, currentPassword })
      return [status, text.replace(/req_\w{11}/, '')]
    }
    for (const password of [goodPassword, 'not this one', undefined]) {
      const free = await answer('nobody-has-this@example.com', password)
      expect(free).toEqual([403, expect.stringContaining('Ask an admin')])
      const others = [owner.email, member.email, removed.email]
      for (const email of others) expect(await answer(email, password)).toEqual(free)
    }
    expect((await member.ask('GET', 'web/me')).body.name).not.toBe('Same')
  })

  test('and an admin changes the address of somebody else', async () => {
    const member = await addPerson(harness, owner.ask)
    const change = (email: string) => owner.ask('PATCH', `web/users/${member.id}`, { email })
    expect(told(await change(owner.email))).toEqual([409, 'name_taken'])
    expect((await change('Set-By-Admin@example.com')).body.email).toBe('set-by-admin@example.com')
    expect((await signedIn(harness, 'set-by-admin@example.com')).id).toBe(member.id)
    const { id: user } = await harness.weir('users email', { user: member.id, email: 'by-cli@example.com' })
    expect(user).toBe(member.id)
    const taken = harness.weir('users email', { user: member.id, email: owner.email })
    expect(await taken.catch((fault: Error) => fault.message)).toBe('Another person signs in with this email address.')
    expect((await signedIn(harness, 'by-cli@example.com')).id).toBe(member.id)
  })
})
