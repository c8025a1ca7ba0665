// The form of a configuration file, described once: the checks of a file, its published JSON Schema and the export use
// this description. Most fields are those of the requests of the management interface.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { accountSettings } from '../resources/accounts.ts'
import { budgetSpan } from '../resources/budgets.ts'
import {
  baseUrl,
  channelId,
  name as channelName,
  optional,
  providerId,
  rule,
  shared,
} from '../resources/channel-schemas.ts'
import { label, modelPattern, tierName } from '../resources/fields.ts'
import { keySettings, madeByMember } from '../resources/keys.ts'
import { limitFields } from '../resources/limits.ts'
import { member, policy } from '../resources/models.ts'
import { boundUsd } from '../resources/money-input.ts'
import { writtenPrice } from '../resources/prices.ts'
import { siteFields } from '../resources/settings.ts'
import { newTierName, tierSettings } from '../resources/tiers.ts'
import { eventList, webhookUrl } from '../resources/webhooks.ts'
import { siteEvents } from '../webhooks/events.ts'

const NOT_INLINE =
  'a secret must not be written into the file. Write where it is: {env: NAME} for an environment variable, or ' +
  '{file: path} for a file'

/** Where a secret is. The file itself never contains a secret. */
const secretReference = z
  .strictObject(
    {
      env: z
        .string()
        .regex(/^[A-Za-z_][A-Za-z0-9_]{0,199}$/, 'it must be the name of an environment variable')
        .optional()
        .meta({ description: 'The environment variable that has the secret' }),
      file: z
        .string()
        .min(1)
        .max(500)
        .refine(text => !/\p{Cc}/u.test(text), 'it must not contain control characters')
        .optional()
        .meta({ description: 'The file that has the secret; a relative path begins at the configuration file' }),
    },
    { error: issue => (issue.code === 'invalid_type' ? NOT_INLINE : undefined) },
  )
  .refine(({ env, file }) => (env === undefined) !== (file === undefined), 'it must have either "env" or "file"')
  .meta({ id: 'Secret', description: 'Where a secret is: {env: NAME} or {file: path}' })

export type SecretReference = z.output<typeof secretReference>

const textIdOf = (prefix: string, noun: string) =>
  z
    .string()
    .regex(new RegExp(`^${prefix}_[0-9a-hjkmnp-tv-z]{11}$`), `it must be an id such as ${prefix}_06dnh97yr00`)
    .optional()
    .meta({ description: `The id of the ${noun}. Without it, the ${noun} is found by its name` })

const account = z.string().min(1).max(200).meta({ description: 'An account: its name, or its id (acc_…)' })
const modelName = z
  .string()
  .min(1)
  .max(bounds.modelNameCharsMax)
  .regex(/^[\x21-\x7e]*$/, 'it must be visible ASCII characters')

const budgets = z
  .partialRecord(budgetSpan, boundUsd)
  .meta({ description: 'What may be spent in total, in a day or in a month, in US dollars' })

const { name: _accountName, ...otherAccountSettings } = accountSettings
const { name: _keyName, tier: _keyTier, ...otherKeySettings } = keySettings
const { resource, span, amount, per } = limitFields

const entries = {
  providers: z
    .looseObject({ id: providerId })
    .meta({ description: 'A provider of your own, in the form of a provider file: docs/reference/providers.md' }),
  tiers: z.strictObject({ name: newTierName, ...optional(tierSettings), qpm: tierSettings.qpm }),
  accounts: z.strictObject({
    id: textIdOf('acc', 'account'),
    name: label,
    ...optional(otherAccountSettings),
    budgets: budgets.optional(),
  }),
  keys: z.strictObject({
    id: textIdOf('key', 'key'),
    account,
    name: label,
    tier: tierName,
    ...optional(otherKeySettings),
    disabled: z.boolean().optional(),
    madeByMember: madeByMember.optional(),
    budgets: budgets.optional(),
  }),
  channels: z.strictObject({
    provider: providerId,
    name: channelName,
    credential: secretReference.optional(),
    baseUrl: baseUrl.optional(),
    ...optional(rule),
    ...optional(shared),
  }),
  environmentChannels: z.strictObject({ id: channelId, ...optional(rule) }),
  modelNames: z.strictObject({
    name: modelName,
    policy: policy.optional(),
    members: z
      .array(
        z.union([modelName, member], {
          error: 'it must be a model name such as openai/gpt-4o, or an object with "model", "priority" and "weight"',
        }),
      )
      .min(1)
      .max(bounds.routeMembersMax),
  }),
  limits: z.strictObject({
    resource,
    span: span.optional(),
    amount,
    account: account.nullable().optional(),
    key: z
      .string()
      .min(1)
      .max(400)
      .nullable()
      .optional()
      .meta({ description: 'A key: its account and its name, as in acme/ci, or its id (key_…)' }),
    tier: tierName.nullable().optional(),
    model: modelPattern.nullable().optional(),
    per: per.optional(),
  }),
  webhooks: z.strictObject({
    account: account.nullable().optional().meta({ description: 'Its account: name or id; null: the whole site' }),
    url: webhookUrl,
    events: eventList(siteEvents),
    disabled: z.boolean().optional(),
    secret: secretReference.optional(),
  }),
  prices: z.strictObject({
    model: modelName.meta({ description: 'The model as <provider>/<model>' }),
    price: writtenPrice,
  }),
} as const

export type ListName = keyof typeof entries

/** What each list is for, for the schema and the reference. */
const descriptions: Readonly<Record<ListName, string>> = {
  providers: 'Providers of your own',
  tiers: 'Tiers: limits and the price multiplier of the keys that have the tier',
  accounts: 'Accounts of teams, with their budgets',
  keys: 'API keys, with their budgets. The text of a key is never in a file',
  channels: 'Channels that are stored in the database: a provider and one credential each',
  environmentChannels: 'Settings of channels whose keys are in the environment of the gateway',
  modelNames: 'Names for one or more models',
  limits: 'Limits of calls, tokens and concurrency',
  webhooks: 'Webhooks of the site and of accounts',
  prices: 'Your own prices, which replace those of the provider files',
}

export const entrySchemas: Readonly<Record<ListName, z.ZodObject>> = entries

export const fileSchema = z
  .strictObject({
    $schema: z.string().optional().meta({ description: 'The address of this schema, for editors' }),
    settings: z
      .strictObject(optional(siteFields))
      .optional()
      .meta({ description: "The site's settings. A setting that is absent stays as it is" }),
    ...(Object.fromEntries(
      Object.entries(entries).map(([list, entry]) => [
        list,
        z
          .array(entry)
          .max(bounds.configEntriesMax)
          .optional()
          .meta({ description: descriptions[list as ListName] }),
      ]),
    ) as { [List in ListName]: z.ZodOptional<z.ZodArray<(typeof entries)[List]>> }),
  })
  .meta({ title: 'The configuration file of Weir', description: 'For weir apply and WEIR_CONFIG' })

/** The JSON Schema of the file, for editors and for checks in a pipeline. */
export const buildFileSchema = (): Record<string, unknown> =>
  z.toJSONSchema(fileSchema, { io: 'input', unrepresentable: 'any' }) as Record<string, unknown>
