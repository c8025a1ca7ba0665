// Endpoints for signing in and out. A cookie keeps a person signed in; browsers send it only to these endpoints.

import * as z from 'zod'
import { actorSubject } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { SignInService } from '../services/sign-in.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, noContent } from './endpoint.ts'
import { code, password, SignedIn } from './people-fields.ts'

export function signInEndpoints({ writer, dateMs }: ManagementParts, signing: SignInService): readonly WebEndpoint[] {
  const { sessions } = signing
  const signOut = (path: `/api/auth/${string}`, about: string, isEverywhere: boolean): WebEndpoint =>
    endpoint({
      method: 'POST',
      path,
      who: 'nobody',
      summary: about,
      answer: noContent,
      status: 204,
      async run({ by, ...visit }) {
        const current = await sessions.current(visit)
        if (current !== undefined) {
          const { personId, sessionId } = current
          const selection = isEverywhere ? {} : { only: sessionId }
          const input = { personId, ...selection, why: 'signed_out', nowMs: dateMs() } as const
          await writer.run('endSessions', input, { ...by, actor: actorSubject(personId) })
        }
        return { headers: sessions.gone(visit) }
      },
    })
  return [
    endpoint({
      method: 'POST',
      path: '/api/auth/sign-in',
      who: 'nobody',
      summary: 'Sign in.',
      body: z.strictObject({ email: z.string().max(300), password, code: code.optional() }),
      answer: SignedIn,
      run: ({ body, by, ...visit }) => signing.signIn(body, visit, by),
    }),
    endpoint({
      method: 'POST',
      path: '/api/auth/refresh',
      who: 'nobody',
      summary: 'Renew the session: get a new access token for the cookie of the sign-in.',
      answer: SignedIn,
      run: visit => sessions.renew(visit),
    }),
    signOut('/api/auth/sign-out', 'End the session of the cookie.', false),
    signOut('/api/auth/sign-out-everywhere', 'End all sessions of the person who has the cookie.', true),
  ]
}
