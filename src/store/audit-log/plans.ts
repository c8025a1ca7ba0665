// The audit plans: which operations are audited, the target of each, and which columns are compared before and after
// it. An operation without a plan is an internal one of Weir, such as settling a call.

import { textId } from '../../base/ids.ts'
import type { OperationName } from '../engine/operations.ts'
import { query } from '../engine/steps.ts'
import { accountColumns, budgetColumns, keyColumns } from '../tables/accounts.ts'
import type { SqlRow } from '../tables/columns.ts'
import { auditList } from '../tables/columns.ts'
import {
  authorColumns,
  channelColumns,
  limitColumns,
  routeColumns,
  storedChannelColumns,
  tierColumns,
} from '../tables/rules.ts'
import type { AuditDetail, AuditPlan } from './audit-plan.ts'
import { changedFields } from './audit-plan.ts'
import { peoplePlans } from './people-plans.ts'

const plan = <Name extends OperationName>(_name: Name, definition: AuditPlan<Name>): AuditPlan<Name> => definition

const KEY = query<SqlRow>(`SELECT ${auditList(keyColumns)} FROM api_key WHERE id = ?1`)
const { name: _keyName, ...unnamedKeyColumns } = keyColumns
/** Its name follows from its actor. Earlier versions have written the name of a person there. */
const PLAYGROUND_KEY = query<SqlRow>(`SELECT ${auditList(unnamedKeyColumns)} FROM api_key WHERE id = ?1`)
const { name: _accountName, ...unnamedAccountColumns } = accountColumns
/** A personal account has the name of a person. */
const ACCOUNT = query<SqlRow>(`SELECT CASE WHEN type = 'personal' THEN NULL ELSE name END AS name,
  ${auditList(unnamedAccountColumns)}, id AS account_id FROM account WHERE id = ?1`)
const BUDGET =
  query<SqlRow>(`SELECT ${auditList(budgetColumns)}, (SELECT account_id FROM api_key WHERE id = ?1 UNION ALL
  SELECT id FROM account WHERE id = ?1) AS account_id FROM budget WHERE scope_id = ?1 AND span = ?2`)
const LIMIT = query<SqlRow>(`SELECT ${auditList(limitColumns)}, version FROM limit_rule WHERE id = ?1`)
const ROUTE = query<SqlRow>(`SELECT ${auditList(routeColumns)}, version FROM model_route WHERE name = ?1`)
const CHANNEL = query<SqlRow>(`SELECT ${auditList({ ...channelColumns, ...storedChannelColumns, ...authorColumns })},
  CAST(CASE WHEN proxy IS NULL THEN 0 ELSE 1 END AS BIGINT) AS proxy FROM channel WHERE id = ?1`)
const PROVIDER = query<SqlRow>(
  'SELECT id, CAST(length(definition) AS BIGINT) AS bytes, version FROM provider WHERE id = ?1',
)
const TIER = query<SqlRow>(`SELECT ${auditList(tierColumns)} FROM tier WHERE name = ?1`)

type NamedChannel = { readonly channel: string }

const singleChannel = ([first, ...others]: readonly NamedChannel[]): string =>
  first === undefined || others.length > 0 ? '' : first.channel

const channelsText = (channels: readonly NamedChannel[]): string =>
  channels.length === 1 ? channels[0]!.channel : `${channels.length} channels`

/** With several channels no row is compared, so the audit row lists their ids. */
const channelList = (channels: readonly NamedChannel[]): Readonly<Record<string, AuditDetail>> =>
  channels.length === 1 ? {} : { channels: channels.map(({ channel }) => channel) }

/** The channels whose credential was deleted because it was for another origin. */
const clearedChannels = (result: object): Readonly<Record<string, AuditDetail>> =>
  'cleared' in result && (result.cleared as readonly string[]).length > 0
    ? { cleared: result.cleared as readonly string[] }
    : {}

/** The highest version of all prices of a model. */
const PRICE = query<SqlRow>('SELECT coalesce(max(version), 0) AS version FROM price WHERE model = ?1')
/** Only the origin of the URL is logged, because its path may be a secret of the receiver. */
const WEBHOOK = query<SqlRow>(
  `SELECT id, account_id, origin, events, disabled, secret_from, version FROM webhook WHERE id = ?1`,
)
const ALERT = query<SqlRow>('SELECT account_id, threshold, version FROM balance_alert WHERE account_id = ?1')
const webhookRow = {
  row: WEBHOOK,
  key: ({ id }: { readonly id: number }) => id,
  target: ({ id }: { readonly id: number }) => textId('hook', id),
}

export const auditPlans = {
  ...peoplePlans,
  createKey: plan('createKey', {
    done: ['created'],
    row: KEY,
    key: ({ id }) => id,
    target: ({ id }) => textId('key', id),
    details: ({ credit }) => (credit === '0' ? {} : { credit }),
  }),
  setKey: plan('setKey', { done: ['set'], row: KEY, key: ({ id }) => id, target: ({ id }) => textId('key', id) }),
  rotateKey: plan('rotateKey', {
    done: ['rotated'],
    row: KEY,
    key: ({ id }) => id,
    target: ({ id }) => textId('key', id),
  }),
  setPlaygroundKey: plan('setPlaygroundKey', {
    done: ['set'],
    row: PLAYGROUND_KEY,
    key: ({ id }) => id,
    target: ({ id }) => textId('key', id),
    details: ({ budget }) => ({ budget }),
  }),
  revokeKey: plan('revokeKey', {
    done: ['revoked'],
    row: KEY,
    key: ({ id }) => id,
    target: ({ id }) => textId('key', id),
  }),
  createAccount: plan('createAccount', {
    done: ['created'],
    row: ACCOUNT,
    key: ({ id }) => id,
    target: ({ id }) => textId('acc', id),
  }),
  setAccount: plan('setAccount', {
    done: ['set'],
    row: ACCOUNT,
    key: ({ id }) => id,
    target: ({ id }) => textId('acc', id),
    details: (input, _, after) => (after?.type === 'personal' ? changedFields(input, ['name']) : {}),
  }),
  setBudget: plan('setBudget', {
    done: ['set', 'removed'],
    row: BUDGET,
    key: ({ scopeId, span }) => [scopeId, span],
    target: ({ scopeId, span }) => `${textId('budget', scopeId)} ${span}`,
  }),
  post: plan('post', {
    done: ['posted'],
    target: ({ accountId }) => textId('acc', accountId),
    account: ({ accountId }) => accountId,
    details: ({ kind, ref, amount, reference }) => ({ kind, ref, amount, reference }),
  }),
  createCodes: plan('createCodes', {
    done: ['created'],
    target: ({ batch }) => batch,
    details: ({ codes, amount, expiresMs }) => ({ codes: codes.length, amount, expiresMs }),
  }),
  redeemCode: plan('redeemCode', {
    done: ['redeemed'],
    target: ({ accountId }) => textId('acc', accountId),
    account: ({ accountId }) => accountId,
    details: (_, result) => ('amount' in result ? { amount: result.amount } : {}),
  }),
  createWebhook: plan('createWebhook', { done: ['created'], ...webhookRow }),
  setWebhook: plan('setWebhook', {
    done: ['set'],
    ...webhookRow,
    details: ({ url, secret }) => ({
      ...(url !== undefined && { url: 'new' }),
      ...(secret !== undefined && { secret: 'new' }),
    }),
  }),
  removeWebhook: plan('removeWebhook', { done: ['removed'], ...webhookRow }),
  testWebhook: plan('testWebhook', { done: ['made'], target: ({ id }) => textId('hook', id) }),
  sendAgain: plan('sendAgain', {
    done: ['due'],
    target: ({ webhookId }) => textId('hook', webhookId),
    details: ({ id }) => ({ delivery: textId('evt', id) }),
  }),
  setAlert: plan('setAlert', {
    done: ['set', 'removed'],
    row: ALERT,
    key: ({ accountId }) => accountId,
    target: ({ accountId }) => textId('acc', accountId),
  }),
  voidCodes: plan('voidCodes', {
    done: ['voided'],
    target: input => ('batch' in input ? input.batch : textId('code', input.id)),
    details: (_, result) => ('codes' in result ? { codes: result.codes } : {}),
  }),
  addPrices: plan('addPrices', {
    done: ['added'],
    row: PRICE,
    key: ({ prices }) => (prices.length === 1 ? prices[0]!.model : ''),
    target: ({ prices }) => (prices.length === 1 ? prices[0]!.model : `${prices.length} models`),
    details: ({ prices }, { versions }) =>
      prices.length === 1 ? { origin: prices[0]!.origin, price: prices[0]!.price, version: versions[0] } : {},
  }),
  setLimit: plan('setLimit', {
    done: ['added', 'changed'],
    row: LIMIT,
    key: (_, result) => (result !== undefined && 'id' in result ? result.id : 0),
    target: (_, result) => ('id' in result ? `limit ${result.id}` : ''),
  }),
  changeLimit: plan('changeLimit', {
    done: ['changed'],
    row: LIMIT,
    key: ({ id }) => id,
    target: ({ id }) => `limit ${id}`,
  }),
  removeLimit: plan('removeLimit', {
    done: ['removed'],
    row: LIMIT,
    key: ({ id }) => id,
    target: ({ id }) => `limit ${id}`,
  }),
  setRoute: plan('setRoute', { done: ['set'], row: ROUTE, key: ({ name }) => name, target: ({ name }) => name }),
  removeRoute: plan('removeRoute', {
    done: ['removed'],
    row: ROUTE,
    key: ({ name }) => name,
    target: ({ name }) => name,
  }),
  setChannels: plan('setChannels', {
    done: ['set'],
    row: CHANNEL,
    key: ({ changes }) => singleChannel(changes),
    target: ({ changes }) => channelsText(changes),
    details: ({ changes }, result) => ({ ...channelList(changes), ...clearedChannels(result) }),
  }),
  createChannels: plan('createChannels', {
    done: ['created'],
    row: CHANNEL,
    key: ({ channels }) => singleChannel(channels),
    target: ({ channels }) => channelsText(channels),
    details: ({ channels }) => channelList(channels),
  }),
  removeChannels: plan('removeChannels', {
    done: ['removed'],
    row: CHANNEL,
    key: ({ channels: [first = '', ...others] }) => (others.length === 0 ? first : ''),
    target: ({ channels }) => channelsText(channels.map(channel => ({ channel }))),
    details: ({ channels }) => channelList(channels.map(channel => ({ channel }))),
  }),
  setProvider: plan('setProvider', {
    done: ['set'],
    row: PROVIDER,
    key: ({ id }) => id,
    target: ({ id }) => `provider ${id}`,
    details: ({ origin }, result) => ({ origin, ...clearedChannels(result) }),
  }),
  removeProvider: plan('removeProvider', {
    done: ['removed'],
    row: PROVIDER,
    key: ({ id }) => id,
    target: ({ id }) => `provider ${id}`,
    details: (_, result) => clearedChannels(result),
  }),
  resetChannel: plan('resetChannel', {
    done: ['removed'],
    row: CHANNEL,
    key: ({ channel }) => channel,
    target: ({ channel }) => channel,
  }),
  setTier: plan('setTier', { done: ['set'], row: TIER, key: ({ name }) => name, target: ({ name }) => `tier ${name}` }),
  removeTier: plan('removeTier', {
    done: ['removed'],
    row: TIER,
    key: ({ name }) => name,
    target: ({ name }) => `tier ${name}`,
  }),
  noteSecrets: plan('noteSecrets', {
    done: ['rotated'],
    target: ({ kind }) => `secret ${kind}`,
    details: ({ marks }) => ({ newest: marks[0], older: marks.slice(1) }),
  }),
  dropSecrets: plan('dropSecrets', {
    done: ['dropped'],
    target: ({ kind }) => `secret ${kind}`,
    details: ({ marks }) => ({ dropped: marks }),
  }),
  orderDeletion: plan('orderDeletion', {
    done: ['ordered'],
    target: (_, result) => ('id' in result ? `deletion ${result.id}` : ''),
    account: ({ accountId }) => accountId ?? undefined,
    // The name of the end user is not logged, because the order is to remove it.
    details: ({ keyId, endUser, from, before }) => ({ keyId, ofEndUser: endUser !== null, from, before }),
  }),
  noteBodiesSeen: plan('noteBodiesSeen', {
    done: ['noted'],
    target: ({ callId }) => textId('req', callId),
    account: ({ accountId }) => accountId,
  }),
} as const

export type AuditPlans = typeof auditPlans
export type AuditedName = keyof AuditPlans
