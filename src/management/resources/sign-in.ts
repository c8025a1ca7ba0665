// Endpoints for signing in and out. A cookie keeps a person signed in; browsers send it only to these endpoints.

import * as z from 'zod'
import { Refusal } from '../../base/errors.ts'
import { actorSubject } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { SignInService } from '../services/sign-in.ts'
import { siteInfo } from '../services/site-settings.ts'
import { hasSessionCookie } from '../web/sessions.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, noContent } from './endpoint.ts'
import { Me, showMe } from './me.ts'
import { code, password, SignedIn } from './people-fields.ts'
import { lookFields } from './site-look.ts'

export function signInEndpoints(parts: ManagementParts, signing: SignInService): readonly WebEndpoint[] {
  const { writer, dateMs } = parts
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
      async run(visit) {
        const renewed = await sessions.renew(visit)
        if (renewed !== undefined) return renewed.answer
        throw new Refusal('session_over', 'no valid refresh token', { headers: sessions.gone(visit) })
      },
    }),
    startEndpoint(parts, signing),
    signOut('/api/auth/sign-out', 'End the session of the cookie.', false),
    signOut('/api/auth/sign-out-everywhere', 'End all sessions of the person who has the cookie.', true),
  ]
}

const Site = z
  .object({
    name: z.string(),
    notice: z.string().nullable().meta({ description: 'A notice of the operator for everybody' }),
    registration: z.boolean().meta({ description: 'True: everybody may register' }),
    ...lookFields,
    version: z.string().meta({ description: 'The version of Weir' }),
    build: z.string().nullable().meta({ description: 'The build of the console; null: it was not built' }),
  })
  .meta({ id: 'Site' })

const Start = z
  .object({
    setupNeeded: z.boolean().meta({ description: 'True: the gateway has no owner yet' }),
    site: Site,
    signedIn: SignedIn.pick({ accessToken: true, expiresInSeconds: true }).optional(),
    me: Me.optional(),
  })
  .meta({ id: 'Start' })

/** Everything that a page needs to start, in one request that never fails because nobody is signed in. */
function startEndpoint(parts: ManagementParts, { sessions }: SignInService): WebEndpoint {
  const { reader, site, version, consoleBuild } = parts
  return endpoint({
    method: 'POST',
    path: '/api/auth/session',
    who: 'nobody',
    summary: 'Start a page: show the site and, with the cookie of a sign-in, renew the session and show the person.',
    answer: Start,
    async run(visit) {
      const setupNeeded = !(await reader.people.hasOwner())
      const start = { setupNeeded, site: { ...siteInfo(site.current, version), build: consoleBuild } }
      const renewed = await sessions.renew(visit)
      const me = renewed && (await showMe(parts, { ...renewed.session, role: renewed.answer.body.user.role }))
      if (renewed !== undefined && me !== undefined) {
        const { body: signedIn, headers } = renewed.answer
        return { body: { ...start, signedIn, me: me.body }, headers }
      }
      return { body: start, ...(hasSessionCookie(visit.header('cookie')) && { headers: sessions.gone(visit) }) }
    },
  })
}
