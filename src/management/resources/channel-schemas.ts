// The schemas of channels in requests and answers.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { hintOf } from '../../base/hints.ts'
import { Secret } from '../../base/secrets/secret.ts'
import { ForbiddenAddress, InvalidAddress } from '../../http/address/operator-address.ts'
import { Proxy } from '../../http/client/proxy.ts'
import { must } from '../web/issue-text.ts'
import { managedBy, time } from './endpoint.ts'
import { jsonValue } from './fields.ts'
import { Hint } from './hint-schema.ts'

export const providerId = z.string().regex(/^[a-z0-9][a-z0-9-]{0,39}$/, must('must_be_id', { example: 'relay' }))
export const channelId = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,39}#[a-z0-9_]{1,40}$/, must('must_be_id', { example: 'relay#1' }))
  .meta({
    description: 'The id of the provider, a #, and the fingerprint of its key (for keys in the environment) or an id',
  })

const tag = z.string().regex(/^[a-z0-9-]{1,40}$/, must('must_be_tag'))
const cap = z.number().int().min(1).max(bounds.channelCapMax).nullable()
const path = z.string().max(129)
const fields = z.record(path, jsonValue)

/** Settings that every channel has. */
export const rule = {
  disabled: z.boolean(),
  weight: z.number().int().min(0).max(bounds.weightMax),
  priority: z.number().int().min(0).max(bounds.priorityMax),
  requestsPerMinute: cap,
  tokensPerMinute: cap,
  concurrency: cap,
  tags: z.array(tag).max(bounds.tagsMax),
  foreignIds: z.boolean().meta({
    description:
      'Requests may use the ids of files, prompts and other objects at the provider, also of those that their ' +
      'account has not created through this gateway',
  }),
}

export const parameters = z
  .record(
    z.string().max(40),
    z.strictObject({ set: fields.optional(), default: fields.optional(), remove: z.array(path).optional() }),
  )
  .meta({
    description: 'For each dialect of the upstream: request fields to set, to set if absent (default), and to remove',
  })
export const headers = z.record(z.string().max(100), z.string().max(bounds.channelHeaderCharsMax))
export const times = z.strictObject({
  connectSeconds: z.number().int().optional(),
  tlsSeconds: z.number().int().optional(),
  firstContentSeconds: z.number().int().optional(),
  betweenChunksSeconds: z.number().int().optional(),
  totalSeconds: z.number().int().optional(),
})

/** Further settings of channels that are stored in the database. A bulk change may contain them, too. */
export const shared = { headers, parameters, times }
export const name = z
  .string()
  .min(1)
  .max(bounds.channelNameCharsMax)
  .refine(text => !/\p{Cc}/u.test(text), must('must_have_no_controls'))
export const baseUrl = z.string().min(1).max(bounds.baseUrlCharsMax).nullable()
/** Can be written but is never returned. */
export const credential = z.string().min(1).max(bounds.credentialCharsMax).meta({ writeOnly: true })

/** Where a configuration file says that a secret is. */
export const secretFrom = z
  .string()
  .max(600)
  .regex(/^(env|file):[^\p{Cc}]+$/u, must('must_be_reference'))
  .nullable()
  .meta({ description: 'Where the secret comes from, if a configuration file has set it: `env:NAME` or `file:path`' })

const PROXY_FORM = must('must_be_proxy')

/** Can be written but is never returned, and no error repeats it. Null removes the proxy. */
export const proxy = z
  .string()
  .max(bounds.proxyUrlCharsMax, PROXY_FORM)
  .transform((text, issues) => {
    const secret = new Secret(text)
    try {
      Proxy.read(secret)
      return secret
    } catch (fault) {
      if (!(fault instanceof InvalidAddress || fault instanceof ForbiddenAddress)) throw fault
      const hint = fault instanceof ForbiddenAddress ? fault.hint : hintOf('must_be_proxy')
      issues.addIssue({ code: 'custom', message: hint.text, params: { hint } })
      return z.NEVER
    }
  })
  .nullable()
  .meta({
    writeOnly: true,
    description: 'The proxy of the channel; null: the proxy of the gateway',
  })

export const optional = <Shape extends Readonly<Record<string, z.ZodType>>>(shape: Shape) =>
  Object.fromEntries(Object.entries(shape).map(([field, type]) => [field, type.optional()])) as {
    [Field in keyof Shape]: z.ZodOptional<Shape[Field]>
  }

const Health = z.object({
  state: z.string(),
  availableInMs: z.number(),
  activeCalls: z.number(),
  limit: z.number().nullable(),
  firstMs: z.number().nullable(),
  lastFailure: z.object({ verdict: z.string(), agoMs: z.number() }).nullable(),
  lost: z.number(),
})

export const Channel = z
  .object({
    id: channelId,
    provider: providerId,
    from: z.enum(['environment', 'stored']),
    name: z.string().nullable(),
    baseUrl: z.string().nullable(),
    ownBaseUrl: z.string().nullable(),
    state: z.enum(['enabled', 'disabled', 'unusable', 'gone']),
    problem: z.string().nullable(),
    problemHint: Hint.nullable(),
    disabled: z.boolean(),
    credential: z.object({ fingerprint: z.string(), origin: z.string() }).nullable(),
    credentialFrom: secretFrom,
    weight: z.number(),
    priority: z.number(),
    requestsPerMinute: cap,
    tokensPerMinute: cap,
    concurrency: cap,
    proxy: z.boolean().meta({ description: 'True if the channel has its own proxy' }),
    tags: z.array(z.string()),
    ownTags: z.array(z.string()).meta({ description: 'Its tags without those of its provider' }),
    foreignIds: z.boolean(),
    headers,
    parameters,
    times,
    health: Health.nullable(),
    version: z.number().meta({ description: '0 if the channel has no stored settings yet' }),
    author: z.string().nullable(),
    created: time.nullable(),
    changed: time.nullable(),
    managedBy,
  })
  .meta({ id: 'Channel' })

export const Trial = z
  .object({
    channel: channelId,
    model: z.string(),
    dialect: z.string(),
    ok: z.boolean(),
    status: z.number().nullable(),
    verdict: z.string(),
    advice: z.string(),
    timings: z.object({ headMs: z.number().nullable(), totalMs: z.number() }),
    sent: z.object({
      method: z.string(),
      url: z.string(),
      headers: z.record(z.string(), z.string()).readonly(),
      body: z.string(),
      overrides: z.array(z.string()).readonly(),
    }),
    received: z.object({ contentType: z.string(), body: z.string() }).nullable(),
    fault: z.string().nullable(),
    faultHint: Hint.nullable(),
  })
  .meta({ id: 'Trial' })
