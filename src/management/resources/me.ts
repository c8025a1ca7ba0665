// Endpoints for the person who is signed in.

import * as z from 'zod'
import { Refusal } from '../../base/errors.ts'
import { textId } from '../../base/ids.ts'
import { timeText } from '../../base/time.ts'
import { accountRoles, isAtLeast } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { SignInService } from '../services/sign-in.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, noContent, time } from './endpoint.ts'
import { requireDone, requireFound, resourceUnknown } from './list-queries.ts'
import { accountRole, email, password, personName, siteRole } from './people-fields.ts'

const Me = z
  .object({
    /** Null: the operator at the command line. */
    id: z.string().nullable(),
    email: z.string().nullable(),
    name: z.string(),
    role: siteRole,
    session: z.string(),
    secondFactor: z.boolean(),
    created: time.nullable(),
    accounts: z.array(z.object({ account: z.string(), name: z.string(), role: accountRole })),
  })
  .meta({ id: 'Me' })

const taken = (): Refusal => new Refusal('name_taken', 'email', { param: 'email' })
const notByMembers = (): Refusal =>
  new Refusal('role_too_low', 'email', { param: 'email', hint: 'Only an admin can change your email address.' })
const passwordNeeded = { param: 'currentPassword', hint: 'Send your password in "currentPassword".' }

export function meEndpoints(parts: ManagementParts, signing: SignInService): readonly WebEndpoint[] {
  const { queryWorker, writer, dateMs } = parts
  async function show({ personId, role, sessionId }: { personId: number; role: string; sessionId: number }) {
    const session = textId('ses', sessionId)
    const own = { session, role: role as z.infer<typeof siteRole> }
    if (personId === 0) {
      const operator = { id: null, email: null, name: 'operator', secondFactor: false, created: null, accounts: [] }
      return { body: { ...operator, ...own } }
    }
    const { version, createdMs, accounts, ...person } = requireFound(await queryWorker.query('me', { id: personId }))
    const members = accounts.map(({ accountId, name, rank }) => ({
      account: textId('acc', accountId),
      name,
      role: accountRoles[rank - 1]!,
    }))
    const created = timeText(createdMs)
    return { body: { ...person, ...own, id: textId('usr', personId), created, accounts: members }, version }
  }
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/me',
      who: 'person',
      summary: 'Show your own profile and accounts.',
      answer: Me,
      run: ({ actor }) => show(actor),
    }),
    endpoint({
      method: 'PATCH',
      path: '/api/web/me',
      who: 'person',
      summary:
        'Change your name, or your email address with your current password. Members must ask an admin for the latter.',
      body: z.strictObject({
        name: personName.optional(),
        email: email.optional(),
        currentPassword: password.optional(),
      }),
      answer: Me,
      async run({ actor, body: { currentPassword, ...body }, by, ...visit }) {
        if (body.email !== undefined) {
          // Checked first, so that the answer does not depend on whether another person has the address.
          if (!isAtLeast(actor.role, 'support')) throw notByMembers()
          if (currentPassword === undefined) throw new Refusal('password_wrong', 'none', passwordNeeded)
          await signing.confirm(actor.personId, currentPassword, visit)
        }
        const input = { id: actor.personId, ...body }
        requireDone(await writer.run('setProfile', input, by), { unknown: resourceUnknown, email_taken: taken })
        return show(actor)
      },
    }),
    endpoint({
      method: 'POST',
      path: '/api/web/me/password',
      who: 'person',
      summary: 'Choose a new password. All your other sessions end; this one stays valid.',
      body: z.strictObject({ currentPassword: password, password }),
      answer: noContent,
      status: 204,
      async run({ actor, body, by, ...visit }) {
        const person = await signing.confirm(actor.personId, body.currentPassword, visit)
        const hash = await signing.hash(body.password, person.email)
        const input = { id: person.id, password: hash, sessionId: actor.sessionId, nowMs: dateMs() }
        requireDone(await writer.run('setPassword', input, by), { unknown: resourceUnknown })
        return {}
      },
    }),
  ]
}
