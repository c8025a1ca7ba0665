// Endpoints for limits of calls, tokens and concurrency. Changes apply from the next call on.

import * as z from 'zod'
import { Refusal, refusal } from '../../base/errors.ts'
import type { HintedError } from '../../base/hints.ts'
import { hintOf } from '../../base/hints.ts'
import { textId } from '../../base/ids.ts'
import { checkLimit } from '../../limits/limit-check.ts'
import type { LimitDetails } from '../../store/queries/limits.ts'
import type { LimitRow } from '../../store/rules/rules.ts'
import { limitScopes } from '../../store/rules/rules.ts'
import type { ManagementParts } from '../management-parts.ts'
import { limitWarning } from '../services/rule-check.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf, listOf, listQuery, managedBy, noContent, numberOfText, version } from './endpoint.ts'
import { modelPattern, tierName } from './fields.ts'
import { shownWarnings, warnings } from './hint-schema.ts'
import { buildListQuery, listAnswer, requireDone, requireFound, resourceUnknown, tierUnknown } from './list-queries.ts'

const resource = z.enum(['requests', 'tokens', 'concurrency'])
const span = z.enum(['minute', 'day']).nullable().meta({ description: 'Null for concurrency, which has no period' })
const whole = z.number().int().min(1)
const per = z.array(z.enum(limitScopes)).max(limitScopes.length)

const Limit = z
  .object({
    id: z.number(),
    resource,
    span,
    amount: whole,
    key: z.string().nullable(),
    keyName: z.string().nullable(),
    account: z.string().nullable(),
    accountName: z.string().nullable(),
    tier: z.string().nullable(),
    model: z.string().nullable(),
    per,
    version,
    managedBy,
  })
  .meta({ id: 'Limit' })

/** The fields of a limit that a request and a configuration file have in common. */
export const limitFields = { resource, span, amount: whole, per }

const Wanted = z.strictObject({
  resource,
  span: span.default(null),
  amount: whole,
  key: idOf('key').nullable().default(null),
  account: idOf('acc').nullable().default(null),
  tier: tierName.nullable().default(null),
  model: modelPattern.nullable().default(null),
  per: per
    .default([])
    .meta({ description: 'Each key, account or model that is listed here has this limit for itself' }),
})

const params = z.object({ limit: numberOfText(z.number().int().min(1).max(Number.MAX_SAFE_INTEGER)) })

const shown = ({ keyId, accountId, ...limit }: LimitDetails): z.input<typeof Limit> =>
  ({
    ...limit,
    key: keyId === null ? null : textId('key', keyId),
    account: accountId === null ? null : textId('acc', accountId),
  }) as z.input<typeof Limit>

function checked(limit: Omit<LimitRow, 'id'>): Omit<LimitRow, 'id'> {
  try {
    checkLimit(limit)
    return limit
  } catch (fault) {
    const { hint, field } = fault as HintedError
    throw refusal('field_invalid', hint, field)
  }
}

const limitRefusals = {
  too_many: hintOf('limits_max'),
  for_nobody: hintOf('limit_for_nobody'),
}

const unfit = (code: keyof typeof limitRefusals, param: string) => (): Refusal =>
  new Refusal('field_invalid', code, { param, hint: limitRefusals[code] })

export const limitEndpoints = (parts: ManagementParts): readonly WebEndpoint[] => [
  ...readEndpoints(parts),
  ...writeEndpoints(parts),
]

const buildShow =
  ({ queryWorker }: ManagementParts) =>
  async (id: number) => {
    const limit = requireFound(await queryWorker.query('limit', { id }))
    return { body: shown(limit), version: limit.version }
  }

/** The limit with warnings about it. */
const buildShowWritten = (parts: ManagementParts) => async (id: number) => {
  const shownLimit = await buildShow(parts)(id)
  const { warning } = limitWarning(shownLimit.body.model, parts)
  return { ...shownLimit, body: { ...shownLimit.body, ...shownWarnings(warning === undefined ? [] : [warning]) } }
}

function readEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  const show = buildShow(parts)
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/limits',
      who: { site: 'support' },
      summary: 'List the limits on calls.',
      query: listQuery(
        {
          resource: resource.optional(),
          key: idOf('key').optional(),
          account: idOf('acc').optional(),
          tier: tierName.optional(),
          model: modelPattern.optional(),
        },
        ['id'],
      ),
      answer: listOf(Limit),
      async run({ query }) {
        const pageQuery = buildListQuery(query, null, 'id')
        return listAnswer(await parts.queryWorker.query('limits', pageQuery), pageQuery, shown)
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/limits/{limit}',
      who: { site: 'support' },
      summary: 'Show a limit.',
      params,
      answer: Limit,
      run: ({ params: { limit } }) => show(limit),
    }),
  ]
}

function writeEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  const [show, showWritten] = [buildShow(parts), buildShowWritten(parts)]
  const { writer, rules, onKeyChanged } = parts
  return [
    endpoint({
      method: 'POST',
      path: '/api/web/limits',
      who: { site: 'admin' },
      summary:
        'Create a limit for matching calls: for all of them together, or for each key, account or model (`per`).',
      body: Wanted,
      answer: Limit.extend(warnings),
      status: 201,
      async run({ body: { key: keyId, account: accountId, per: scopes, ...limit }, by }) {
        const sortedScopes = limitScopes.filter(scope => scopes.includes(scope)) // the order in the database
        const wanted = checked({ ...limit, keyId, accountId, per: sortedScopes })
        const written = await writer.run('setLimit', { ...wanted, author: by.actor, isNew: true }, by)
        if (written.done === 'tier_unknown') throw await tierUnknown(parts, wanted.tier)
        const result = requireDone(written, {
          key_unknown: resourceUnknown,
          account_unknown: resourceUnknown,
          for_nobody: unfit('for_nobody', 'key'),
          exists: () =>
            new Refusal('name_taken', 'limit', {
              hint: hintOf('limit_exists'),
            }),
          too_many: () => new Refusal('state_unfit', 'limits', { hint: limitRefusals.too_many }),
        })
        await rules.reload()
        onKeyChanged()
        return showWritten('id' in result ? result.id : 0)
      },
    }),
    endpoint({
      method: 'PATCH',
      path: '/api/web/limits/{limit}',
      who: { site: 'admin' },
      summary: 'Change the amount of a limit. Calls that it has counted so far still count.',
      params,
      changes: ({ limit }) => [`limits/${limit}`],
      body: z.strictObject({ amount: whole }),
      answer: Limit.extend(warnings),
      async run({ params: { limit: id }, body: { amount }, by }) {
        const { body: current } = await show(id)
        checked({ ...current, amount, keyId: null, accountId: null })
        requireDone(await writer.run('changeLimit', { id, amount, author: by.actor }, by), { unknown: resourceUnknown })
        await rules.reload()
        onKeyChanged()
        return showWritten(id)
      },
    }),
    endpoint({
      method: 'DELETE',
      path: '/api/web/limits/{limit}',
      who: { site: 'admin' },
      summary: 'Remove a limit.',
      params,
      changes: ({ limit }) => [`limits/${limit}`],
      answer: noContent,
      status: 204,
      async run({ params: { limit: id }, by }) {
        requireDone(await writer.run('removeLimit', { id }, by), { unknown: resourceUnknown })
        await rules.reload()
        onKeyChanged()
        return {}
      },
    }),
  ]
}
