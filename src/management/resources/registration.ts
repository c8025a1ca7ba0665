// Endpoints for joining: with an invitation, or by registration if the site allows it. And for choosing a new password
// with a reset token.

import * as z from 'zod'
import { Refusal, refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { parseUsd } from '../../base/money/money.ts'
import { timeText } from '../../base/time.ts'
import { digestOpaqueToken } from '../../identity/opaque-token.ts'
import { domainOf } from '../../identity/password-rules.ts'
import { moneyText } from '../../store/ledger/money-text.ts'
import type { InvitationRow } from '../../store/people/people-reader.ts'
import { accountRoles, actorSubject } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { SignInService } from '../services/sign-in.ts'
import type { ClientInfo } from '../web/sessions.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, noContent, time } from './endpoint.ts'
import { requireDone } from './list-queries.ts'
import { accountRole, email, password, personName, SignedIn, siteRole, token } from './people-fields.ts'

const invalid = (): Refusal => new Refusal('invitation_invalid', 'unknown, used, revoked or too old')
const taken = (): Refusal =>
  new Refusal('name_taken', 'email', {
    param: 'email',
    hint: hintOf('email_taken_sign_in'),
  })

const creditTooHigh = (): Refusal => refusal('state_unfit', hintOf('posting_balance_high'))

/** Does not say whether somebody has the address: managers may invite any address, and can look at the invitation. */
const InvitationPreview = z
  .object({
    kind: z.enum(['join', 'password']),
    email: z.string(),
    site: z.string().meta({ description: 'The name of the site' }),
    role: siteRole,
    account: z.string().nullable().meta({ description: 'The name of the account; null: it is to the site' }),
    accountRole: accountRole.nullable(),
    expires: time,
  })
  .meta({ id: 'InvitationPreview' })

export function registrationEndpoints(parts: ManagementParts, signing: SignInService): readonly WebEndpoint[] {
  const { reader, writer, dateMs, mintId, site } = parts

  /** Checks the token before the password is hashed. Wrong tokens are counted. Without `kind`: an invitation of any kind. */
  async function findInvitation(
    kind: InvitationRow['kind'] | undefined,
    secret: string,
    visit: ClientInfo,
  ): Promise<InvitationRow> {
    const row = await reader.people.invitation(digestOpaqueToken(secret), dateMs())
    if (row !== undefined && (kind === undefined || row.kind === kind)) return row
    await signing.countWrongToken(visit)
    throw invalid()
  }

  return [
    endpoint({
      method: 'POST',
      path: '/api/auth/invitation/look',
      who: 'nobody',
      summary: 'Show what an invitation or a password reset is for, without using it up.',
      body: z.strictObject({ token }),
      answer: InvitationPreview,
      async run({ body, ...visit }) {
        const { member, expiresMs, ...row } = await findInvitation(undefined, body.token, visit)
        const inAccount = member && { account: member.account, accountRole: accountRoles[member.rank - 1]! }
        const place = { site: site.current.siteName, ...(inAccount ?? { account: null, accountRole: null }) }
        return { body: { ...row, ...place, expires: timeText(expiresMs) } }
      },
    }),
    endpoint({
      method: 'POST',
      path: '/api/auth/invitation',
      who: 'nobody',
      summary: 'Accept an invitation as a new person, and sign in.',
      body: z.strictObject({ token, name: personName, password }),
      answer: SignedIn,
      status: 201,
      async run({ body, by, ...visit }) {
        const row = await findInvitation('join', body.token, visit)
        const undo = await signing.tryJoining(row)
        const hash = await signing.hash(body.password, row.email).catch(fault => {
          undo()
          throw fault
        })
        const [personId, { insert, refresh }] = [mintId(), signing.sessions.draft(visit)]
        const { defaultTier: tier } = site.current
        const account = { id: mintId(), tier, credit: '0', creditRef: mintId() } as const
        const newcomer = { name: body.name, password: hash, account, session: insert }
        const input = { digest: digestOpaqueToken(body.token), personId, newcomer, nowMs: dateMs() }
        const result = await writer.run('acceptInvitation', input, { ...by, actor: actorSubject(personId) })
        if (result.done !== 'email_taken') undo()
        requireDone(result, { invalid, email_taken: taken })
        return signing.sessions.begun({ personId, sessionId: insert.id, ver: 1 }, refresh, visit)
      },
    }),
    endpoint({
      method: 'POST',
      path: '/api/auth/password',
      who: 'nobody',
      summary: 'Choose a new password with a token from an admin. All sessions end.',
      body: z.strictObject({ token, password }),
      answer: noContent,
      status: 204,
      async run({ body, by, ...visit }) {
        const row = await findInvitation('password', body.token, visit)
        const hash = await signing.hash(body.password, row.email)
        const input = { digest: digestOpaqueToken(body.token), password: hash, nowMs: dateMs() }
        requireDone(await writer.run('resetPassword', input, by), { invalid })
        return {}
      },
    }),
    registrationEndpoint(parts, signing),
  ]
}

function registrationEndpoint({ writer, dateMs, mintId, site }: ManagementParts, signing: SignInService): WebEndpoint {
  return endpoint({
    method: 'POST',
    path: '/api/auth/registration',
    who: 'nobody',
    summary: 'Register, if the site allows it, and sign in.',
    body: z.strictObject({ name: personName, email, password }),
    answer: SignedIn,
    status: 201,
    async run({ body, by, ...visit }) {
      const { registration, allowedDomains, startingCredit, defaultTier: tier } = site.current
      if (registration === 'off') throw new Refusal('registration_closed', 'off')
      if (allowedDomains.length > 0 && !allowedDomains.includes(domainOf(body.email))) {
        throw new Refusal('registration_closed', 'another domain', {
          hint: hintOf('email_domain'),
          param: 'email',
        })
      }
      await signing.register(visit)
      const hash = await signing.hash(body.password, body.email)
      const [personId, { insert, refresh }] = [mintId(), signing.sessions.draft(visit)]
      const account = { id: mintId(), tier, credit: moneyText(parseUsd(startingCredit)!), creditRef: mintId() }
      const person = { id: personId, email: body.email, name: body.name, password: hash }
      const input = { person, account, session: insert, nowMs: dateMs() }
      const result = await writer.run('register', input, { ...by, actor: actorSubject(personId) })
      requireDone(result, { email_taken: taken, balance_too_high: creditTooHigh })
      return signing.sessions.begun({ personId, sessionId: insert.id, ver: 1 }, refresh, visit)
    },
  })
}
