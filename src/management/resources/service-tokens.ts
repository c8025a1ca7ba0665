// Endpoints for service tokens: the credentials of programs for this interface. The text of a token is shown when it is
// created or rotated, and never again. Nobody can create, change or rotate a token with more rights than their own.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { Refusal, refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { textId } from '../../base/ids.ts'
import { timeOrNull, timeText } from '../../base/time.ts'
import { credentialSuffix } from '../../identity/credential-format.ts'
import { digestServiceToken, mintServiceToken } from '../../identity/service-token-format.ts'
import type { Scope } from '../../store/queries/paging.ts'
import type { ServiceTokenView } from '../../store/queries/service-tokens.ts'
import { accountRoles, actorIdOf, rankOf, siteRoles } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import { stateFilters, stateOf } from '../services/key-state.ts'
import { writeRights } from '../services/keys.ts'
import { must } from '../web/issue-text.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf, listOf, listQuery, noContent, time, version } from './endpoint.ts'
import { expiry, label, refusePastExpiry } from './fields.ts'
import { buildListQuery, listAnswer, requireDone, requireFound, resourceUnknown } from './list-queries.ts'
import { accountRole } from './people-fields.ts'

const OVERLAP_SECONDS = 300

/** A member of the site has no rights beyond accounts, so a token of the site has a higher role. */
const siteTokenRole = z.enum(siteRoles.slice(1) as unknown as ['support', 'admin', 'owner'])
const states = ['active', 'expired', 'revoked'] as const

const ServiceToken = z
  .object({
    id: z.string(),
    name: z.string(),
    suffix: z.string(),
    role: siteTokenRole.nullable().meta({ description: 'Its role for the site; null: it is of one account' }),
    account: z.string().nullable(),
    accountRole: accountRole.nullable(),
    state: z.enum(states),
    creator: z.string().meta({
      description: 'Who created it, or created the token that created it: `usr_…` or `cli`; also if they were removed',
    }),
    created: time,
    expires: time.nullable(),
    lastUsed: time.nullable().meta({ description: 'To the minute' }),
    revoked: time.nullable(),
    oldTextUntil: time.nullable().meta({ description: 'Until when the text before the last rotation still works' }),
    version,
  })
  .meta({ id: 'ServiceToken' })

/** A service token with its text. */
const NewServiceToken = ServiceToken.extend({ token: z.string() }).meta({ id: 'NewServiceToken' })

const show = (row: ServiceTokenView, nowMs: number): z.input<typeof ServiceToken> => ({
  id: textId('tok', row.id),
  name: row.name,
  suffix: row.suffix,
  role: row.role === 'member' ? null : row.role,
  account: row.accountId === null ? null : textId('acc', row.accountId),
  accountRole: row.rank === null ? null : accountRoles[row.rank - 1]!,
  state: stateOf({ ...row, disabledMs: null }, nowMs) as (typeof states)[number],
  creator: row.creator,
  created: timeText(row.createdMs),
  expires: timeOrNull(row.expiresMs),
  lastUsed: timeOrNull(row.usedMs),
  revoked: timeOrNull(row.revokedMs),
  oldTextUntil: row.oldUntilMs !== null && row.oldUntilMs > nowMs ? timeText(row.oldUntilMs) : null,
  version: row.version,
})

const params = z.object({ token: idOf('tok') })

const Wanted = z
  .strictObject({
    name: label,
    role: siteTokenRole.optional().meta({ description: 'For the whole site; not together with `account`' }),
    account: idOf('acc').optional().meta({ description: 'The only account of the token; needs `accountRole`' }),
    accountRole: accountRole.optional(),
    expires: expiry.default(null),
  })
  .refine(
    ({ role, account, accountRole: inAccount }) =>
      (role === undefined) === (account !== undefined) && (role === undefined) === (inAccount !== undefined),
    { message: must('must_be_token_role'), path: ['role'] },
  )
  .meta({ examples: [{ name: 'ci', role: 'admin' }] })

const forbidden = (): Refusal => new Refusal('role_too_low', 'above their own', { hint: hintOf('token_above_own') })
const outlives = (): Refusal =>
  new Refusal('role_too_low', 'expiry', {
    param: 'expires',
    hint: hintOf('token_outlives'),
  })
const nameTaken = (): Refusal =>
  new Refusal('name_taken', 'service token', { param: 'name', hint: hintOf('token_name_taken') })
const revoked = (): Refusal => refusal('state_unfit', hintOf('token_revoked'))
const tooMany = (): Refusal => refusal('state_unfit', hintOf('tokens_max', { max: bounds.serviceTokensMax }))
const refusals = { unknown: resourceUnknown, forbidden, outlives, revoked, name_taken: nameTaken }

/** A new text, and what is stored of it. */
function mint() {
  const text = mintServiceToken()
  return { text, stored: { digest: digestServiceToken(text).toString('hex'), suffix: credentialSuffix(text) } }
}

export function serviceTokenEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  const { queryWorker, dateMs } = parts
  async function showOne(id: number, scope: Scope | null) {
    const row = requireFound(await queryWorker.query('serviceToken', { id, scope }))
    return { body: show(row, dateMs()), version: row.version }
  }
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/service-tokens',
      who: { account: 'manager' },
      summary: 'List service tokens: all of them, or those of accounts that you manage.',
      query: listQuery(
        {
          account: idOf('acc').optional(),
          name: z.string().max(100).optional().meta({ description: 'The beginning of the name' }),
          state: z.enum(states).optional(),
          creator: z.string().max(100).optional().meta({ description: 'Who created it, such as usr_…' }),
        },
        ['created', 'name'],
      ),
      answer: listOf(ServiceToken),
      async run({ query: { state, ...query }, scope }) {
        const nowMs = dateMs()
        const pageQuery = buildListQuery({ ...query, ...stateFilters(state, nowMs) }, scope, '-created')
        return listAnswer(await queryWorker.query('serviceTokens', pageQuery), pageQuery, row => show(row, nowMs))
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/service-tokens/{token}',
      who: { account: 'manager' },
      summary: 'Show a service token.',
      params,
      answer: ServiceToken,
      run: ({ params: { token }, scope }) => showOne(token, scope),
    }),
    ...writeEndpoints(parts, showOne),
  ]
}

type ShowOne = (id: number, scope: null) => Promise<{ body: z.input<typeof ServiceToken>; version: number }>

function writeEndpoints(parts: ManagementParts, showOne: ShowOne): readonly WebEndpoint[] {
  const { writer, mintId, dateMs } = parts
  const overlapSeconds = z
    .number()
    .int()
    .min(0)
    .max(bounds.keyOverlapMsMax / 1_000)
    .default(OVERLAP_SECONDS)
  return [
    endpoint({
      method: 'POST',
      path: '/api/web/service-tokens',
      who: { account: 'manager' },
      summary:
        'Create a service token, with a role for the site or in one account. Its text is in this answer and is never ' +
        'shown again.',
      body: Wanted,
      answer: NewServiceToken,
      status: 201,
      async run({ body: { account, accountRole: inAccount, name, role, expires }, actor, scope, by }) {
        refusePastExpiry(expires, dateMs())
        const [id, { text, stored }] = [mintId(), mint()]
        const member = account === undefined ? null : { accountId: account, rank: rankOf(inAccount!) }
        const rights = { role: role ?? ('member' as const), member, expiresMs: expires }
        const token = { id, ...stored, name, ...rights, creator: by.actor }
        const result = await writer.run('createServiceToken', { actorId: actorIdOf(actor), scope, ...token }, by)
        requireDone(result, { ...refusals, account_unknown: resourceUnknown, too_many: tooMany })
        const { body, version } = await showOne(id, null)
        return { body: { ...body, token: text }, version }
      },
    }),
    endpoint({
      method: 'PATCH',
      path: '/api/web/service-tokens/{token}',
      who: { account: 'manager' },
      summary: 'Change the name or the expiry of a service token.',
      params,
      body: z.strictObject({ name: label, expires: expiry }).partial(),
      answer: ServiceToken,
      async run({ params: { token: id }, body: { name, expires }, actor, scope, by }) {
        refusePastExpiry(expires, dateMs())
        const input = { actorId: actorIdOf(actor), scope, id, name, expiresMs: expires }
        requireDone(await writer.run('setServiceToken', input, by), refusals)
        return showOne(id, null)
      },
    }),
    endpoint({
      method: 'POST',
      path: '/api/web/service-tokens/{token}/rotate',
      who: { account: 'manager' },
      summary:
        'Replace the text of a service token. The new text is never shown again; the old one works for ' +
        '`overlapSeconds` more.',
      params,
      body: z.strictObject({ overlapSeconds }),
      answer: NewServiceToken,
      async run({ params: { token: id }, body, actor, scope, by }) {
        const { text, stored } = mint()
        const untilMs = body.overlapSeconds === 0 ? null : dateMs() + body.overlapSeconds * 1_000
        const input = { actorId: actorIdOf(actor), scope, id, ...stored, untilMs }
        requireDone(await writer.run('rotateServiceToken', input, by), refusals)
        const { body: token, version } = await showOne(id, null)
        return { body: { ...token, token: text }, version }
      },
    }),
    endpoint({
      method: 'DELETE',
      path: '/api/web/service-tokens/{token}',
      who: { account: 'manager' },
      summary: 'Revoke a service token for good. It stays in the list for 90 days.',
      params,
      answer: noContent,
      status: 204,
      async run({ params: { token: id }, actor, scope, by }) {
        const input = { actorId: actorIdOf(actor), scope, id }
        const result = await writeRights(parts, writer.run('revokeServiceToken', input, by))
        requireDone(result, { unknown: resourceUnknown, forbidden })
        return {}
      },
    }),
  ]
}
