// Coming in: with an invitation, or, where the site is open, without. And another password, for whoever was given a
// token to choose one.

import * as z from 'zod'
import { Refusal } from '../../base/errors.ts'
import { parseUsd } from '../../base/money/money.ts'
import { digestOpaque } from '../../identity/opaque-token.ts'
import { domainOf } from '../../identity/password-rules.ts'
import { moneyText } from '../../store/ledger/money-text.ts'
import type { InvitationRow } from '../../store/people/people-reader.ts'
import { subjectOf } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { SigningIn } from '../services/sign-in.ts'
import type { Visit } from '../web/sessions.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, nothing } from './endpoint.ts'
import { done } from './listing.ts'
import { email, password, personName, SignedIn, token } from './people-fields.ts'

const invalid = (): Refusal => new Refusal('invitation_invalid', 'unknown, used, revoked or too old')
const taken = (): Refusal =>
  new Refusal('name_taken', 'email', { param: 'email', hint: 'Somebody has this address. Sign in.' })

export function joiningEndpoints(parts: ManagementParts, signing: SigningIn): readonly WebEndpoint[] {
  const { reader, writer, dateMs, mintId, site } = parts

  /** Guesses cost no hash, and are counted. */
  function invited(kind: InvitationRow['kind'], secret: string, visit: Visit): InvitationRow {
    const right = signing.guess(visit)
    const row = reader.people.invitation(digestOpaque(secret), dateMs())
    if (row?.kind !== kind) throw invalid()
    right()
    return row
  }

  return [
    endpoint({
      method: 'POST',
      path: '/api/auth/invitation',
      who: 'nobody',
      about: 'Accept an invitation as somebody new, and be signed in.',
      body: z.strictObject({ token, name: personName, password }),
      answer: SignedIn,
      status: 201,
      async run({ body, by, ...visit }) {
        const row = invited('join', body.token, visit)
        const hash = await signing.hash(body.password, row.email)
        const [personId, { insert, refresh }] = [mintId(), signing.sessions.draft(visit)]
        const { defaultTier: tier } = site.current
        const account = { id: mintId(), tier, credit: '0', creditRef: mintId() } as const
        const newcomer = { name: body.name, password: hash, account, session: insert }
        const asked = { digest: digestOpaque(body.token), personId, newcomer, nowMs: dateMs() }
        const result = await writer.run('acceptInvitation', asked, { ...by, actor: subjectOf(personId) })
        done(result, { invalid, email_taken: taken })
        return signing.sessions.begun({ personId, sessionId: insert.id, ver: 1 }, refresh, visit)
      },
    }),
    endpoint({
      method: 'POST',
      path: '/api/auth/password',
      who: 'nobody',
      about: 'Choose another password, with the token that an admin has given to you. All sessions end.',
      body: z.strictObject({ token, password }),
      answer: nothing,
      status: 204,
      async run({ body, by, ...visit }) {
        const row = invited('password', body.token, visit)
        const hash = await signing.hash(body.password, row.email)
        const asked = { digest: digestOpaque(body.token), password: hash, nowMs: dateMs() }
        done(await writer.run('resetPassword', asked, by), { invalid })
        return {}
      },
    }),
    registering(parts, signing),
  ]
}

function registering({ writer, dateMs, mintId, site }: ManagementParts, signing: SigningIn): WebEndpoint {
  return endpoint({
    method: 'POST',
    path: '/api/auth/registration',
    who: 'nobody',
    about: 'Register, where the site is open, and be signed in.',
    body: z.strictObject({ name: personName, email, password }),
    answer: SignedIn,
    status: 201,
    async run({ body, by, ...visit }) {
      const { registration, allowedDomains, startingCredit, defaultTier: tier } = site.current
      if (registration === 'off') throw new Refusal('registration_closed', 'off')
      if (allowedDomains.length > 0 && !allowedDomains.includes(domainOf(body.email))) {
        throw new Refusal('registration_closed', 'another domain', { hint: 'Not with this address.', param: 'email' })
      }
      signing.register(visit)
      const hash = await signing.hash(body.password, body.email)
      const [personId, { insert, refresh }] = [mintId(), signing.sessions.draft(visit)]
      const account = { id: mintId(), tier, credit: moneyText(parseUsd(startingCredit)!), creditRef: mintId() }
      const person = { id: personId, email: body.email, name: body.name, password: hash }
      const asked = { person, account, session: insert, nowMs: dateMs() }
      const result = await writer.run('register', asked, { ...by, actor: subjectOf(personId) })
      done(result, { email_taken: taken })
      return signing.sessions.begun({ personId, sessionId: insert.id, ver: 1 }, refresh, visit)
    },
  })
}
