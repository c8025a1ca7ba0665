// Endpoints for tiers: limits and price multiplier of the keys that have the tier.

import * as z from 'zod'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import type { TierView } from '../../store/queries/tiers.ts'
import type { Actor } from '../actor.ts'
import { askerOf, isAtLeast } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import { must } from '../web/issue-text.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, listOf, listQuery, managedBy, noContent, version } from './endpoint.ts'
import { buildListQuery, listAnswer, requireDone, requireFound, resourceUnknown } from './list-queries.ts'

export const newTierName = z.string().regex(/^[a-z][a-z0-9_-]{0,31}$/, must('must_be_tier_name'))
const qpm = z.number().int().min(1).max(1_000_000_000)
const pricePerMille = z
  .number()
  .int()
  .min(0)
  .max(1_000_000)
  .meta({ description: 'The price multiplier in thousandths: 1000 is the normal price' })

const accountQpm = qpm.meta({ description: 'Calls per minute of all keys of one account together' })
const accountConcurrency = z.number().int().min(1).max(1_000_000).meta({
  description: 'Calls at the same time of all keys of one account together',
})

/** What a tier sets. */
export const tierSettings = { qpm, pricePerMille, accountQpm, accountConcurrency }

const Tier = z
  .object({
    name: newTierName,
    ...tierSettings,
    version,
    managedBy,
    keys: z
      .number()
      .nullable()
      .meta({ description: 'The number of keys with this tier; null for members, who may not see it.' }),
  })
  .meta({ id: 'Tier' })
const params = z.object({ tier: newTierName })

const inUse = (): Refusal => new Refusal('state_unfit', 'in use', { hint: hintOf('tier_in_use') })
const isNeeded = (): Refusal => new Refusal('state_unfit', 'needed', { hint: hintOf('tier_is_needed') })
const isDefault = (): Refusal => new Refusal('state_unfit', 'the default', { hint: hintOf('tier_is_default') })

export function tierEndpoints({
  queryWorker,
  writer,
  onKeyChanged,
  rules,
  dateMs,
}: ManagementParts): readonly WebEndpoint[] {
  /** Only staff see how many keys there are. */
  const countsKeys = ({ role }: Actor): boolean => isAtLeast(role, 'support')
  const shown = ({ keys = null, ...tier }: Omit<TierView, 'keys'> & { readonly keys?: number | null }) => ({
    ...tier,
    keys,
  })
  const show = async (name: string, actor: Actor) => {
    const wanted = { name, countsKeys: countsKeys(actor) }
    const row = requireFound(await queryWorker.query('tier', wanted, askerOf(actor)))
    return { body: shown(row), version: row.version }
  }
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/tiers',
      who: 'actor',
      summary: 'List the tiers.',
      query: listQuery({}, ['name', 'qpm']),
      answer: listOf(Tier),
      async run({ query, actor }) {
        const pageQuery = { ...buildListQuery(query, null, 'name'), countsKeys: countsKeys(actor) }
        return listAnswer(await queryWorker.query('tiers', pageQuery, askerOf(actor)), pageQuery, shown)
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/tiers/{tier}',
      who: 'actor',
      summary: 'Show a tier.',
      params,
      answer: Tier,
      run: ({ params: { tier }, actor }) => show(tier, actor),
    }),
    endpoint({
      method: 'POST',
      path: '/api/web/tiers',
      who: { site: 'admin' },
      summary: 'Create a tier.',
      body: z.strictObject({
        name: newTierName,
        qpm,
        pricePerMille: pricePerMille.default(1000),
        accountQpm: accountQpm.optional(),
        accountConcurrency: accountConcurrency.optional(),
      }),
      answer: Tier,
      status: 201,
      async run({ body, by, actor }) {
        const result = await writer.run('setTier', { ...body, isNew: true }, by)
        requireDone(result, { exists: new Refusal('name_taken', body.name, { param: 'name' }) })
        await rules.reload()
        return show(body.name, actor)
      },
    }),
    endpoint({
      method: 'PATCH',
      path: '/api/web/tiers/{tier}',
      who: { site: 'admin' },
      summary: 'Change a tier. The change applies from the next call of its keys on.',
      params,
      changes: ({ tier }) => [`tiers/${tier}`],
      body: z.strictObject(tierSettings).partial(),
      answer: Tier,
      async run({ params: { tier }, body, by, actor }) {
        requireDone(await writer.run('setTier', { name: tier, isNew: false, ...body }, by), {
          unknown: resourceUnknown,
        })
        onKeyChanged()
        await rules.reload()
        return show(tier, actor)
      },
    }),
    endpoint({
      method: 'DELETE',
      path: '/api/web/tiers/{tier}',
      who: { site: 'admin' },
      summary:
        'Remove a tier that no key, account or limit has. `standard` and the `defaultTier` of the site are never removed.',
      params,
      changes: ({ tier }) => [`tiers/${tier}`],
      answer: noContent,
      status: 204,
      async run({ params: { tier }, by }) {
        requireDone(await writer.run('removeTier', { name: tier, nowMs: dateMs() }, by), {
          unknown: resourceUnknown,
          in_use: inUse,
          is_default: isDefault,
          is_needed: isNeeded,
        })
        return {}
      },
    }),
  ]
}
