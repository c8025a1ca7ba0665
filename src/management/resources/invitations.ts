// Endpoints for invitations. The holder of the token joins with the address and role of the invitation. The token is
// shown once. When it is accepted, the inviting person must still have the right to give that role.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { textId } from '../../base/ids.ts'
import { DAY_MS, timeText } from '../../base/time.ts'
import { digestOpaqueToken, mintOpaqueToken } from '../../identity/opaque-token.ts'
import type { InvitationView } from '../../store/queries/people.ts'
import { accountRoles, actorIdOf, rankOf } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import { must } from '../web/issue-text.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf, listOf, listQuery, noContent, time, version } from './endpoint.ts'
import { buildListQuery, listAnswer, requireDone, requireFound, resourceUnknown } from './list-queries.ts'
import { accountRole, email, siteRole, token } from './people-fields.ts'

const DAYS = 7

const state = z
  .enum(['open', 'accepted', 'revoked', 'expired', 'invalid'])
  .meta({ description: 'invalid: it is open, but its author no longer has the right to what it offers' })

const Invitation = z
  .object({
    id: z.string(),
    kind: z.enum(['join', 'password']),
    email: z.string(),
    role: siteRole,
    account: z.string().nullable(),
    accountRole: accountRole.nullable(),
    by: z.string().nullable(),
    state,
    made: time,
    expires: time,
    version,
  })
  .meta({ id: 'Invitation' })

export const Invited = Invitation.extend({
  token: z.string().meta({ description: 'Shown once. Everybody who has it can join.' }),
}).meta({ id: 'Invited' })

function stateOf({ acceptedMs, revokedMs, expiresMs, isValid }: InvitationView, nowMs: number): z.infer<typeof state> {
  if (acceptedMs !== null) return 'accepted'
  if (revokedMs !== null) return 'revoked'
  if (expiresMs <= nowMs) return 'expired'
  return isValid ? 'open' : 'invalid'
}

export const showInvitation = (row: InvitationView, nowMs: number) => ({
  id: textId('inv', row.id),
  kind: row.kind,
  email: row.email,
  role: row.role,
  account: row.accountId === null ? null : textId('acc', row.accountId),
  accountRole: row.rank === null ? null : accountRoles[row.rank - 1]!,
  by: row.byId === null ? null : textId(row.isByToken ? 'tok' : 'usr', row.byId),
  state: stateOf(row, nowMs),
  made: timeText(row.madeMs),
  expires: timeText(row.expiresMs),
  version: row.version,
})

export const forbidden = (): Refusal => new Refusal('role_too_low', 'the role is above their own')
export const own = (): Refusal => new Refusal('role_too_low', 'themselves', { hint: hintOf('not_to_yourself') })
export const tooMany = (): Refusal => new Refusal('state_unfit', 'too many', { hint: hintOf('invitations_max') })

const days = z
  .number()
  .int()
  .min(1)
  .max(bounds.invitationMsMax / DAY_MS)
  .default(DAYS)

const NewInvitation = z
  .strictObject({
    email,
    role: siteRole.default('member'),
    account: idOf('acc').optional(),
    accountRole: accountRole.optional(),
    days,
  })
  .refine(({ account, accountRole: role }) => (account === undefined) === (role === undefined), {
    message: must('must_be_together'),
    path: ['accountRole'],
  })

export function invitationEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  const { queryWorker, writer, mintId, dateMs } = parts
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/invitations',
      who: { account: 'manager' },
      summary: 'List invitations: all of them, or those to accounts that you manage.',
      query: listQuery(
        { account: idOf('acc').optional(), email: z.string().max(254).optional(), open: z.stringbool().optional() },
        ['made', 'expires'],
      ),
      answer: listOf(Invitation),
      async run({ query, scope }) {
        const pageQuery = buildListQuery(query, scope, '-made')
        const nowMs = dateMs()
        const page = await queryWorker.query('invitations', { ...pageQuery, nowMs })
        return listAnswer(page, pageQuery, row => showInvitation(row, nowMs))
      },
    }),
    endpoint({
      method: 'POST',
      path: '/api/web/invitations',
      who: 'actor',
      summary: 'Invite a person to the site, or to an account that you manage, with a role that is not above your own.',
      body: NewInvitation,
      answer: Invited,
      status: 201,
      async run({ body, actor, by }) {
        const [id, secret] = [mintId(), mintOpaqueToken()]
        const { account: accountId, accountRole: role } = body
        const member = accountId === undefined ? null : { accountId, rank: rankOf(role!) }
        const invitation = { id, digest: digestOpaqueToken(secret), email: body.email, role: body.role, member }
        const nowMs = dateMs()
        const times = { nowMs, expiresMs: nowMs + body.days * DAY_MS }
        const result = await writer.run('invite', { actorId: actorIdOf(actor), ...invitation, ...times }, by)
        requireDone(result, { forbidden, too_many: tooMany, account_unknown: resourceUnknown })
        const row = requireFound(await queryWorker.query('invitation', { id, nowMs }))
        return { body: { ...showInvitation(row, nowMs), token: secret }, version: row.version }
      },
    }),
    ...acceptAndRevokeEndpoints(parts),
  ]
}

function acceptAndRevokeEndpoints({ writer, dateMs }: ManagementParts): readonly WebEndpoint[] {
  return [
    endpoint({
      method: 'POST',
      path: '/api/web/invitations/accept',
      who: 'person',
      summary: 'Accept an invitation to an account as the person who is signed in.',
      body: z.strictObject({ token }),
      answer: noContent,
      status: 204,
      async run({ body, actor, by }) {
        const invalid = new Refusal('invitation_invalid', 'unknown, used, revoked, too old, or for another')
        const digest = digestOpaqueToken(body.token)
        const input = { digest, personId: actor.personId, newcomer: null, nowMs: dateMs() }
        requireDone(await writer.run('acceptInvitation', input, by), { invalid, email_taken: invalid })
        return {}
      },
    }),
    endpoint({
      method: 'DELETE',
      path: '/api/web/invitations/{invitation}',
      who: 'actor',
      summary: 'Revoke an invitation that you made, or one to an account that you manage.',
      params: z.object({ invitation: idOf('inv') }),
      answer: noContent,
      status: 204,
      async run({ params, actor, by }) {
        const input = { actorId: actorIdOf(actor), id: params.invitation, nowMs: dateMs() }
        requireDone(await writer.run('revokeInvitation', input, by), { unknown: resourceUnknown })
        return {}
      },
    }),
  ]
}
