// Endpoints for the members of an account and their roles.

import * as z from 'zod'
import { Refusal } from '../../base/errors.ts'
import { textId } from '../../base/ids.ts'
import { timeText } from '../../base/time.ts'
import type { MemberView } from '../../store/queries/people.ts'
import { accountRoles, actorIdOf, rankOf } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import { writeRights } from '../services/keys.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf, listOf, listQuery, noContent, time, version } from './endpoint.ts'
import { forbidden, own } from './invitations.ts'
import { buildListQuery, listAnswer, requireDone, requireFound, resourceUnknown } from './list-queries.ts'
import { accountRole } from './people-fields.ts'

const Member = z
  .object({ user: z.string(), email: z.string(), name: z.string(), role: accountRole, added: time, version })
  .meta({ id: 'Member' })

const account = idOf('acc')
const one = z.object({ account, user: idOf('usr') })

const show = (row: MemberView) => ({
  user: textId('usr', row.personId),
  email: row.email,
  name: row.name,
  role: accountRoles[row.rank - 1]!,
  added: timeText(row.addedMs),
  version: row.version,
})

export function memberEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  const { queryWorker, writer, dateMs } = parts
  async function showOne(accountId: number, personId: number) {
    const pageQuery = { scope: null, filters: { account: accountId, person: personId }, limit: 1 }
    const { rows } = await queryWorker.query('members', { ...pageQuery, sort: 'added', descending: false })
    const row = requireFound(rows[0])
    return { body: show(row), version: row.version }
  }
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/accounts/{account}/members',
      who: { account: 'viewer' },
      summary: 'List the members of an account.',
      params: z.object({ account }),
      query: listQuery({}, ['added', 'email']),
      answer: listOf(Member),
      async run({ params, query, scope }) {
        requireFound((await queryWorker.query('seesAccount', { id: params.account, scope })) || undefined)
        const pageQuery = buildListQuery({ ...query, account: params.account }, scope, 'added')
        return listAnswer(await queryWorker.query('members', pageQuery), pageQuery, show)
      },
    }),
    endpoint({
      method: 'POST',
      path: '/api/web/accounts/{account}/members',
      who: { site: 'admin' },
      summary: 'Add an existing person to an account. Managers send an invitation instead.',
      params: z.object({ account }),
      body: z.strictObject({ user: idOf('usr'), role: accountRole }),
      answer: Member,
      status: 201,
      async run({ params, body, actor, by }) {
        const added = { accountId: params.account, personId: body.user, rank: rankOf(body.role) }
        const input = { actorId: actorIdOf(actor), ...added, isNew: true, nowMs: dateMs() }
        const exists = new Refusal('name_taken', 'a member', { param: 'user' })
        requireDone(await writer.run('setMember', input, by), { unknown: resourceUnknown, exists, forbidden })
        return showOne(params.account, body.user)
      },
    }),
    endpoint({
      method: 'PATCH',
      path: '/api/web/accounts/{account}/members/{user}',
      who: { account: 'manager' },
      summary: 'Change the role of a member. Nobody changes their own role.',
      params: one,
      body: z.strictObject({ role: accountRole }),
      answer: Member,
      async run({ params, body, actor, by }) {
        const changed = { accountId: params.account, personId: params.user, rank: rankOf(body.role) }
        const input = { actorId: actorIdOf(actor), ...changed, isNew: false, nowMs: dateMs() }
        const result = await writeRights(parts, writer.run('setMember', input, by))
        requireDone(result, { unknown: resourceUnknown, forbidden, own })
        return showOne(params.account, params.user)
      },
    }),
    endpoint({
      method: 'DELETE',
      path: '/api/web/accounts/{account}/members/{user}',
      who: { account: 'viewer' },
      summary: 'Remove a member from an account that you manage, or leave an account yourself.',
      params: one,
      answer: noContent,
      status: 204,
      async run({ params, actor, by }) {
        const removed = { accountId: params.account, personId: params.user }
        const input = { actorId: actorIdOf(actor), ...removed, nowMs: dateMs() }
        const result = await writeRights(parts, writer.run('removeMember', input, by))
        requireDone(result, { unknown: resourceUnknown, forbidden })
        return {}
      },
    }),
  ]
}
