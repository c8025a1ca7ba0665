// Reads people and sessions, for sign-ins and for every request of the management interface. It makes point look-ups
// only, because it runs on the thread that serves calls. It caches nothing, so a sign-out takes effect at once.

import type { Database } from 'bun:sqlite'
import type { SiteRoleName } from './people.ts'

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

/** An open invitation. */
export interface InvitationRow {
  readonly kind: 'join' | 'password'
  readonly email: string
}

type RawRow = Record<string, bigint | string | Uint8Array | null>

const PERSON = `SELECT p.id, p.email, p.name, p.role, p.password, p.disabled, p.ver, t.sealed
  FROM person p LEFT JOIN totp t ON t.person_id = p.id AND t.confirmed_ms IS NOT NULL`

export class PeopleReader {
  readonly #findByEmail
  readonly #findById
  readonly #findOwner
  readonly #findSession
  readonly #findPlace
  readonly #findRefresh
  readonly #findPending
  readonly #findInvitation
  readonly #findToken

  constructor(db: Database) {
    this.#findByEmail = db.query<RawRow, [string]>(`${PERSON} WHERE p.email = ?1 AND p.removed_ms IS NULL`)
    this.#findById = db.query<RawRow, [number]>(`${PERSON} WHERE p.id = ?1 AND p.removed_ms IS NULL`)
    this.#findOwner = db.query("SELECT 1 FROM person WHERE role = 'owner' LIMIT 1")
    this.#findSession = db.query<RawRow, [number]>(
      `SELECT s.id, s.person_id, s.expires_ms, p.role, p.ver FROM session s LEFT JOIN person p ON p.id = s.person_id
       WHERE s.id = ?1 AND s.ended_ms IS NULL AND coalesce(p.disabled, 0) = 0`,
    )
    this.#findPlace = db.query<RawRow, [string, string]>(
      `SELECT 1 FROM session WHERE person_id = (SELECT id FROM person WHERE email = ?1) AND place = ?2 LIMIT 1`,
    )
    this.#findRefresh = db.query<RawRow, [Uint8Array]>('SELECT session_id FROM refresh WHERE digest = ?1')
    this.#findPending = db.query<RawRow, [number]>(
      'SELECT sealed FROM totp WHERE person_id = ?1 AND confirmed_ms IS NULL',
    )
    this.#findInvitation = db.query<RawRow, [Uint8Array, number]>(
      `SELECT kind, email FROM invitation WHERE digest = ?1 AND accepted_ms IS NULL AND revoked_ms IS NULL
       AND expires_ms > ?2`,
    )
    this.#findToken = db.query<RawRow, [Uint8Array]>(
      `SELECT id, role, account_id, creator, revoked_ms, expires_ms, used_ms, iif(digest = ?1, NULL, old_until_ms) AS until_ms
       FROM service_token WHERE id = (SELECT id FROM service_token WHERE digest = ?1
         UNION ALL SELECT id FROM service_token WHERE old_digest = ?1 LIMIT 1)`,
    )
  }

  /** Finds an open invitation by the digest of its token, in hex. */
  invitation(digest: string, nowMs: number): InvitationRow | undefined {
    const row = this.#findInvitation.get(Buffer.from(digest, 'hex'), nowMs)
    return row === null ? undefined : { kind: row.kind as InvitationRow['kind'], email: row.email as string }
  }

  serviceToken(digest: Uint8Array): ServiceTokenRow | undefined {
    const row = this.#findToken.get(digest)
    if (row === null) return undefined
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
  }

  byEmail(email: string): SignInRow | undefined {
    return signInRow(this.#findByEmail.get(email))
  }

  byId(id: number): SignInRow | undefined {
    return signInRow(this.#findById.get(id))
  }

  get hasOwner(): boolean {
    return this.#findOwner.get() !== null
  }

  /** Finds a session that has not ended and whose person is enabled. */
  session(id: number): SessionRow | undefined {
    const row = this.#findSession.get(id)
    if (row === null) return undefined
    const isOperator = row.person_id === null
    return {
      id,
      personId: isOperator ? 0 : Number(row.person_id),
      role: isOperator ? 'owner' : (row.role as SiteRoleName),
      ver: isOperator ? 0 : Number(row.ver),
      expiresMs: Number(row.expires_ms),
    }
  }

  /** Whether the person with this e-mail address has signed in from this place before. */
  hasSignedIn(email: string, place: string): boolean {
    return this.#findPlace.get(email, place) !== null
  }

  /** Finds the session of a refresh token by the token's digest, in hex. */
  sessionOfRefresh(digest: string): number | undefined {
    const row = this.#findRefresh.get(Buffer.from(digest, 'hex'))
    return row === null ? undefined : Number(row.session_id)
  }

  /** The encrypted secret of a second factor that is not confirmed yet. */
  pendingTotp(personId: number): Uint8Array | undefined {
    return this.#findPending.get(personId)?.sealed as Uint8Array | undefined
  }
}

const numberOrNull = (value: RawRow[string] | undefined): number | null => (value == null ? null : Number(value))

function signInRow(row: RawRow | null): SignInRow | undefined {
  if (row === null) return undefined
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
