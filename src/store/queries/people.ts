// Queries for people, the members of accounts, sessions and invitations.

import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { InvitationOffer } from '../people/invitation-rows.ts'
import { isOfferValid } from '../people/invitation-rows.ts'
import type { SiteRoleName } from '../people/people.ts'
import type { RowOf, SqlRow } from '../tables/columns.ts'
import { flag, nullable, number, text, word } from '../tables/columns.ts'
import type { ListPlan, ListQuery, Page, Scope } from './paging.ts'
import { beginsWith, equals, isTrue, listPage, rowFinder } from './paging.ts'

const SECOND_FACTOR = 'EXISTS (SELECT 1 FROM totp t WHERE t.person_id = p.id AND t.confirmed_ms IS NOT NULL)'

const personColumns = {
  id: ['p.id', number],
  email: ['p.email', text],
  name: ['p.name', text],
  role: ['p.role', text],
  disabled: ['p.disabled', flag],
  removed: ['p.removed_ms IS NOT NULL', flag],
  secondFactor: [SECOND_FACTOR, flag],
  accounts: ['(SELECT count(*) FROM member m WHERE m.person_id = p.id)', number],
  signedMs: ['p.signed_ms', nullable(number)],
  createdMs: ['p.created_ms', number],
  version: ['p.version', number],
  preferences: ['p.preferences', nullable(text)],
} as const

const personPlan: ListPlan<typeof personColumns> = {
  from: 'person p',
  columns: personColumns,
  id: 'p.id',
  sorts: { created: 'p.created_ms', email: 'p.email', name: 'p.name' },
  filters: {
    email: beginsWith('p.email'),
    name: beginsWith('p.name'),
    role: equals('p.role'),
    disabled: equals('p.disabled'),
    removed: isTrue('p.removed_ms IS NOT NULL'),
  },
}

const memberColumns = {
  personId: ['m.person_id', number],
  email: ['p.email', text],
  name: ['p.name', text],
  rank: ['m.rank', number],
  addedMs: ['m.added_ms', number],
  version: ['m.version', number],
} as const

const memberPlan: ListPlan<typeof memberColumns> = {
  from: 'member m JOIN person p ON p.id = m.person_id',
  columns: memberColumns,
  id: 'm.person_id',
  sorts: { added: 'm.added_ms', email: 'p.email' },
  account: 'm.account_id',
  filters: { account: equals('m.account_id'), person: equals('m.person_id'), rank: equals('m.rank') },
}

const membershipColumns = {
  accountId: ['m.account_id', number],
  name: ['a.name', text],
  type: ['a.type', text],
  rank: ['m.rank', number],
  addedMs: ['m.added_ms', number],
  version: ['m.version', number],
} as const

/** The accounts of a person. */
const membershipPlan: ListPlan<typeof membershipColumns> = {
  from: 'member m JOIN account a ON a.id = m.account_id',
  columns: membershipColumns,
  id: 'm.account_id',
  sorts: { added: 'm.added_ms', name: 'a.name' },
  filters: { person: equals('m.person_id') },
}

const sessionColumns = {
  id: ['s.id', number],
  madeMs: ['s.made_ms', number],
  seenMs: ['s.seen_ms', number],
  expiresMs: ['s.expires_ms', number],
  endedMs: ['s.ended_ms', nullable(number)],
  endedWhy: ['s.ended_why', nullable(text)],
  address: ['s.address', text],
  agent: ['s.agent', text],
} as const

const sessionPlan: ListPlan<typeof sessionColumns> = {
  from: 'session s',
  columns: sessionColumns,
  id: 's.id',
  sorts: { made: 's.made_ms', seen: 's.seen_ms' },
  filters: { person: equals('s.person_id'), ended: isTrue('s.ended_ms IS NOT NULL') },
}

const invitationColumns = {
  id: ['i.id', number],
  kind: ['i.kind', word<'join' | 'password'>()],
  email: ['i.email', text],
  role: ['i.role', word<SiteRoleName>()],
  accountId: ['i.account_id', nullable(number)],
  rank: ['i.rank', nullable(number)],
  byId: ['i.by_id', nullable(number)],
  personId: ['i.person_id', nullable(number)],
  isByToken: ['EXISTS (SELECT 1 FROM service_token t WHERE t.id = i.by_id)', flag],
  madeMs: ['i.made_ms', number],
  expiresMs: ['i.expires_ms', number],
  acceptedMs: ['i.accepted_ms', nullable(number)],
  revokedMs: ['i.revoked_ms', nullable(number)],
  version: ['i.version', number],
} as const

const invitationPlan: ListPlan<typeof invitationColumns> = {
  from: 'invitation i',
  columns: invitationColumns,
  id: 'i.id',
  sorts: { made: 'i.made_ms', expires: 'i.expires_ms' },
  account: 'i.account_id',
  filters: {
    account: equals('i.account_id'),
    email: beginsWith('i.email'),
    open: isTrue('i.accepted_ms IS NULL AND i.revoked_ms IS NULL'),
  },
}

export type PersonView = RowOf<typeof personColumns>
export type MemberView = RowOf<typeof memberColumns>
export type MembershipView = RowOf<typeof membershipColumns>
export type SessionView = RowOf<typeof sessionColumns>

type InvitationColumns = RowOf<typeof invitationColumns>

export interface InvitationView extends InvitationColumns {
  /** Whether the author still has the right to what it offers. It is examined only of invitations that are open. */
  readonly isValid: boolean
}

export interface MeView
  extends Pick<PersonView, 'email' | 'name' | 'secondFactor' | 'createdMs' | 'version' | 'preferences'> {
  readonly accounts: readonly { readonly accountId: number; readonly name: string; readonly rank: number }[]
}

interface ById {
  readonly id: number
}

interface AtTime {
  readonly nowMs: number
}

export interface PeopleQueries {
  me: { input: ById; result: MeView | null }
  people: { input: ListQuery; result: Page<PersonView> }
  person: { input: ById; result: PersonView | null }
  members: { input: ListQuery; result: Page<MemberView> }
  memberships: { input: ListQuery; result: Page<MembershipView> }
  sessions: { input: ListQuery; result: Page<SessionView> }
  invitations: { input: ListQuery & AtTime; result: Page<InvitationView> }
  invitation: { input: ById & AtTime; result: InvitationView | null }
  seesAccount: { input: ById & { readonly scope: Scope | null }; result: boolean }
  siteVersion: { input: Record<string, never>; result: number }
}

const findAccounts = query<SqlRow>(
  `SELECT m.account_id, a.name, m.rank FROM member m JOIN account a ON a.id = m.account_id
   WHERE m.person_id = ?1 ORDER BY m.account_id LIMIT 1000`,
)
const findAccount = query("SELECT 1 FROM account WHERE id = ?1 AND kind <> 'operator'")
const findAccess = query('SELECT 1 FROM account_access WHERE account_id = ?1 AND actor_id = ?2 AND rank >= ?3')
const findSite = query<SqlRow>("SELECT version FROM setting WHERE name = 'site'")
const findPerson = rowFinder(personPlan)
const findInvitation = rowFinder(invitationPlan)

const isOpen = ({ acceptedMs, revokedMs, expiresMs }: InvitationColumns, nowMs: number): boolean =>
  acceptedMs === null && revokedMs === null && expiresMs > nowMs

/** Authors make many invitations of the same kind, so each kind is examined once. */
function* withValidity(rows: readonly InvitationColumns[], nowMs: number): Steps<InvitationView[]> {
  const examined = new Map<string, boolean>()
  const views: InvitationView[] = []
  for (const row of rows) {
    const { kind, role, accountId, rank, byId, personId } = row
    const member = accountId === null ? null : { accountId, rank: rank! }
    const offer: InvitationOffer = { kind, role, member, byId, personId }
    const key = JSON.stringify(offer)
    if (isOpen(row, nowMs) && !examined.has(key)) {
      examined.set(key, yield* isOfferValid(offer, { nowMs: () => nowMs }))
    }
    views.push({ ...row, isValid: !isOpen(row, nowMs) || examined.get(key)! })
  }
  return views
}

export const peopleQueries = {
  *me({ id }: ById): Steps<MeView | null> {
    const row = yield* findPerson({ id, scope: null })
    if (row === null) return null
    const { email, name, secondFactor, createdMs, version, preferences } = row
    const accounts = (yield* findAccounts.all(id)).map(account => ({
      accountId: Number(account.account_id),
      name: String(account.name),
      rank: Number(account.rank),
    }))
    return { email, name, secondFactor, createdMs, version, preferences, accounts }
  },
  people: (ask: ListQuery) => listPage(personPlan, ask),
  person: ({ id }: ById) => findPerson({ id, scope: null }),
  members: (ask: ListQuery) => listPage(memberPlan, ask),
  memberships: (ask: ListQuery) => listPage(membershipPlan, ask),
  sessions: (ask: ListQuery) => listPage(sessionPlan, ask),
  *invitations({ nowMs, ...ask }: ListQuery & AtTime): Steps<Page<InvitationView>> {
    const { rows, next } = yield* listPage(invitationPlan, ask)
    return { rows: yield* withValidity(rows, nowMs), next }
  },
  *invitation({ id, nowMs }: ById & AtTime): Steps<InvitationView | null> {
    const row = yield* findInvitation({ id, scope: null })
    return row && (yield* withValidity([row], nowMs))[0]!
  },
  *seesAccount({ id, scope }: ById & { readonly scope: Scope | null }): Steps<boolean> {
    if (scope === null) return (yield* findAccount.get(id)) !== undefined
    return (yield* findAccess.get(id, scope.actorId, scope.rank)) !== undefined
  },
  *siteVersion(): Steps<number> {
    return Number((yield* findSite.get())?.version ?? 0n)
  },
}
