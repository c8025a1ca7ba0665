// People for a test: signed in, in any role, members of any account. All of them come in as real people do.

import type { AccountRole, SiteRole } from '../../src/management/actor.ts'
import type { Harness } from './gateway.ts'
import type { Ask, Told } from './management.ts'
import { askAs } from './management.ts'

export const goodPassword = 'a river runs through it'

export interface Person {
  /** `usr_…` */
  readonly id: string
  readonly email: string
  readonly password: string
  readonly token: string
  /** What renews it: `weir_refresh=…` */
  readonly cookie: string
  /** Asks as them. */
  readonly ask: Ask
}

export interface Membership {
  /** `acc_…` */
  readonly account: string
  readonly role: AccountRole
}

export interface PersonOptions {
  /** A member unless told. */
  readonly role?: SiteRole
  /** Without any they have an account of their own, as everybody who comes without one. */
  readonly members?: readonly Membership[]
  readonly email?: string
}

/** What a browser would send back. */
export const cookieOf = ({ headers }: Pick<Told, 'headers'>): string => (headers.get('set-cookie') ?? '').split(';')[0]!

/** Whoever an answer has just signed in. */
export function personOf(harness: Pick<Harness, 'url'>, told: Told, password = goodPassword): Person {
  const { accessToken, user } = told.body as { accessToken: string; user: { id: string; email: string } }
  if (accessToken === undefined) throw new Error(`not signed in: ${told.status} ${told.text}`)
  const { id, email } = user
  return { id, email, password, token: accessToken, cookie: cookieOf(told), ask: askAs(harness, accessToken) }
}

/** The first owner, by the token that a start prints. Once for each gateway. */
export async function setUpOwner(harness: Harness, email = 'owner@example.com'): Promise<Person> {
  const { setupToken } = await harness.weir('setup', { token: true })
  const body = { token: setupToken, name: 'Olga Owner', email, password: goodPassword }
  return personOf(harness, await askAs(harness, undefined)('POST', 'auth/setup', body))
}

let count = 0

/** Somebody else, whom the owner (or the operator) invites. */
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

/** Signs in as a page does: from nowhere, with nothing. */
export const signIn = (harness: Pick<Harness, 'url'>, body: Record<string, unknown>): Promise<Told> =>
  askAs(harness, undefined)('POST', 'auth/sign-in', body)

export async function signedIn(harness: Pick<Harness, 'url'>, email: string, password = goodPassword): Promise<Person> {
  return personOf(harness, await signIn(harness, { email, password }), password)
}
