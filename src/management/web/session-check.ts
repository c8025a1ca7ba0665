// Finds the actor of a session token: checks its signature, its session, and the version of the person.

import { parseTextId } from '../../base/ids.ts'
import type { SecretRing } from '../../base/secrets/secret-ring.ts'
import { verifyToken } from '../../identity/token.ts'
import type { Reader } from '../../store/engine/reader.ts'
import type { Actor } from '../actor.ts'
import { actorSubject } from '../actor.ts'

export interface SessionCheckParts {
  readonly jwtSecret: SecretRing
  readonly reader: Pick<Reader, 'people'>
  dateMs(): number
}

export type CheckSession = (token: string) => Promise<Actor | undefined>

export function buildSessionCheck({ jwtSecret, reader, dateMs }: SessionCheckParts): CheckSession {
  return async function checkSession(token) {
    const nowMs = dateMs()
    const holder = await verifyToken(jwtSecret, token, nowMs)
    const id = holder && parseTextId('ses', holder.session)
    const session = id === undefined ? undefined : await reader.people.session(id)
    if (holder === undefined || session === undefined || session.expiresMs <= nowMs) return undefined
    const { personId, role } = session
    if (holder.subject !== actorSubject(personId) || holder.version !== session.ver) return undefined
    return { personId, role, sessionId: session.id }
  }
}
