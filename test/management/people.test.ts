// People and their roles: nobody raises their own role, nobody grants more than they have, and there is always an
// owner.

import { afterAll, beforeAll, describe, expect, spyOn, test } from 'bun:test'
import { parseTextId } from '../../src/base/ids.ts'
import { PasswordHasher } from '../../src/identity/password-hasher.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import type { ApiAnswer, Ask } from '../support/management.ts'
import { askAs } from '../support/management.ts'
import type { Person } from '../support/people.ts'
import { addPerson, goodPassword, personOf, setUpOwner, signedIn, signIn } from '../support/people.ts'

const clock = { aheadMs: 0 }
const world = { clock: { nowMs: () => performance.now() + clock.aheadMs, dateMs: () => Date.now() + clock.aheadMs } }
const DAY_MS = 86_400_000

let harness: Harness
let asAnonymous: Ask
let owner: Person
let admin: Person
let support: Person

beforeAll(async () => {
  harness = await startHarness({ world })
  asAnonymous = askAs(harness, undefined)
  owner = await setUpOwner(harness)
  admin = await addPerson(harness, owner.ask, { role: 'admin' })
  support = await addPerson(harness, owner.ask, { role: 'support' })
})
afterAll(() => harness.stop())

const accountOf = async ({ ask }: Person): Promise<string> =>
  ((await ask('GET', 'web/me')).body.accounts as { account: string }[])[0]!.account
const statusAndCode = ({ status, error }: ApiAnswer) => [status, error.code]

describe('the list of people', () => {
  test('is for staff of the site', async () => {
    const member = await addPerson(harness, owner.ask)
    for (const { ask } of [owner, admin, support]) {
      const { status, body } = await ask('GET', `web/users?email=${member.email}`)
      expect([status, (body.data as { id: string }[]).map(({ id }) => id)]).toEqual([200, [member.id]])
    }
    expect(statusAndCode(await member.ask('GET', 'web/users'))).toEqual([403, 'role_too_low'])
    expect(statusAndCode(await member.ask('GET', `web/users/${owner.id}`))).toEqual([403, 'role_too_low'])
    expect((await asAnonymous('GET', 'web/users')).status).toBe(401)
  })

  test('holds no hash and no digest', async () => {
    const { text } = await owner.ask('GET', 'web/users')
    expect(text).not.toMatch(/argon|password|digest|sealed|"ver"/)
  })

  test('treats a search text literally', async () => {
    for (const text of ['%', '_', "'", '\\', '%25', '" OR 1=1']) {
      const { status, body } = await owner.ask('GET', `web/users?email=${encodeURIComponent(text)}`)
      expect([status, body.data]).toEqual([200, []])
    }
  })
})

describe('nobody raises their own role', () => {
  test('through their own profile', async () => {
    const member = await addPerson(harness, owner.ask)
    for (const field of ['role', 'disabled', 'ver', 'id', 'password', 'accounts']) {
      expect(statusAndCode(await member.ask('PATCH', 'web/me', { [field]: 'owner' }))).toEqual([400, 'field_unknown'])
    }
    expect((await member.ask('PATCH', 'web/me', { name: 'Another' })).body).toMatchObject({ name: 'Another' })
  })

  test('through the list of people', async () => {
    const member = await addPerson(harness, owner.ask)
    for (const { ask, id } of [member, support]) {
      expect(statusAndCode(await ask('PATCH', `web/users/${id}`, { role: 'owner' }))).toEqual([403, 'role_too_low'])
    }
    for (const { ask, id } of [admin, owner]) {
      for (const change of [{ role: 'owner' }, { role: 'member' }, { disabled: true }]) {
        expect(statusAndCode(await ask('PATCH', `web/users/${id}`, change))).toEqual([403, 'role_too_low'])
      }
      expect(statusAndCode(await ask('DELETE', `web/users/${id}`))).toEqual([403, 'role_too_low'])
    }
  })

  test('and admins neither change nor create owners', async () => {
    const member = await addPerson(harness, owner.ask)
    expect(statusAndCode(await admin.ask('PATCH', `web/users/${member.id}`, { role: 'owner' }))).toEqual([
      403,
      'role_too_low',
    ])
    for (const change of [{ name: 'x' }, { role: 'member' }, { disabled: true }]) {
      expect(statusAndCode(await admin.ask('PATCH', `web/users/${owner.id}`, change))).toEqual([403, 'role_too_low'])
    }
    expect(statusAndCode(await admin.ask('DELETE', `web/users/${owner.id}`))).toEqual([403, 'role_too_low'])
    expect(statusAndCode(await admin.ask('POST', `web/users/${owner.id}/password-reset`))).toEqual([
      403,
      'role_too_low',
    ])
    const invited = await admin.ask('POST', 'web/invitations', { email: 'x@example.com', role: 'owner' })
    expect(statusAndCode(invited)).toEqual([403, 'role_too_low'])
    expect((await admin.ask('PATCH', `web/users/${member.id}`, { role: 'admin' })).body.role).toBe('admin')
  })
})

describe('there is always an owner', () => {
  test('the last one cannot be demoted, disabled or removed by anybody', async () => {
    const cli = async (name: string, input: Record<string, unknown>) =>
      harness.weir(name, { user: owner.email, ...input }).then(String, (fault: Error) => fault.message)
    expect(await cli('users role', { role: 'member' })).toContain('There must be an owner')
    expect(await cli('users disable', {})).toContain('There must be an owner')
    const byOperator = askAs(harness, String((await harness.weir('token')).token))
    for (const change of [{ role: 'admin' }, { disabled: true }]) {
      expect(statusAndCode(await byOperator('PATCH', `web/users/${owner.id}`, change))).toEqual([409, 'last_owner'])
    }
    expect(statusAndCode(await byOperator('DELETE', `web/users/${owner.id}`))).toEqual([409, 'last_owner'])
  })

  test('even when many owners remove each other at once', async () => {
    const ownHarness = await startHarness()
    const first = await setUpOwner(ownHarness)
    const otherOwners = await Promise.all([1, 2, 3, 4].map(() => addPerson(ownHarness, first.ask, { role: 'owner' })))
    const owners = [first, ...otherOwners]
    const ways = [
      ['PATCH', { role: 'member' }],
      ['PATCH', { disabled: true }],
      ['DELETE', undefined],
    ] as const
    const requests = owners.flatMap((actor, at) =>
      owners
        .filter(target => target !== actor)
        .map((other, way) => {
          const [method, body] = ways[(at + way) % ways.length]!
          return actor.ask(method, `web/users/${other.id}`, body)
        }),
    )
    await Promise.all(requests)
    const byOperator = askAs(ownHarness, String((await ownHarness.weir('token')).token))
    expect((await byOperator('GET', 'web/users?role=owner&disabled=false')).body.data).toHaveLength(1)
    await ownHarness.stop()
  })
})

describe('a person', () => {
  test('can be removed whoever is invited', async () => {
    const member = await addPerson(harness, owner.ask)
    for (const email of [`removed-${member.id}@invalid`, `removed-${parseTextId('usr', member.id)}@invalid`])
      await addPerson(harness, owner.ask, { email })
    expect((await owner.ask('DELETE', `web/users/${member.id}`)).status).toBe(204)
    expect((await owner.ask('GET', `web/users/${member.id}`)).body.removed).toBe(true)
  })

  test('who is removed is gone except for their audit rows, and their address is free', async () => {
    const member = await addPerson(harness, owner.ask)
    expect((await owner.ask('DELETE', `web/users/${member.id}`)).status).toBe(204)
    const { body } = await owner.ask('GET', `web/users/${member.id}`)
    expect(body).toMatchObject({ name: 'removed', disabled: true, removed: true, accounts: 0 })
    expect((await owner.ask('GET', `web/users?email=${member.email}`)).body.data).toEqual([])
    const back = await owner.ask('PATCH', `web/users/${member.id}`, { disabled: false })
    expect(statusAndCode(back)).toEqual([404, 'resource_unknown'])
    const log = await owner.ask('GET', 'web/audit-log?limit=200')
    expect(log.text).not.toContain(member.email)
    expect((await addPerson(harness, owner.ask, { email: member.email })).id).not.toBe(member.id)
  })

  test('who is removed leaves no name behind, also not in the audit log', async () => {
    const { token } = (await owner.ask('POST', 'web/invitations', { email: 'leaver@example.com' })).body
    const joining = { token, name: 'Zebulon Quux', password: goodPassword }
    const person = personOf(harness, await asAnonymous('POST', 'auth/invitation', joining))
    const account = await accountOf(person)
    await person.ask('PATCH', `web/accounts/${account}`, { name: 'Zebulon and others' })
    const guest = await addPerson(harness, owner.ask, { members: [{ account, role: 'manager' }] })
    const key = (await person.ask('POST', `web/accounts/${account}/playground-key`, {})).body.id
    await person.ask('PATCH', 'web/me', { name: 'Zebulon II' })
    const ofOther = await accountOf(await addPerson(harness, owner.ask))
    const otherName = (await owner.ask('GET', `web/accounts/${ofOther}`)).body.name
    // Also if the person has left the account before.
    expect((await guest.ask('DELETE', `web/accounts/${account}/members/${person.id}`)).status).toBe(204)
    expect((await owner.ask('DELETE', `web/users/${person.id}`)).status).toBe(204)
    expect((await guest.ask('GET', `web/accounts/${account}`)).body.name).toBe(`account of ${person.id}`)
    expect((await owner.ask('GET', `web/accounts/${ofOther}`)).body.name).toBe(otherName)
    expect((await owner.ask('GET', `web/keys/${String(key)}`)).body.name).toBe(`playground of ${person.id}`)
    const renamed = await owner.ask('GET', `web/audit-log?target=${account}&action=setAccount`)
    expect(renamed.body.data).toMatchObject([{ actor: person.id, changes: { changed: ['name'] } }])
    const lists = ['audit-log?raw=true', 'accounts', 'users', 'invitations', `accounts/${account}/members`]
    for (const list of lists) {
      const answer = await owner.ask('GET', `web/${list}${list.includes('?') ? '&' : '?'}limit=200`)
      expect([list, answer.status, answer.text.includes('Zebulon')]).toEqual([list, 200, false])
    }
  })

  test('is not changed by somebody who read another version', async () => {
    const member = await addPerson(harness, owner.ask)
    const etag = (await owner.ask('GET', `web/users/${member.id}`)).headers.get('etag')!
    expect((await owner.ask('PATCH', `web/users/${member.id}`, { name: 'A' }, { 'if-match': etag })).status).toBe(200)
    const stale = await owner.ask('PATCH', `web/users/${member.id}`, { name: 'B' }, { 'if-match': etag })
    expect(statusAndCode(stale)).toEqual([412, 'version_stale'])
  })
})

describe('the preferences of a person', () => {
  const none = { language: null, zone: null, theme: null, density: null }
  const me = async ({ ask }: Person): Promise<ApiAnswer> => ask('GET', 'web/me')

  test('are their own, change one by one, and change the version', async () => {
    const person = await addPerson(harness, owner.ask)
    expect((await me(person)).body.preferences).toEqual(none)
    const set = (preferences: object): Promise<ApiAnswer> => person.ask('PATCH', 'web/me', { preferences })
    const first = await set({ theme: 'dark', zone: 'Asia/Kolkata' })
    expect(first.body.preferences).toEqual({ ...none, theme: 'dark', zone: 'Asia/Kolkata' })
    const second = await set({ theme: null, language: 'zh' })
    expect(second.body.preferences).toEqual({ ...none, zone: 'Asia/Kolkata', language: 'zh' })
    expect([first.headers.get('etag'), second.headers.get('etag')]).toEqual(['"2"', '"3"'])
    expect((await me(person)).body).toEqual(second.body)
    expect((await me(admin)).body.preferences).toEqual(none)
  })

  test('are a few known values', async () => {
    const bad: readonly object[] = [{ theme: 'pink' }, { zone: 'x' }, { language: 'fr' }, { density: 1 }]
    for (const preferences of bad) {
      const answer = await admin.ask('PATCH', 'web/me', { preferences })
      expect([preferences, answer.status, answer.error.code]).toEqual([preferences, 400, 'field_invalid'])
    }
    const other = await admin.ask('PATCH', 'web/me', { preferences: { color: 'red' } })
    expect([other.status, other.error.code, other.error.param]).toEqual([400, 'field_unknown', 'preferences.color'])
  })
})

describe('for staff, a person', () => {
  test('has the accounts of which they are a member, with their roles', async () => {
    const team = (await owner.ask('POST', 'web/accounts', { name: 'Looked-after team' })).body.id as string
    const person = await addPerson(harness, owner.ask)
    clock.aheadMs++ // the list is in the order of time, which two memberships of one millisecond do not have
    await owner.ask('POST', `web/accounts/${team}/members`, { user: person.id, role: 'developer' })
    const { status, body } = await support.ask('GET', `web/users/${person.id}/accounts`)
    const rows = body.data as Record<string, unknown>[]
    expect([status, rows.map(({ type, role }) => [type, role])]).toEqual([
      200,
      [
        ['personal', 'manager'],
        ['team', 'developer'],
      ],
    ])
    expect(rows[1]).toMatchObject({ account: team, name: 'Looked-after team', version: expect.any(Number) })
    const second = await support.ask('GET', `web/users/${person.id}/accounts?sort=-added&limit=1`)
    expect((second.body.data as { account: string }[]).map(({ account }) => account)).toEqual([team])
    expect((await support.ask('GET', 'web/users/usr_00000000009/accounts')).status).toBe(404)
  })

  test('has sessions, which admins can end, one or all; and the audit log says who did', async () => {
    const person = await addPerson(harness, owner.ask)
    const others = [await signedIn(harness, person.email), await signedIn(harness, person.email)]
    const isIn = async ({ ask }: Person): Promise<boolean> => (await ask('GET', 'web/me')).status === 200
    const path = `web/users/${person.id}/sessions`
    const rows = (await support.ask('GET', `${path}?ended=false`)).body.data as { id: string; current: boolean }[]
    expect(rows.map(({ current }) => current)).toEqual([false, false, false])
    expect(statusAndCode(await support.ask('DELETE', path))).toEqual([403, 'role_too_low'])
    expect((await admin.ask('DELETE', `${path}/${rows[0]!.id}`)).status).toBe(204)
    expect([await isIn(person), await isIn(others[0]!), await isIn(others[1]!)]).toEqual([true, true, false])
    expect((await admin.ask('DELETE', path)).body).toEqual({ ended: 2 })
    expect([await isIn(person), await isIn(others[0]!)]).toEqual([false, false])
    const audited = await owner.ask('GET', `web/audit-log?target=${person.id}&action=endSessions`)
    const [all, one] = audited.body.data as { actor: string; changes: object }[]
    expect([all!.actor, all!.changes]).toEqual([admin.id, { why: 'revoked', sessions: 2 }])
    expect([one!.actor, one!.changes]).toMatchObject([admin.id, { session: rows[0]!.id }])
    // A session of somebody else is not found under this person, and those of owners are not for admins.
    const ofAdmin = (await owner.ask('GET', `web/users/${admin.id}/sessions`)).body.data as { id: string }[]
    expect((await admin.ask('DELETE', `${path}/${ofAdmin[0]!.id}`)).status).toBe(404)
    expect(statusAndCode(await admin.ask('DELETE', `web/users/${owner.id}/sessions`))).toEqual([403, 'role_too_low'])
    expect([await isIn(owner), await isIn(admin)]).toEqual([true, true])
  })
})

describe('members of an account', () => {
  test('are visible to its members, and to nobody else', async () => {
    const manager = await addPerson(harness, owner.ask)
    const account = await accountOf(manager)
    const viewer = await addPerson(harness, owner.ask, { members: [{ account, role: 'viewer' }] })
    const outsider = await addPerson(harness, owner.ask)
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
    expect(statusAndCode(await outsider.ask('GET', path))).toEqual([404, 'resource_unknown'])
    const raised = await outsider.ask('PATCH', `${path}/${viewer.id}`, { role: 'manager' })
    expect(statusAndCode(raised)).toEqual([404, 'resource_unknown'])
    expect(statusAndCode(await outsider.ask('DELETE', `${path}/${viewer.id}`))).toEqual([404, 'resource_unknown'])
    expect(statusAndCode(await outsider.ask('POST', path, { user: outsider.id, role: 'viewer' }))).toEqual([
      403,
      'role_too_low',
    ])
  })

  test('are changed by its managers; a member may leave, but not raise their role', async () => {
    const manager = await addPerson(harness, owner.ask)
    const account = await accountOf(manager)
    const path = `web/accounts/${account}/members`
    const developer = await addPerson(harness, owner.ask, { members: [{ account, role: 'developer' }] })
    const raised = await developer.ask('PATCH', `${path}/${developer.id}`, { role: 'manager' })
    expect(statusAndCode(raised)).toEqual([403, 'role_too_low'])
    expect(statusAndCode(await developer.ask('DELETE', `${path}/${manager.id}`))).toEqual([403, 'role_too_low'])
    expect(statusAndCode(await support.ask('PATCH', `${path}/${developer.id}`, { role: 'viewer' }))[0]).toBeGreaterThan(
      400,
    )
    expect((await manager.ask('PATCH', `${path}/${developer.id}`, { role: 'viewer' })).body.role).toBe('viewer')
    expect((await developer.ask('DELETE', `${path}/${developer.id}`)).status).toBe(204)
    expect((await developer.ask('GET', path)).status).toBe(404)
    expect((await admin.ask('POST', path, { user: developer.id, role: 'manager' })).status).toBe(201)
    expect(statusAndCode(await admin.ask('POST', path, { user: developer.id, role: 'viewer' }))).toEqual([
      409,
      'name_taken',
    ])
    expect((await developer.ask('DELETE', `${path}/${manager.id}`)).status).toBe(204)
  })

  test('do not change their own role, also not managers and staff', async () => {
    const manager = await addPerson(harness, owner.ask)
    const account = await accountOf(manager)
    const path = `web/accounts/${account}/members`
    expect((await admin.ask('POST', path, { user: admin.id, role: 'manager' })).status).toBe(201)
    const ofSite = await admin.ask('PATCH', `web/users/${admin.id}`, { role: 'member' })
    expect(statusAndCode(ofSite)).toEqual([403, 'role_too_low'])
    for (const { ask, id } of [manager, admin]) {
      const answer = await ask('PATCH', `${path}/${id}`, { role: 'viewer' })
      expect([answer.status, answer.error]).toEqual([ofSite.status, ofSite.error])
    }
    const roles = (await admin.ask('GET', path)).body.data as { role: string }[]
    expect(roles.map(({ role }) => role)).toEqual(['manager', 'manager'])
  })
})

describe('an invitation', () => {
  const accept = (token: unknown, more = {}) =>
    asAnonymous('POST', 'auth/invitation', { token, name: 'New', password: goodPassword, ...more })

  test('works once, for its address and role, and its token is not stored', async () => {
    const created = await owner.ask('POST', 'web/invitations', { email: 'New@Example.com', role: 'support' })
    expect(created.body).toMatchObject({ email: 'new@example.com', role: 'support', state: 'open' })
    const { token, id } = created.body as { token: string; id: string }
    expect((await accept(token, { email: 'other@example.com' })).error.code).toBe('field_unknown')
    expect((await accept(token, { role: 'owner' })).error.code).toBe('field_unknown')
    const both = await Promise.all([accept(token), accept(token)])
    expect(both.map(({ status }) => status).filter(status => status === 201)).toHaveLength(1)
    expect(statusAndCode(await accept(token))).toEqual([400, 'invitation_invalid'])
    const { data } = (await owner.ask('GET', 'web/invitations?email=new@example.com')).body
    expect(data).toMatchObject([{ id, state: 'accepted' }])
    expect(JSON.stringify(data)).not.toContain(token)
    expect((await owner.ask('GET', 'web/audit-log')).text).not.toContain(token)
    expect(harness.logs.join('')).not.toContain(token)
  })

  test('can be looked at before it is accepted, which does not use it up', async () => {
    const account = await accountOf(owner)
    const wanted = { email: 'looked@example.com', role: 'member', account, accountRole: 'developer' }
    const { token, expires } = (await owner.ask('POST', 'web/invitations', wanted)).body
    const look = (secret: unknown): Promise<ApiAnswer> => asAnonymous('POST', 'auth/invitation/look', { token: secret })
    const shown = {
      ...{ kind: 'join', email: 'looked@example.com', site: 'Weir', role: 'member', account: 'Olga Owner' },
      ...{ accountRole: 'developer', expires },
    }
    expect([(await look(token)).body, (await look(token)).body]).toEqual([shown, shown])
    const accepted = { token, name: 'Looked', password: goodPassword }
    expect((await asAnonymous('POST', 'auth/invitation', accepted)).status).toBe(201)
    const toSite = await owner.ask('POST', 'web/invitations', { email: admin.email, role: 'member' })
    expect((await look(toSite.body.token)).body).toMatchObject({ account: null, accountRole: null })
    const reset = await owner.ask('POST', `web/users/${support.id}/password-reset`)
    expect((await look(reset.body.token)).body).toMatchObject({ kind: 'password', email: support.email })
    // Used, revoked and unknown ones have the same answer.
    await owner.ask('DELETE', `web/invitations/${toSite.body.id as string}`)
    const answers = await Promise.all([token, toSite.body.token, 'x'.repeat(43), ''].map(look))
    for (const answer of answers) expect(statusAndCode(answer)).toEqual([400, 'invitation_invalid'])
    expect(new Set(answers.map(({ text }) => text.replace(/req_\w+/g, 'req'))).size).toBe(1)
  })

  test('does not tell the manager who makes it whether somebody has the address', async () => {
    const manager = await addPerson(harness, owner.ask)
    const account = await accountOf(manager)
    const [taken, free] = [(await addPerson(harness, owner.ask)).email, 'free-address@example.com']
    /** All that a manager gets to see of an invitation, without what differs by chance. */
    async function seenOf(email: string): Promise<string> {
      const invited = await manager.ask('POST', 'web/invitations', { email, account, accountRole: 'developer' })
      const weak = { token: invited.body.token, name: 'x', password: 'short' }
      const seen = [
        invited,
        await asAnonymous('POST', 'auth/invitation/look', { token: invited.body.token }),
        await asAnonymous('POST', 'auth/invitation', weak),
        await manager.ask('POST', 'web/invitations/accept', { token: invited.body.token }),
        await manager.ask('GET', `web/invitations?email=${email}`),
        await manager.ask('GET', `web/audit-log?account=${account}&limit=1`),
      ]
      expect(seen.slice(0, 2).map(({ status }) => status)).toEqual([201, 200])
      return seen
        .map(({ status, text }) => `${status} ${text}`)
        .join('\n')
        .replaceAll(email, 'address')
        .replace(/"\d{4}-\d\d-\d\dT[^"]+"/g, 'time')
        .replace(/\b(?:inv|req)_\w+/g, 'id')
        .replace(/"(?:seq|hash|next)":[^,}]+/g, 'entry')
        .replaceAll(String(invited.body.token), 'token')
    }
    expect(await seenOf(taken)).toBe(await seenOf(free))
  })

  test('cannot be accepted again and again by a manager who looks for addresses that are taken', async () => {
    const manager = await addPerson(harness, owner.ask)
    const account = await accountOf(manager)
    const tokenFor = async (email: string): Promise<unknown> =>
      (await manager.ask('POST', 'web/invitations', { email, account, accountRole: 'viewer' })).body.token
    const taken = await tokenFor(support.email)
    let answer = await accept(taken)
    for (let tried = 1; answer.status === 409 && tried < 20; tried++) answer = await accept(taken)
    expect(statusAndCode(answer)).toEqual([429, 'tried_too_often'])
    // Otherwise a refusal would mean that somebody has the address.
    expect(statusAndCode(await accept(await tokenFor('nobody-yet@example.com')))).toEqual([429, 'tried_too_often'])
    const other = await owner.ask('POST', 'web/invitations', { email: 'other-account@example.com' })
    expect((await accept(other.body.token)).status).toBe(201)
  })

  test('that is too old has the answer of an unknown one, and guesses are slowed down', async () => {
    const { token } = (await owner.ask('POST', 'web/invitations', { email: 'late@example.com', role: 'member' })).body
    clock.aheadMs += 8 * DAY_MS
    owner = await signedIn(harness, owner.email)
    admin = await signedIn(harness, admin.email)
    support = await signedIn(harness, support.email)
    const look = (secret: unknown): Promise<ApiAnswer> => asAnonymous('POST', 'auth/invitation/look', { token: secret })
    const [late, unknown] = [await look(token), await look('y'.repeat(43))]
    expect([statusAndCode(late), late.text.length]).toEqual([statusAndCode(unknown), unknown.text.length])
    let answer = unknown
    for (let tried = 0; answer.status !== 429 && tried < 40; tried++) answer = await look('z'.repeat(43))
    expect(answer.error.code).toBe('tried_too_often')
    clock.aheadMs += 3_600_000
    owner = await signedIn(harness, owner.email)
    admin = await signedIn(harness, admin.email)
    support = await signedIn(harness, support.email)
  })

  test('does not work when it was revoked or is too old', async () => {
    const created = (await owner.ask('POST', 'web/invitations', { email: 'gone@example.com' })).body
    expect((await owner.ask('DELETE', `web/invitations/${String(created.id)}`)).status).toBe(204)
    expect((await accept(created.token)).error.code).toBe('invitation_invalid')
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
    expect(statusAndCode(await invite({}))).toEqual([403, 'role_too_low'])
    expect(statusAndCode(await invite({ role: 'support', account, accountRole: 'viewer' }))).toEqual([
      403,
      'role_too_low',
    ])
    expect(statusAndCode(await invite({ account: foreign, accountRole: 'viewer' }))).toEqual([404, 'resource_unknown'])
    expect(statusAndCode(await invite({ account }))).toEqual([400, 'field_invalid'])
    const created = await invite({ account, accountRole: 'manager' })
    expect(created.status).toBe(201)
    expect((await manager.ask('GET', 'web/invitations')).body.data).toMatchObject([{ id: created.body.id }])
    const viewer = await addPerson(harness, owner.ask, { members: [{ account, role: 'developer' }] })
    const asViewer = { email: 'v@example.com', account, accountRole: 'viewer' }
    expect(statusAndCode(await viewer.ask('POST', 'web/invitations', asViewer))).toEqual([403, 'role_too_low'])
    expect((await viewer.ask('GET', 'web/invitations')).body.data).toEqual([])
    expect((await viewer.ask('DELETE', `web/invitations/${String(created.body.id)}`)).status).toBe(404)
  })

  test('does not work when its creator may not grant it any more', async () => {
    const second = await addPerson(harness, owner.ask, { role: 'admin' })
    const created = (await second.ask('POST', 'web/invitations', { email: 'late@example.com', role: 'admin' })).body
    const member = await addPerson(harness, owner.ask)
    const reset = (await second.ask('POST', `web/users/${member.id}/password-reset`)).body
    expect([await look(created.token), await look(reset.token)]).toEqual([200, 200])
    await owner.ask('PATCH', `web/users/${second.id}`, { role: 'member' })
    expect([await look(created.token), await look(reset.token)]).toEqual([400, 400])
    expect([await stateOf(created.id), await stateOf(reset.id)]).toEqual(['invalid', 'invalid'])
    expect((await accept(created.token)).error.code).toBe('invitation_invalid')
    const manager = await addPerson(harness, owner.ask)
    const account = await accountOf(manager)
    const invitation = { email: 'late2@example.com', account, accountRole: 'manager' }
    const another = (await manager.ask('POST', 'web/invitations', invitation)).body
    await owner.ask('PATCH', `web/users/${manager.id}`, { disabled: true })
    expect((await accept(another.token)).error.code).toBe('invitation_invalid')
  })

  const stateOf = async (id: unknown): Promise<string | undefined> =>
    ((await owner.ask('GET', 'web/invitations?limit=200')).body.data as { id: string; state: string }[]).find(
      row => row.id === id,
    )?.state
  const look = async (token: unknown): Promise<number> =>
    (await asAnonymous('POST', 'auth/invitation/look', { token })).status

  test('ends older ones of the same address to the same account, or to the site', async () => {
    const account = await accountOf(owner)
    const other = (await owner.ask('POST', 'web/accounts', { name: 'Another team' })).body.id
    const email = 'sent-again@example.com'
    const invite = async (body: object): Promise<Record<string, unknown>> =>
      (await owner.ask('POST', 'web/invitations', { email, ...body })).body
    const toAccount = await invite({ account, accountRole: 'manager' })
    const toOther = await invite({ account: other, accountRole: 'viewer' })
    const toSite = await invite({ role: 'admin' })
    const elsewhere = await invite({ email: 'sent-once@example.com', account, accountRole: 'viewer' })
    const again = [await invite({ account, accountRole: 'viewer' }), await invite({})]
    for (const { id, token } of [toAccount, toSite]) {
      expect([await stateOf(id), await look(token)]).toEqual(['revoked', 400])
      expect(statusAndCode(await accept(token))).toEqual([400, 'invitation_invalid'])
    }
    for (const { id, token } of [toOther, elsewhere, ...again]) {
      expect([await stateOf(id), await look(token)]).toEqual(['open', 200])
    }
    const [row] = (await owner.ask('GET', `web/audit-log?target=${String(again[0]!.id)}`)).body.data as object[]
    expect(row).toMatchObject({ action: 'invite', changes: { endedInvitations: 1 } })
  })

  const losses: readonly (readonly [how: string, lose: (path: string, person: Person) => Promise<ApiAnswer>])[] = [
    ['by being removed', (path, { id }) => admin.ask('DELETE', `${path}/${id}`)],
    ['by leaving', (path, { id, ask }) => ask('DELETE', `${path}/${id}`)],
    ['by a lower one', (path, { id }) => admin.ask('PATCH', `${path}/${id}`, { role: 'viewer' })],
  ]
  test.each(losses)('does not give back a role that was lost %s', async (_, lose) => {
    const account = (await owner.ask('POST', 'web/accounts', { name: 'A team' })).body.id as string
    const manager = await addPerson(harness, owner.ask, { members: [{ account, role: 'manager' }] })
    const guest = await addPerson(harness, owner.ask, { members: [{ account, role: 'developer' }] })
    const invitation = { email: guest.email, account, accountRole: 'manager' }
    const { id, token } = (await manager.ask('POST', 'web/invitations', invitation)).body
    const elsewhere = { ...invitation, account: await accountOf(owner) }
    const other = (await owner.ask('POST', 'web/invitations', elsewhere)).body
    expect((await lose(`web/accounts/${account}/members`, guest)).status).toBeLessThan(300)
    expect([await stateOf(id), await look(token)]).toEqual(['revoked', 400])
    const accepted = await guest.ask('POST', 'web/invitations/accept', { token })
    expect(statusAndCode(accepted)).toEqual([400, 'invitation_invalid'])
    const members = (await manager.ask('GET', `web/accounts/${account}/members`)).body.data as { role: string }[]
    expect(members.filter(({ role }) => role === 'manager')).toHaveLength(1)
    expect((await guest.ask('POST', 'web/invitations/accept', { token: other.token })).status).toBe(204)
  })

  test('stays open when the role of the person becomes higher', async () => {
    const account = (await owner.ask('POST', 'web/accounts', { name: 'A team' })).body.id as string
    const guest = await addPerson(harness, owner.ask, { members: [{ account, role: 'viewer' }] })
    const invitation = { email: guest.email, account, accountRole: 'manager' }
    const { token } = (await owner.ask('POST', 'web/invitations', invitation)).body
    await owner.ask('PATCH', `web/accounts/${account}/members/${guest.id}`, { role: 'developer' })
    expect((await guest.ask('POST', 'web/invitations/accept', { token })).status).toBe(204)
  })

  test('of a person who was removed lets nobody in', async () => {
    const account = (await owner.ask('POST', 'web/accounts', { name: 'A team' })).body.id as string
    const guest = await addPerson(harness, owner.ask)
    const invitation = { email: guest.email, account, accountRole: 'manager' }
    const { token } = (await owner.ask('POST', 'web/invitations', invitation)).body
    expect((await owner.ask('DELETE', `web/users/${guest.id}`)).status).toBe(204)
    expect([await look(token), statusAndCode(await accept(token))]).toEqual([400, [400, 'invitation_invalid']])
    expect((await owner.ask('GET', `web/accounts/${account}/members`)).body.data).toEqual([])
  })

  test('for an existing person can be accepted by that person alone', async () => {
    const [manager, guest, bystander] = [
      await addPerson(harness, owner.ask),
      await addPerson(harness, owner.ask),
      support,
    ]
    const account = await accountOf(manager)
    const invitation = { email: guest.email, account, accountRole: 'developer' }
    const { token } = (await manager.ask('POST', 'web/invitations', invitation)).body
    expect(statusAndCode(await accept(token))).toEqual([409, 'name_taken'])
    expect(statusAndCode(await bystander.ask('POST', 'web/invitations/accept', { token }))).toEqual([
      400,
      'invitation_invalid',
    ])
    expect((await guest.ask('POST', 'web/invitations/accept', { token })).status).toBe(204)
    const { accounts } = (await guest.ask('GET', 'web/me')).body as { accounts: { account: string; role: string }[] }
    expect(accounts.find(one => one.account === account)?.role).toBe('developer')
  })

  test.each(['an account', 'the site'])('to %s with a taken address hashes few passwords', async to => {
    const guest = await addPerson(harness, owner.ask)
    const account = await accountOf(owner)
    const member = to === 'an account' ? { account, accountRole: 'viewer' } : {}
    const { token } = (await owner.ask('POST', 'web/invitations', { email: guest.email, ...member })).body
    using hashes = spyOn(PasswordHasher.prototype, 'hash')
    const codes: (string | undefined)[] = []
    for (let at = 0; at < 14; at++) codes.push((await accept(token)).error.code)
    expect(codes).toEqual([...Array(10).fill('name_taken'), ...Array(4).fill('tried_too_often')])
    expect(hashes).toHaveBeenCalledTimes(10)
  })

  test('can be restricted to admins by the site', async () => {
    await owner.ask('PATCH', 'web/settings', { invitations: 'admins' })
    const manager = await addPerson(harness, owner.ask)
    const invitation = { email: 'x@example.com', account: await accountOf(manager), accountRole: 'viewer' }
    expect(statusAndCode(await manager.ask('POST', 'web/invitations', invitation))).toEqual([403, 'role_too_low'])
    await owner.ask('PATCH', 'web/settings', { invitations: null })
    expect((await manager.ask('POST', 'web/invitations', invitation)).status).toBe(201)
  })

  test('that a manager has made before is not valid while the site restricts them to admins', async () => {
    const manager = await addPerson(harness, owner.ask)
    const to = { account: await accountOf(manager), accountRole: 'viewer' }
    const made = (await manager.ask('POST', 'web/invitations', { email: 'before-it@example.com', ...to })).body
    const byAdmin = (await admin.ask('POST', 'web/invitations', { email: 'by-admin@example.com', ...to })).body
    expect([await stateOf(made.id), await look(made.token)]).toEqual(['open', 200])
    await owner.ask('PATCH', 'web/settings', { invitations: 'admins' })
    expect([await stateOf(made.id), await look(made.token)]).toEqual(['invalid', 400])
    expect(statusAndCode(await accept(made.token))).toEqual([400, 'invitation_invalid'])
    expect([await stateOf(byAdmin.id), await look(byAdmin.token)]).toEqual(['open', 200])
    expect((await accept(byAdmin.token)).status).toBe(201)
    await owner.ask('PATCH', 'web/settings', { invitations: 'managers' })
    expect([await stateOf(made.id), await look(made.token)]).toEqual(['open', 200])
    expect((await accept(made.token)).status).toBe(201)
    expect(await stateOf(made.id)).toBe('accepted')
    await owner.ask('PATCH', 'web/settings', { invitations: null })
  })
})

describe('a password or address', () => {
  test('is reset with a token of an admin, once, which ends all sessions', async () => {
    const member = await addPerson(harness, owner.ask)
    const first = (await admin.ask('POST', `web/users/${member.id}/password-reset`)).body
    const { token } = (await admin.ask('POST', `web/users/${member.id}/password-reset`)).body
    const choose = (token: unknown, password: string) =>
      asAnonymous('POST', 'auth/password', { token: token, password })
    expect((await choose(first.token, 'a password of mine')).error.code).toBe('invitation_invalid')
    const joining = { token, name: 'x', password: goodPassword }
    expect((await asAnonymous('POST', 'auth/invitation', joining)).error.code).toBe('invitation_invalid')
    expect((await choose(token, 'short')).error.code).toBe('password_weak')
    expect((await choose(token, 'a password of mine')).status).toBe(204)
    expect((await choose(token, 'a password of mine')).error.code).toBe('invitation_invalid')
    expect((await member.ask('GET', 'web/me')).status).toBe(401)
    expect((await signedIn(harness, member.email, 'a password of mine')).id).toBe(member.id)
  })

  test('ends the links by which the password could be reset', async () => {
    const support = await addPerson(harness, owner.ask, { role: 'support' })
    const currentPassword = goodPassword
    const path = `web/users/${support.id}`
    const changes = [
      () => owner.ask('PATCH', path, { email: 'first-address@example.com' }),
      () => support.ask('PATCH', 'web/me', { email: 'second-address@example.com', currentPassword }),
      () => support.ask('POST', 'web/me/password', { password: 'a password of mine', currentPassword }),
    ]
    const isOpen = async (token: unknown): Promise<boolean> =>
      (await asAnonymous('POST', 'auth/invitation/look', { token })).status === 200
    for (const change of changes) {
      const { token } = (await owner.ask('POST', `${path}/password-reset`)).body
      expect(await isOpen(token)).toBe(true)
      expect([200, 204]).toContain((await change()).status)
      expect(await isOpen(token)).toBe(false)
    }
    const { token } = (await owner.ask('POST', `${path}/password-reset`)).body
    expect((await owner.ask('PATCH', path, { name: 'Renamed', email: 'second-address@example.com' })).status).toBe(200)
    expect(await isOpen(token)).toBe(true)
  })

  test('can be changed by staff for themselves, with the current password', async () => {
    const support = await addPerson(harness, owner.ask, { role: 'support' })
    const change = (body: object) => support.ask('PATCH', 'web/me', body)
    expect(statusAndCode(await change({ email: 'moved@example.com' }))).toEqual([403, 'password_wrong'])
    const body = { email: 'Moved@example.com', currentPassword: goodPassword }
    expect(statusAndCode(await change({ ...body, currentPassword: 'not this one' }))).toEqual([403, 'password_wrong'])
    expect(statusAndCode(await change({ ...body, email: owner.email }))).toEqual([409, 'name_taken'])
    expect((await change(body)).body.email).toBe('moved@example.com')
    expect((await signIn(harness, { email: support.email, password: goodPassword })).status).toBe(401)
    expect((await signedIn(harness, 'moved@example.com')).id).toBe(support.id)
  })

  test('of a member: the answer for an address that exists is the same as for one that does not', async () => {
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
      const takenAddresses = [owner.email, member.email, removed.email]
      for (const email of takenAddresses) expect(await answer(email, password)).toEqual(free)
    }
    expect((await member.ask('GET', 'web/me')).body.name).not.toBe('Same')
  })

  test('of somebody else can be changed by an admin', async () => {
    const member = await addPerson(harness, owner.ask)
    const change = (email: string) => owner.ask('PATCH', `web/users/${member.id}`, { email })
    expect(statusAndCode(await change(owner.email))).toEqual([409, 'name_taken'])
    expect((await change('Set-By-Admin@example.com')).body.email).toBe('set-by-admin@example.com')
    expect((await signedIn(harness, 'set-by-admin@example.com')).id).toBe(member.id)
    const { id: user } = await harness.weir('users email', { user: member.id, email: 'by-cli@example.com' })
    expect(user).toBe(member.id)
    const refusal = harness.weir('users email', { user: member.id, email: owner.email })
    expect(await refusal.catch((fault: Error) => fault.message)).toBe(
      'Another person signs in with this email address.',
    )
    expect((await signedIn(harness, 'by-cli@example.com')).id).toBe(member.id)
  })
})
