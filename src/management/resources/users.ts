// Endpoints for staff to manage people.

import * as z from 'zod'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { textId } from '../../base/ids.ts'
import { DAY_MS, timeOrNull, timeText } from '../../base/time.ts'
import { digestOpaqueToken, mintOpaqueToken } from '../../identity/opaque-token.ts'
import type { PersonView } from '../../store/queries/people.ts'
import type { Actor } from '../actor.ts'
import { accountRoles, actorIdOf } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import { writeRights } from '../services/keys.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf, listOf, listQuery, noContent, time, version } from './endpoint.ts'
import { forbidden, Invited, own, showInvitation, tooMany } from './invitations.ts'
import { buildListQuery, listAnswer, requireDone, requireFound, resourceUnknown } from './list-queries.ts'
import { accountRole, email, personName, siteRole } from './people-fields.ts'
import { Session, SessionsEnded, sessionQuery, showSession } from './sessions.ts'

const User = z
  .object({
    id: z.string(),
    email: z.string(),
    name: z.string(),
    role: siteRole,
    disabled: z.boolean(),
    removed: z.boolean(),
    secondFactor: z.boolean(),
    accounts: z.number().meta({ description: 'The number of accounts of which they are a member' }),
    lastSignIn: time.nullable(),
    created: time,
    version,
  })
  .meta({ id: 'User' })

const show = ({ id, signedMs, createdMs, role, ...row }: PersonView) => ({
  ...row,
  id: textId('usr', id),
  role: role as z.infer<typeof siteRole>,
  lastSignIn: timeOrNull(signedMs),
  created: timeText(createdMs),
})

const lastOwner = (): Refusal => new Refusal('last_owner', 'the only one')
const taken = (): Refusal => new Refusal('name_taken', 'email', { param: 'email', hint: hintOf('email_taken') })
const refusals = { unknown: resourceUnknown, forbidden, own, last_owner: lastOwner }
const params = z.object({ user: idOf('usr') })

export function userEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  const { queryWorker } = parts
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/users',
      who: { site: 'support' },
      summary: 'List people.',
      query: listQuery(
        {
          email: z.string().max(254).optional(),
          name: z.string().max(100).optional(),
          role: siteRole.optional(),
          disabled: z.stringbool().optional(),
          removed: z.stringbool().optional(),
        },
        ['created', 'email', 'name'],
      ),
      answer: listOf(User),
      async run({ query, scope }) {
        const pageQuery = buildListQuery(query, scope, 'created')
        return listAnswer(await queryWorker.query('people', pageQuery), pageQuery, show)
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/users/{user}',
      who: { site: 'support' },
      summary: 'Show a person.',
      params,
      answer: User,
      run: ({ params: { user } }) => showUser(parts, user),
    }),
    ...writeEndpoints(parts),
    ...membershipEndpoints(parts),
    ...userSessionEndpoints(parts),
  ]
}

const Membership = z
  .object({
    account: z.string(),
    name: z.string(),
    type: z.enum(['personal', 'team']),
    role: accountRole,
    added: time,
    version,
  })
  .meta({ id: 'Membership' })

function membershipEndpoints({ queryWorker }: ManagementParts): readonly WebEndpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/users/{user}/accounts',
      who: { site: 'support' },
      summary: 'List the accounts of which a person is a member.',
      params,
      query: listQuery({}, ['added', 'name']),
      answer: listOf(Membership),
      async run({ params: { user }, query, scope }) {
        requireFound(await queryWorker.query('person', { id: user }))
        const pageQuery = buildListQuery({ ...query, person: user }, scope, 'added')
        return listAnswer(await queryWorker.query('memberships', pageQuery), pageQuery, row => ({
          account: textId('acc', row.accountId),
          name: row.name,
          type: row.type as 'personal' | 'team',
          role: accountRoles[row.rank - 1]!,
          added: timeText(row.addedMs),
          version: row.version,
        }))
      },
    }),
  ]
}

function userSessionEndpoints({ queryWorker, writer, dateMs }: ManagementParts): readonly WebEndpoint[] {
  const path = '/api/web/users/{user}/sessions'
  const ending = (actor: Actor) => ({ actorId: actorIdOf(actor), why: 'revoked', nowMs: dateMs() }) as const
  const unable = { unknown: resourceUnknown, forbidden }
  return [
    endpoint({
      method: 'GET',
      path,
      who: { site: 'support' },
      summary: 'List the sessions of a person.',
      params,
      query: sessionQuery,
      answer: listOf(Session),
      async run({ params: { user }, query, actor }) {
        requireFound(await queryWorker.query('person', { id: user }))
        const pageQuery = buildListQuery({ ...query, person: user }, null, '-made')
        return listAnswer(await queryWorker.query('sessions', pageQuery), pageQuery, row => showSession(row, actor))
      },
    }),
    endpoint({
      method: 'DELETE',
      path,
      who: { site: 'admin' },
      summary: 'End all sessions of a person. Admins cannot end those of owners.',
      params,
      answer: SessionsEnded,
      async run({ params: { user }, actor, by }) {
        const result = requireDone(await writer.run('endSessions', { ...ending(actor), personId: user }, by), unable)
        return { body: { ended: 'count' in result ? result.count : 0 } }
      },
    }),
    endpoint({
      method: 'DELETE',
      path: `${path}/{session}`,
      who: { site: 'admin' },
      summary: 'End one session of a person. Admins cannot end those of owners.',
      params: z.object({ ...params.shape, session: idOf('ses') }),
      answer: noContent,
      status: 204,
      async run({ params: { user, session }, actor, by }) {
        const input = { ...ending(actor), personId: user, only: session }
        requireDone(await writer.run('endSessions', input, by), unable)
        return {}
      },
    }),
  ]
}

async function showUser({ queryWorker }: ManagementParts, id: number) {
  const row = requireFound(await queryWorker.query('person', { id }))
  return { body: show(row), version: row.version }
}

function writeEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  const { queryWorker, writer, mintId, dateMs } = parts
  return [
    endpoint({
      method: 'PATCH',
      path: '/api/web/users/{user}',
      who: { site: 'admin' },
      summary: 'Change another person. Admins cannot change owners. A new role ends the sessions of the person.',
      params,
      body: z.strictObject({
        name: personName.optional(),
        email: email.optional().meta({ description: 'The email address that the person signs in with.' }),
        role: siteRole.optional(),
        disabled: z.boolean().optional(),
      }),
      answer: User,
      async run({ params: { user }, body, actor, by }) {
        const input = { actorId: actorIdOf(actor), id: user, ...body, nowMs: dateMs() }
        const result = await writeRights(parts, writer.run('setPerson', input, by))
        requireDone(result, { ...refusals, email_taken: taken })
        return showUser(parts, user)
      },
    }),
    endpoint({
      method: 'DELETE',
      path: '/api/web/users/{user}',
      who: { site: 'admin' },
      summary: 'Remove a person: deletes name, email address, password and memberships. Their audit log entries stay.',
      params,
      answer: noContent,
      status: 204,
      async run({ params: { user }, actor, by }) {
        const input = { actorId: actorIdOf(actor), id: user, nowMs: dateMs() }
        requireDone(await writeRights(parts, writer.run('removePerson', input, by)), refusals)
        return {}
      },
    }),
    endpoint({
      method: 'POST',
      path: '/api/web/users/{user}/password-reset',
      who: { site: 'admin', onlyPeople: true },
      summary: 'Create a token with which a person can choose a new password within a day.',
      params,
      answer: Invited,
      status: 201,
      async run({ params: { user }, actor, by }) {
        const [id, secret, nowMs] = [mintId(), mintOpaqueToken(), dateMs()]
        const reset = { id, digest: digestOpaqueToken(secret), personId: user, expiresMs: nowMs + DAY_MS, nowMs }
        const result = await writer.run('inviteToReset', { actorId: actorIdOf(actor), ...reset }, by)
        requireDone(result, { ...refusals, too_many: tooMany })
        const row = requireFound(await queryWorker.query('invitation', { id, nowMs }))
        return { body: { ...showInvitation(row, nowMs), token: secret }, version: row.version }
      },
    }),
  ]
}
