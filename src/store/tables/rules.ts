// The columns of rules: tiers, limits, model routes and channels.

import type { LimitedResource, LimitScope, LimitSpan } from '../rules/rules.ts'
import { flag, nullable, number, sealed, text, word, words } from './columns.ts'

export const tierColumns = {
  name: ['name', text, 'insert', 'audit'],
  qpm: ['qpm', number, 'update', 'audit'],
  pricePerMille: ['price_per_mille', number, 'update', 'audit'],
  /** Calls per minute of all keys of one account together. The default of a new tier is ten times its `qpm`. */
  accountQpm: ['account_qpm', number, 'update', 'audit'],
  accountConcurrency: ['account_concurrency', number, 'update', 'audit'],
  version: ['version', number, 'audit'],
} as const

/** The columns of a LimitRow. */
export const limitColumns = {
  id: ['id', number, 'audit'],
  resource: ['resource', word<LimitedResource>(), 'insert', 'audit'],
  span: ['span', nullable(word<LimitSpan>()), 'insert', 'audit'],
  amount: ['amount', number, 'update', 'audit'],
  keyId: ['key_id', nullable(number), 'insert', 'audit'],
  accountId: ['account_id', nullable(number), 'insert', 'audit'],
  tier: ['tier', nullable(text), 'insert', 'audit'],
  model: ['model', nullable(text), 'insert', 'audit'],
  per: ['per', words<LimitScope>(), 'insert', 'audit'],
} as const

/** `members` is JSON. */
export const routeColumns = {
  name: ['name', text, 'insert', 'audit'],
  policy: ['policy', text, 'update', 'audit'],
  members: ['members', text, 'update', 'audit'],
} as const

/** The columns of a ChannelRow. The proxy is encrypted; the audit log says only whether there is one. */
export const channelColumns = {
  channel: ['id', text, 'insert', 'audit'],
  disabled: ['disabled', flag, 'update', 'audit'],
  weight: ['weight', number, 'update', 'audit'],
  priority: ['priority', number, 'update', 'audit'],
  requestsPerMinute: ['rpm', nullable(number), 'update', 'audit'],
  tokensPerMinute: ['tpm', nullable(number), 'update', 'audit'],
  concurrency: ['concurrency', nullable(number), 'update', 'audit'],
  proxy: ['proxy', nullable(sealed), 'update'],
  tags: ['tags', words(), 'update', 'audit'],
  foreignIds: ['foreign_ids', flag, 'update', 'audit'],
} as const

/** The other columns of a stored channel. The credential is encrypted; headers, parameters and times are JSON. */
export const storedChannelColumns = {
  id: ['id', text],
  provider: ['provider', text, 'insert', 'audit'],
  name: ['name', text, 'update', 'audit'],
  baseUrl: ['base_url', nullable(text), 'update', 'audit'],
  origin: ['origin', nullable(text), 'update', 'audit'],
  credential: ['credential', nullable(sealed), 'update'],
  fingerprint: ['fingerprint', nullable(text), 'update', 'audit'],
  credentialFrom: ['credential_from', nullable(text), 'update', 'audit'],
  headers: ['headers', text, 'update', 'audit'],
  parameters: ['parameters', text, 'update', 'audit'],
  times: ['times', text, 'update', 'audit'],
} as const

/** Who changed a rule, and when. The version of a channel rises with `changedMs`. */
export const authorColumns = {
  author: ['author', text, 'update'],
  changedMs: ['changed_ms', number, 'update'],
  version: ['version', number, 'audit'],
} as const
