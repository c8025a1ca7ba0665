// Endpoints for the site's settings: the allowed values, and who may set them. A change applies before it is answered.

import * as z from 'zod'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { SiteSettingValues } from '../services/site-settings.ts'
import { must } from '../web/issue-text.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, usd, version } from './endpoint.ts'
import { requireDone } from './list-queries.ts'
import { lookFields } from './site-look.ts'

const domain = z.string().regex(/^[a-z0-9-]+(\.[a-z0-9-]+)+$/, must('must_be_domain'))

export const siteFields = {
  siteName: z.string().trim().min(1).max(100),
  notice: z.string().max(2_000).meta({ description: 'Shown to everybody; empty: no notice' }),
  registration: z.enum(['off', 'open']),
  allowedDomains: z
    .array(domain)
    .max(100)
    .meta({ description: 'Domains of email addresses that may register; empty: all domains' }),
  invitations: z
    .enum(['admins', 'managers'])
    .meta({ description: 'Who may invite people: only admins, or also managers of accounts' }),
  defaultTier: z
    .string()
    .regex(/^[a-z][a-z0-9_-]{0,31}$/, must('must_be_tier_name'))
    .meta({ description: 'The tier of keys in the accounts of new people' }),
  startingCredit: usd
    .refine(text => !text.startsWith('-'), must('must_not_be_negative'))
    .meta({ description: 'US dollars, for each person who registers' }),
  retentionDays: z
    .number()
    .int()
    .min(0)
    .max(36_500)
    .meta({ description: 'How many days records are kept; 0: forever' }),
  ...lookFields,
} satisfies Record<keyof SiteSettingValues, z.ZodType>

/** Only the owner decides who may join and what new people get. */
const reserved = {
  registration: 'owner',
  allowedDomains: 'owner',
  startingCredit: 'owner',
  invitations: 'owner',
} as const

const Settings = z
  .object({
    ...siteFields,
    version,
    managed: z.array(z.string()).meta({
      description: 'The settings that the configuration file of the gateway has; they can only be changed there',
    }),
  })
  .meta({ id: 'Settings' })
const Changes = z.strictObject(
  Object.fromEntries(Object.entries(siteFields).map(([name, field]) => [name, field.nullable().optional()])) as {
    [Name in keyof typeof siteFields]: z.ZodOptional<z.ZodNullable<(typeof siteFields)[Name]>>
  },
)

export function settingEndpoints({ queryWorker, writer, site, ownership }: ManagementParts): readonly WebEndpoint[] {
  const show = async () => {
    const current = await queryWorker.query('siteVersion', {})
    const lists = { allowedDomains: [...site.current.allowedDomains], managed: [...ownership.settings] }
    return { body: { ...site.current, ...lists, version: current }, version: current }
  }
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/settings',
      who: { site: 'support' },
      summary: "Show the site's settings.",
      answer: Settings,
      run: show,
    }),
    endpoint({
      method: 'PATCH',
      path: '/api/web/settings',
      who: { site: 'admin' },
      summary: 'Change settings; null resets a setting to its default.',
      body: Changes,
      changes: (_, body) => Object.keys(body).map(name => `settings/${name}`),
      reserved,
      answer: Settings,
      async run({ body, by }) {
        if (
          typeof body.defaultTier === 'string' &&
          (await queryWorker.query('tier', { name: body.defaultTier })) === null
        ) {
          throw new Refusal('field_invalid', 'tier', {
            param: 'defaultTier',
            hint: hintOf('default_tier_unknown'),
          })
        }
        const given = Object.entries(body).filter(([, value]) => value !== undefined)
        requireDone(await writer.run('setSite', { changes: Object.fromEntries(given) }, by), {})
        await site.renew()
        return show()
      },
    }),
  ]
}
