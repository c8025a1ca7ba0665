// What operations, look-ups and lists share about invitations: who may invite, whether an invitation can be accepted now,
// and how open ones end.

import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { SiteRoleName } from './people.ts'
import type { Grant, RightsClock } from './people-rows.ts'
import { findActor, findPerson, isAtLeast, mayChange, mayGrant } from './people-rows.ts'

/** The name of the row with all site settings that differ from their defaults. */
export const SITE_SETTING = 'site'

/** Who may invite people: admins and owners, or also managers of accounts. */
export type Inviters = 'admins' | 'managers'
export const INVITERS_DEFAULT: Inviters = 'managers'

/** What an invitation offers, and by whom. */
export interface InvitationOffer extends Grant {
  readonly kind: 'join' | 'password'
  /** Null: the operator. */
  readonly byId: number | null
  /** Whose password can be set. */
  readonly personId: number | null
}

/** The columns of an invitation with its offer. */
export interface OfferRow {
  readonly kind: InvitationOffer['kind']
  readonly role: SiteRoleName
  readonly account_id: bigint | null
  readonly rank: bigint | null
  readonly by_id: bigint | null
  readonly person_id: bigint | null
}

const numberOrNull = (value: bigint | null): number | null => (value === null ? null : Number(value))

export const offerOf = ({ kind, role, account_id: accountId, rank, ...row }: OfferRow): InvitationOffer => ({
  kind,
  role,
  member: accountId === null ? null : { accountId: Number(accountId), rank: Number(rank) },
  byId: numberOrNull(row.by_id),
  personId: numberOrNull(row.person_id),
})

const findSetting = query<{ value: string }>('SELECT value FROM setting WHERE name = ?1')

function* whoMayInvite(): Steps<Inviters> {
  const row = yield* findSetting.get(SITE_SETTING)
  const { invitations } = JSON.parse(row?.value ?? '{}') as { readonly invitations?: Inviters }
  return invitations ?? INVITERS_DEFAULT
}

/** Whether an actor may invite somebody with this grant now: the rights of the actor and the setting of the site count. */
export function* mayInvite(actorId: number, grant: Grant, clock: RightsClock): Steps<boolean> {
  if (!(yield* mayGrant(actorId, grant, clock))) return false
  const actor = yield* findActor(actorId, clock)
  return isAtLeast(actor!.role, 'admin') || (yield* whoMayInvite()) === 'managers'
}

/** Whether the author of an invitation still has the right to what it offers. If not, nobody can accept it. */
export function* isOfferValid(offer: InvitationOffer, clock: RightsClock): Steps<boolean> {
  const authorId = offer.byId ?? 0
  if (offer.kind === 'join') return yield* mayInvite(authorId, offer, clock)
  const person = yield* findPerson(offer.personId ?? 0)
  return person !== undefined && person.disabled === 0n && (yield* mayChange(authorId, person, clock))
}

const IS_OPEN = 'accepted_ms IS NULL AND revoked_ms IS NULL'
const END = 'UPDATE invitation SET revoked_ms = ?1, version = version + 1'
const endOfAccount = query(`${END} WHERE account_id = ?2 AND email = ?3 AND kind = 'join' AND ${IS_OPEN}`)
const endOfSite = query(`${END} WHERE account_id IS NULL AND email = ?2 AND kind = 'join' AND ${IS_OPEN}`)
const endOfPerson = query(`${END} WHERE (email = ?2 OR person_id = ?3) AND ${IS_OPEN}`)

const endResets = query(`${END} WHERE person_id = ?2 AND kind = 'password' AND ${IS_OPEN}`)

/** Ends the open links by which a person may set a new password. */
export const endResetsOf = (personId: number, nowMs: number): Steps<number> => endResets.run(nowMs, personId)

/** Ends the open invitations of an address to an account; null: to the site. Returns how many. */
export const endInvitations = (email: string, accountId: number | null, nowMs: number): Steps<number> =>
  accountId === null ? endOfSite.run(nowMs, email) : endOfAccount.run(nowMs, accountId, email)

/** Ends all open invitations of a person: also those to set a new password. */
export const endInvitationsOf = (
  person: { readonly id: bigint; readonly email: string },
  nowMs: number,
): Steps<number> => endOfPerson.run(nowMs, person.email, person.id)
