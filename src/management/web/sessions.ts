// Sessions of people who sign in. A session has an access token of ten minutes for the interface, and a refresh cookie
// that renews it. No script can read the cookie, and the browser sends it only to /api/auth.

import { bounds } from '../../base/bounds.ts'
import { rateOf, spansMs } from '../../base/collections/gcra.ts'
import { Refusal } from '../../base/errors.ts'
import { textId } from '../../base/ids.ts'
import { networkOf } from '../../http/address/caller-address.ts'
import { AttemptCounter } from '../../identity/attempt-limits.ts'
import { digestOpaqueToken, isOpaqueToken, mintOpaqueToken } from '../../identity/opaque-token.ts'
import { mintToken } from '../../identity/token.ts'
import type { SessionInsert } from '../../store/people/people.ts'
import type { SiteRole } from '../actor.ts'
import { actorSubject } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { ReadHeader } from './same-site.ts'

const COOKIE = 'weir_refresh'
const SESSION_COOKIE = new RegExp(`(?:^|;)\\s*${COOKIE}=`)
const AGENT_CHARS_MAX = 200

/** The client of a request: its address and headers. */
export interface ClientInfo {
  readonly address: string
  header: ReadHeader
}

/** A session that is not written yet, and the refresh token that will renew it. */
export interface SessionDraft {
  readonly insert: SessionInsert
  readonly refresh: string
}

export interface SessionRef {
  readonly personId: number
  readonly sessionId: number
  readonly ver: number
}

export interface SignedIn {
  readonly accessToken: string
  readonly expiresInSeconds: number
  readonly user: { readonly id: string; readonly email: string; readonly name: string; readonly role: SiteRole }
}

export type Sessions = ReturnType<typeof buildSessions>

export function buildSessions(parts: ManagementParts) {
  const { writer, reader, seal, mintId, dateMs, jwtSecret, log } = parts
  // Each renewal is a durable write, like those that a signed-in person sends.
  const renewals = new AttemptCounter('renewal', rateOf(bounds.personWritesPerMinuteMax, spansMs.minute), parts)
  const cookieFor = (value: string, seconds: number, visit: ClientInfo): Readonly<Record<string, string>> => {
    const isSecure = parts.secureCookies || visit.header('x-forwarded-proto') === 'https'
    const flags = `HttpOnly; SameSite=Strict; Path=/api/auth; Max-Age=${seconds}${isSecure ? '; Secure' : ''}`
    return { 'set-cookie': `${COOKIE}=${value}; ${flags}` }
  }

  /** A new access token of a session. Undefined: the person was removed meanwhile. */
  async function signedIn({ personId, sessionId, ver }: SessionRef): Promise<SignedIn | undefined> {
    const person = await reader.people.byId(personId)
    if (person === undefined) return undefined
    const holder = { subject: actorSubject(personId), session: textId('ses', sessionId), version: ver }
    const lifeSeconds = bounds.tokenSecondsMax
    const accessToken = await mintToken(jwtSecret, { ...holder, nowMs: dateMs(), lifeSeconds })
    const { email, name, role } = person
    return {
      accessToken,
      expiresInSeconds: lifeSeconds,
      user: { id: textId('usr', personId), email, name, role },
    }
  }

  async function begin(session: SessionRef, refresh: string, visit: ClientInfo) {
    const body = await signedIn(session)
    return body && { body, headers: cookieFor(refresh, bounds.sessionIdleMsMax / 1_000, visit) }
  }

  const removed = (): Refusal => new Refusal('session_over', 'gone meanwhile')

  return {
    async begun(session: SessionRef, refresh: string, visit: ClientInfo) {
      const answer = await begin(session, refresh, visit)
      if (answer === undefined) throw removed()
      return answer
    },

    /** A new access token for a session that goes on, after the version of the person has changed. */
    async tokenFor(session: SessionRef): Promise<SignedIn> {
      const answer = await signedIn(session)
      if (answer === undefined) throw removed()
      return answer
    },

    draft(visit: ClientInfo): SessionDraft {
      const refresh = mintOpaqueToken()
      const agent = (visit.header('user-agent') ?? '').slice(0, AGENT_CHARS_MAX)
      const from = { address: visit.address, place: networkOf(visit.address), agent }
      return { refresh, insert: { id: mintId(), refresh: digestOpaqueToken(refresh), ...from } }
    },

    /** Undefined: the client has no valid cookie. */
    async renew(visit: ClientInfo) {
      const token = cookieOf(visit)
      const digest = token === undefined ? undefined : digestOpaqueToken(token)
      const sessionId = digest === undefined ? undefined : await reader.people.sessionOfRefresh(digest)
      if (digest === undefined || sessionId === undefined) return undefined
      await renewals.countOrRefuse(textId('ses', sessionId))
      const cell = { table: 'session', row: sessionId, column: 'next' }
      const next = mintOpaqueToken()
      const sealed = seal.seal(cell, Buffer.from(next)).toString('base64')
      const input = { digest, next: digestOpaqueToken(next), sealed, nowMs: dateMs() }
      const result = await writer.run('renewSession', input)
      if (result.done === 'stolen') {
        const [session, person] = [textId('ses', result.sessionId), textId('usr', result.personId)]
        log.warn('a refresh token was used twice, so its session was ended', { session, person })
      }
      if (result.done === 'over' || result.done === 'stolen') return undefined
      const isRepeated = result.done === 'again'
      const refresh = isRepeated ? seal.open(cell, Buffer.from(result.sealed, 'base64')).toString() : next
      const answer = await begin(result, refresh, visit)
      return answer && { answer, session: result }
    },

    /** The session of the refresh cookie; undefined if there is none. */
    async current(visit: ClientInfo): Promise<Pick<SessionRef, 'personId' | 'sessionId'> | undefined> {
      const token = cookieOf(visit)
      const sessionId = token === undefined ? undefined : await reader.people.sessionOfRefresh(digestOpaqueToken(token))
      const session = sessionId === undefined ? undefined : await reader.people.session(sessionId)
      return session && { personId: session.personId, sessionId: session.id }
    },

    gone: (visit: ClientInfo) => cookieFor('', 0, visit),
  }
}

/** Whether a Cookie header has the cookie of a session. */
export const hasSessionCookie = (header: string | undefined): boolean => SESSION_COOKIE.test(header ?? '')

function cookieOf({ header }: ClientInfo): string | undefined {
  for (const pair of (header('cookie') ?? '').split(';', bounds.headerPartsMax)) {
    const [name, value = ''] = pair.trim().split('=')
    if (name === COOKIE && isOpaqueToken(value)) return value
  }
  return undefined
}
