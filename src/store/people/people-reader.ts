// Reads people and sessions, for sign-ins and for every request of the management interface. It makes point look-ups
// only, because it runs on the thread that serves calls. It caches nothing, so a sign-out takes effect at once.

import type { AwaitedReads } from '../engine/reads.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { OfferRow } from './invitation-rows.ts'
import { isOfferValid, offerOf } from './invitation-rows.ts'
import type { SiteRoleName } from './people.ts'
import { findActor } from './people-rows.ts'

export interface SignInRow {
  readonly id: number
  readonly email: string
  readonly name: string
  readonly role: SiteRoleName
  /** The hash of the password; undefined where none is set. */
  readonly password: string | undefined
  readonly disabled: boolean
  readonly ver: number
  /** The encrypted TOTP secret; undefined where the person has no second factor. */
  readonly totp: Uint8Array | undefined
}

export interface SessionRow {
  readonly id: number
  /** 0: the operator. */
  readonly personId: number
  readonly role: SiteRoleName
  readonly ver: number
  readonly expiresMs: number
}

/** A service token, found by its text or by the text before its last rotation. */
export interface ServiceTokenRow {
  readonly id: number
  readonly role: SiteRoleName
  readonly accountId: number | null
  readonly creator: string
  readonly revoked: boolean
  /** Null: it does not expire. */
  readonly expiresMs: number | null
  /** Set if the text is the one before the last rotation: until when it works. */
  readonly untilMs: number | null
  readonly usedMs: number | null
}

/** An invitation that can be accepted now. */
export interface InvitationRow {
  readonly kind: 'join' | 'password'
  readonly email: string
  readonly role: SiteRoleName
  /** The account, its name, and the rank in it; null: it is to the site. */
  readonly member: { readonly accountId: number; readonly account: string; readonly rank: number } | null
  readonly expiresMs: number
}

type RawRow = Record<string, bigint | string | Uint8Array | null>

const PERSON = `SELECT p.id, p.email, p.name, p.role, p.password, p.disabled, p.ver, t.sealed
  FROM person p LEFT JOIN totp t ON t.person_id = p.id AND t.confirmed_ms IS NOT NULL`

const findByEmail = query<RawRow>(`${PERSON} WHERE p.email = ?1 AND p.removed_ms IS NULL`)
const findById = query<RawRow>(`${PERSON} WHERE p.id = ?1 AND p.removed_ms IS NULL`)
const findOwner = query("SELECT 1 FROM person WHERE role = 'owner' LIMIT 1")
const findSession = query<RawRow>(
  `SELECT s.id, s.person_id, s.expires_ms, p.role, p.ver FROM session s LEFT JOIN person p ON p.id = s.person_id
   WHERE s.id = ?1 AND s.ended_ms IS NULL AND coalesce(p.disabled, 0) = 0`,
)
const findPlace = query(
  `SELECT 1 FROM session WHERE person_id = (SELECT id FROM person WHERE email = ?1) AND place = ?2 LIMIT 1`,
)
const findRefresh = query<RawRow>('SELECT session_id FROM refresh WHERE digest = ?1')
const findTicket = query('SELECT 1 FROM download_ticket WHERE digest = ?1')
const findPending = query<{ sealed: Uint8Array }>(
  'SELECT sealed FROM totp WHERE person_id = ?1 AND confirmed_ms IS NULL',
)
const findInvitation = query<
  OfferRow & { readonly email: string; readonly account: string | null; readonly expires_ms: bigint }
>(
  `SELECT i.kind, i.email, i.role, a.name AS account, i.rank, i.expires_ms, i.account_id, i.by_id, i.person_id
   FROM invitation i LEFT JOIN account a ON a.id = i.account_id
   WHERE i.digest = ?1 AND i.accepted_ms IS NULL AND i.revoked_ms IS NULL AND i.expires_ms > ?2`,
)
const findToken = query<RawRow>(
  `SELECT id, role, account_id, creator, revoked_ms, expires_ms, used_ms,
     CASE WHEN digest = ?1 THEN NULL ELSE old_until_ms END AS until_ms
   FROM service_token WHERE id = (SELECT id FROM service_token WHERE digest = ?1
     UNION ALL SELECT id FROM service_token WHERE old_digest = ?1 LIMIT 1)`,
)

export const peopleReads = {
  /** Finds an invitation that can be accepted now by the digest of its token, in hex. */
  *invitation(digest: string, nowMs: number): Steps<InvitationRow | undefined> {
    const row = yield* findInvitation.get(Buffer.from(digest, 'hex'), nowMs)
    if (row === undefined || !(yield* isOfferValid(offerOf(row), { nowMs: () => nowMs }))) return undefined
    const { kind, role, member } = offerOf(row)
    return {
      kind,
      email: row.email,
      role,
      member: member && { ...member, account: row.account! },
      expiresMs: Number(row.expires_ms),
    }
  },

  *serviceToken(digest: Uint8Array): Steps<ServiceTokenRow | undefined> {
    const row = yield* findToken.get(digest)
    if (row === undefined) return undefined
    return {
      id: Number(row.id),
      role: row.role as SiteRoleName,
      accountId: numberOrNull(row.account_id),
      creator: row.creator as string,
      revoked: row.revoked_ms !== null,
      expiresMs: numberOrNull(row.expires_ms),
      untilMs: numberOrNull(row.until_ms),
      usedMs: numberOrNull(row.used_ms),
    }
  },

  *byEmail(email: string): Steps<SignInRow | undefined> {
    return signInRow(yield* findByEmail.get(email))
  },

  *byId(id: number): Steps<SignInRow | undefined> {
    return signInRow(yield* findById.get(id))
  },

  *hasOwner(): Steps<boolean> {
    return (yield* findOwner.get()) !== undefined
  },

  /** The present site role of a person or a service token; undefined if it has none any more. */
  *siteRole(actorId: number, nowMs: number): Steps<SiteRoleName | undefined> {
    return (yield* findActor(actorId, { nowMs: () => nowMs }))?.role
  },

  /** Finds a session that has not ended and whose person is enabled. */
  *session(id: number): Steps<SessionRow | undefined> {
    const row = yield* findSession.get(id)
    if (row === undefined) return undefined
    const isOperator = row.person_id === null
    return {
      id,
      personId: isOperator ? 0 : Number(row.person_id),
      role: isOperator ? 'owner' : (row.role as SiteRoleName),
      ver: isOperator ? 0 : Number(row.ver),
      expiresMs: Number(row.expires_ms),
    }
  },

  /** Whether the person with this e-mail address has signed in from this place before. */
  *hasSignedIn(email: string, place: string): Steps<boolean> {
    return (yield* findPlace.get(email, place)) !== undefined
  },

  /** Finds the session of a refresh token by the token's digest, in hex. */
  *sessionOfRefresh(digest: string): Steps<number | undefined> {
    const row = yield* findRefresh.get(Buffer.from(digest, 'hex'))
    return row === undefined ? undefined : Number(row.session_id)
  },

  /** Whether a ticket for a download is there, by its digest in hex. It may have expired. */
  *hasTicket(digest: string): Steps<boolean> {
    return (yield* findTicket.get(Buffer.from(digest, 'hex'))) !== undefined
  },

  /** The encrypted secret of a second factor that is not confirmed yet. */
  *pendingTotp(personId: number): Steps<Uint8Array | undefined> {
    return (yield* findPending.get(personId))?.sealed
  },
}

export type PeopleReader = AwaitedReads<typeof peopleReads>

const numberOrNull = (value: RawRow[string] | undefined): number | null => (value == null ? null : Number(value))

function signInRow(row: RawRow | undefined): SignInRow | undefined {
  if (row === undefined) return undefined
  return {
    id: Number(row.id),
    email: row.email as string,
    name: row.name as string,
    role: row.role as SiteRoleName,
    password: (row.password as string | null) ?? undefined,
    disabled: row.disabled === 1n,
    ver: Number(row.ver),
    totp: (row.sealed as Uint8Array | null) ?? undefined,
  }
}
