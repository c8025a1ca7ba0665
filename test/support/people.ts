// People for a test: signed in, in any role, members of any account. They are created through the same endpoints as
// real people: set-up, invitation, sign-in.

import type { AccountRole, SiteRole } from '../../src/management/actor.ts'
import type { Harness } from './gateway.ts'
import type { ApiAnswer, Ask } from './management.ts'
import { askAs } from './management.ts'

export const goodPassword = 'a river runs through it'

export interface Person {
  /** `usr_…` */
  readonly id: string
  readonly email: string
  readonly password: string
  readonly token: string
  /** Renews the token: `weir_refresh=…` */
  readonly cookie: string
  /** Sends requests to the management interface as this person. */
  readonly ask: Ask
}

export interface Membership {
  /** `acc_…` */
  readonly account: string
  readonly role: AccountRole
}

export interface PersonOptions {
  /** `member` by default. */
  readonly role?: SiteRole
  /** Without memberships the person gets an account of their own. */
  readonly members?: readonly Membership[]
  readonly email?: string
}

/** The cookie that a browser would send back. */
export const cookieOf = ({ headers }: Pick<ApiAnswer, 'headers'>): string =>
  (headers.get('set-cookie') ?? '').split(';')[0]!

/** The person whom this answer of the gateway has signed in. */
export function personOf(harness: Pick<Harness, 'url'>, told: ApiAnswer, password = goodPassword): Person {
  const { accessToken, user } = told.body as { accessToken: string; user: { id: string; email: string } }
  if (accessToken === undefined) throw new Error(`not signed in: ${told.status} ${told.text}`)
  const { id, email } = user
  return { id, email, password, token: accessToken, cookie: cookieOf(told), ask: askAs(harness, accessToken) }
}

/** Creates the first owner with a set-up token. Works once for each gateway. */
export async function setUpOwner(harness: Harness, email = 'owner@example.com'): Promise<Person> {
  const { setupToken } = await harness.weir('setup', { token: true })
  const body = { token: setupToken, name: 'Olga Owner', email, password: goodPassword }
  return personOf(harness, await askAs(harness, undefined)('POST', 'auth/setup', body))
}

let count = 0

/** Creates another person, by an invitation of the owner or the operator. */
export async function addPerson(harness: Harness, by: Ask, options: PersonOptions = {}): Promise<Person> {
  const { role = 'member', members: [first, ...others] = [], email = `person-${++count}@example.com` } = options
  const member = first && { account: first.account, accountRole: first.role }
  const invited = await by('POST', 'web/invitations', { email, role, ...member })
  if (invited.status !== 201) throw new Error(`not invited: ${invited.status} ${invited.text}`)
  const accepting = { token: invited.body.token, name: `Person ${count}`, password: goodPassword }
  const person = personOf(harness, await askAs(harness, undefined)('POST', 'auth/invitation', accepting))
  for (const { account, role: accountRole } of others) {
    const added = await by('POST', `web/accounts/${account}/members`, { user: person.id, role: accountRole })
    if (added.status !== 201) throw new Error(`not added: ${added.status} ${added.text}`)
  }
  return person
}

/** Signs in as a page does: without a token. */
export const signIn = (harness: Pick<Harness, 'url'>, body: Record<string, unknown>): Promise<ApiAnswer> =>
  askAs(harness, undefined)('POST', 'auth/sign-in', body)

export async function signedIn(harness: Pick<Harness, 'url'>, email: string, password = goodPassword): Promise<Person> {
  return personOf(harness, await signIn(harness, { email, password }), password)
}
