// Endpoints for API keys. The text of a key is shown when it is created or rotated, and never again.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { Refusal, refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { idAtMs, textId } from '../../base/ids.ts'
import { timeOrNull, timeText } from '../../base/time.ts'
import { InvalidRange, normalizeRange } from '../../http/address/ranges.ts'
import { digestsOf, parseKey } from '../../identity/key-format.ts'
import { endpointNames } from '../../identity/key-rights.ts'
import type { KeyDetails } from '../../store/queries/keys.ts'
import type { Scope } from '../../store/queries/paging.ts'
import type { KeyChange } from '../../store/rules/key-operations.ts'
import { isTag } from '../../upstreams/provider.ts'
import type { ManagementParts } from '../management-parts.ts'
import { keyStates, stateFilters, stateOf } from '../services/key-state.ts'
import { changeKey, createApiKey, revokeKey, rotateApiKey } from '../services/keys.ts'
import { rightsWarnings } from '../services/rule-check.ts'
import { must } from '../web/issue-text.ts'
import { Budget, shownBudget } from './budgets.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf, listOf, listQuery, managedBy, noContent, time, timeInput, version } from './endpoint.ts'
import { expiry, isPlayground, label, listOrAll, modelPatterns, refusePastExpiry, tierName } from './fields.ts'
import { checkGivenId, givenId, idTaken } from './given-id.ts'
import { shownWarnings, warnings } from './hint-schema.ts'
import { buildListQuery, listAnswer, requireDone, requireFound, resourceUnknown, tierUnknown } from './list-queries.ts'
import { boundUsd } from './money-input.ts'
import { shownUse, useFields, usesOf, withUse } from './use-fields.ts'

const range = z
  .string()
  .max(60)
  .transform((text, issues) => {
    try {
      return normalizeRange(text)
    } catch (fault) {
      if (!(fault instanceof InvalidRange)) throw fault
      issues.addIssue({ code: 'custom', message: fault.message, params: { hint: fault.hint } })
      return z.NEVER
    }
  })

export const keySettings = {
  name: label,
  tier: tierName,
  qpm: z
    .number()
    .int()
    .min(1)
    .max(bounds.qpmMax)
    .nullable()
    .meta({ description: 'Calls per minute; null: the limit of its tier' }),
  expires: expiry,
  allows: modelPatterns.meta({ description: 'Patterns of models that the key may use; null: all models' }),
  denies: modelPatterns,
  requires: listOrAll(z.string().refine(isTag, must('must_be_tag')), bounds.tagsMax),
  endpoints: listOrAll(z.enum(endpointNames), endpointNames.length),
  addresses: listOrAll(range, bounds.keyAddressesMax).meta({
    description: 'IP addresses and ranges, as in 10.0.0.0/8',
  }),
  strictCap: z.boolean(),
  keepsBodies: z.boolean(),
  strict: z.boolean(),
  explains: z.boolean(),
}

export const madeByMember = z.boolean().meta({
  description: 'It has the calls per minute and the required tags that admins have set on other keys of its account',
})

const Key = z
  .object({
    id: z.string(),
    account: z.string(),
    accountName: z.string().nullable(),
    name: z.string(),
    suffix: z.string(),
    tier: z.string(),
    qpm: keySettings.qpm,
    state: z.enum(keyStates),
    created: time,
    expires: time.nullable(),
    revoked: time.nullable(),
    disabled: z.boolean(),
    oldTextUntil: time.nullable().meta({ description: 'Until when the text before the last rotation still works' }),
    allows: modelPatterns,
    denies: modelPatterns,
    requires: z.array(z.string()).nullable(),
    endpoints: z.array(z.string()).nullable(),
    addresses: z.array(z.string()).nullable(),
    strictCap: z.boolean(),
    keepsBodies: z.boolean(),
    strict: z.boolean(),
    explains: z.boolean(),
    madeByMember,
    version,
    managedBy,
  })
  .meta({ id: 'Key' })

const ListedKey = Key.extend({
  use: z
    .object({ ...useFields, budgets: z.array(Budget) })
    .meta({ id: 'KeyUse' })
    .nullable()
    .meta({ description: 'Null without `use=true`' }),
}).meta({ id: 'ListedKey' })

/** What to do with many keys at once. */
const bulkActions = ['disable', 'enable', 'revoke'] as const
const KEYS_AT_ONCE_MAX = 100
const BulkResult = z
  .object({
    key: z.string(),
    result: z.enum(['done', 'unknown', 'revoked', 'playground', 'failed']).meta({
      description:
        'unknown: there is no such key, or you may not change it; revoked: it was revoked before; playground: such a key can only be revoked; failed: the database did not take the change, which can be tried again',
    }),
  })
  .meta({ id: 'BulkResult' })

/** A key with its text. */
const NewKey = Key.extend({ key: z.string() }).meta({ id: 'NewKey' })

const params = z.object({ key: idOf('key') })
const Change = z.strictObject({ ...keySettings, disabled: z.boolean() }).partial()
const Wanted = z.strictObject({
  id: givenId('key').optional(),
  ...z.object(keySettings).partial().shape,
  disabled: z.boolean().optional().meta({ description: 'Create it disabled: no call is accepted until it is enabled' }),
  name: label.optional().meta({ description: 'Default: "unnamed" and the last four characters of the key' }),
  account: idOf('acc').optional().meta({ description: 'Default: a new account; only admins may leave it out' }),
  madeByMember: madeByMember.optional(),
  credit: boundUsd.optional().meta({ description: 'Free credit for the account, in US dollars' }),
})

const reserved = { tier: 'admin', qpm: 'admin', explains: 'admin', requires: 'admin' } as const

type Shown = (id: number, scope: Scope | null) => Promise<{ body: z.input<typeof Key>; version: number }>

function buildShow({ queryWorker, dateMs }: ManagementParts): Shown {
  return async (id, scope) => {
    const key = requireFound(await queryWorker.query('key', { id, scope }))
    return { body: shown(key, dateMs()), version: key.version }
  }
}

function shown(key: KeyDetails, nowMs: number): z.input<typeof Key> {
  const { createdMs, expiresMs, revokedMs, disabledMs, oldUntilMs, accountId, ...rest } = key
  return {
    ...rest,
    id: textId('key', key.id),
    account: textId('acc', accountId),
    state: stateOf(key, nowMs),
    created: timeText(createdMs),
    expires: timeOrNull(expiresMs),
    revoked: timeOrNull(revokedMs),
    oldTextUntil: oldUntilMs !== null && oldUntilMs > nowMs ? timeText(oldUntilMs) : null,
    disabled: disabledMs !== null,
  } as z.input<typeof Key>
}

/** Converts a change to the input of the write operation. */
function changeOf({ expires, ...change }: z.output<typeof Change>, nowMs: number): KeyChange {
  refusePastExpiry(expires, nowMs)
  return { ...change, expiresMs: expires }
}

const warningsFor = (parts: ManagementParts, { allows, denies, requires }: z.output<typeof Change>) =>
  shownWarnings(rightsWarnings({ patterns: [...(allows ?? []), ...(denies ?? [])], tags: requires ?? [] }, parts))

const accountMissing = (): Refusal =>
  new Refusal('field_missing', 'account', { param: 'account', hint: hintOf('account_needed') })
const nameTaken = (): Refusal => new Refusal('name_taken', 'key', { param: 'name' })
const isRevoked = (): Refusal => new Refusal('state_unfit', 'revoked', { hint: hintOf('key_revoked') })
const creditTooHigh = (): Refusal => refusal('state_unfit', hintOf('posting_balance_high'), 'credit')
const tooMany = (): Refusal =>
  new Refusal('state_unfit', 'keys', {
    hint: hintOf('keys_max', { max: bounds.keysOfAccountMax }),
  })

export const keyEndpoints = (parts: ManagementParts): readonly WebEndpoint[] => {
  const show = buildShow(parts)
  return [
    ...readEndpoints(parts, show),
    ...writeEndpoints(parts, show),
    ...rotateAndRevokeEndpoints(parts, show),
    bulkEndpoint(parts),
  ]
}

function readEndpoints(parts: ManagementParts, show: Shown): readonly WebEndpoint[] {
  const { queryWorker, dateMs } = parts
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/keys',
      who: { account: 'viewer' },
      summary: 'List API keys: of all accounts, or of yours.',
      query: listQuery(
        {
          account: idOf('acc').optional(),
          name: z.string().max(100).optional().meta({ description: 'The beginning of the name' }),
          state: z.enum(keyStates).optional(),
          tier: tierName.optional(),
          suffix: z.string().max(10).optional().meta({ description: 'The last four characters of the key' }),
          from: timeInput.optional(),
          before: timeInput.optional(),
          use: withUse,
        },
        ['created', 'name'],
      ),
      answer: listOf(ListedKey),
      async run({ query: { state, from, before, use, ...query }, scope }) {
        const nowMs = dateMs()
        const filters = {
          ...stateFilters(state, nowMs),
          ...(from !== undefined && { from: idAtMs(from) }),
          ...(before !== undefined && { before: idAtMs(before) }),
        }
        const pageQuery = buildListQuery({ ...query, ...filters }, scope, '-created')
        const page = await queryWorker.query('keys', pageQuery)
        const uses = use === true ? await usesOf(parts, 'keyUse', page.rows, scope) : new Map<number, never>()
        return listAnswer(page, pageQuery, key => {
          const found = uses.get(key.id)
          const budgets = found?.budgets.map(budget => shownBudget(budget, nowMs)) ?? []
          return { ...shown(key, nowMs), use: found === undefined ? null : { ...shownUse(found), budgets } }
        })
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/keys/{key}',
      who: { account: 'viewer' },
      summary: 'Show an API key.',
      params,
      answer: Key,
      run: ({ params: { key }, scope }) => show(key, scope),
    }),
    endpoint({
      method: 'POST',
      path: '/api/web/keys/find',
      who: { account: 'viewer' },
      summary: 'Find an API key by its text.',
      body: z.strictObject({ key: z.string().max(200).meta({ writeOnly: true }) }),
      answer: Key,
      async run({ body, scope }) {
        const text = parseKey(body.key)
        const found = text && (await parts.reader.findKeyOfAny(digestsOf(text, parts.pepper)))
        return await show(requireFound(found).row.id, scope)
      },
    }),
  ]
}

function writeEndpoints(parts: ManagementParts, show: Shown): readonly WebEndpoint[] {
  return [
    endpoint({
      method: 'POST',
      path: '/api/web/keys',
      who: { account: 'developer' },
      summary: 'Create an API key. Its text is in this answer and is never shown again.',
      body: Wanted,
      answer: NewKey.extend(warnings),
      reserved: { ...reserved, credit: 'admin', id: 'admin', madeByMember: 'admin' },
      status: 201,
      async run({
        body: { id: wantedId, account, tier = null, qpm = null, name, credit = '0', ...settings },
        scope,
        by,
      }) {
        if (account === undefined && scope !== null) throw accountMissing()
        const id = checkGivenId(wantedId, parts.dateMs()) ?? parts.mintId()
        const [creditRef, accountId] = [parts.mintId(), account ?? parts.mintId()]
        const funds = { accountId, existing: account !== undefined, credit, creditRef }
        const change = changeOf(settings, parts.dateMs())
        const { text, result } = await createApiKey(parts, { ...change, ...funds, id, name, tier, qpm, scope }, by)
        if (result.done === 'tier_unknown') throw await tierUnknown(parts, tier)
        requireDone(result, {
          account_unknown: resourceUnknown,
          name_taken: nameTaken,
          id_taken: idTaken,
          too_many: tooMany,
          balance_too_high: creditTooHigh,
        })
        const { body, version } = await show(id, null)
        return { body: { ...body, key: text, ...warningsFor(parts, settings) }, version }
      },
    }),
    endpoint({
      method: 'PATCH',
      path: '/api/web/keys/{key}',
      who: { account: 'developer' },
      summary: 'Change, disable or enable an API key. The change applies from its next call on.',
      params,
      body: Change,
      changes: ({ key }) => [`keys/${textId('key', key)}`],
      answer: Key.extend(warnings),
      reserved,
      async run({ params: { key: id }, body, scope, by }) {
        const result = await changeKey(parts, { id, scope, by }, changeOf(body, parts.dateMs()))
        if (result.done === 'tier_unknown') throw await tierUnknown(parts, body.tier)
        requireDone(result, {
          unknown: resourceUnknown,
          revoked: isRevoked,
          playground: isPlayground,
          name_taken: nameTaken,
        })
        const { body: key, version } = await show(id, scope)
        return { body: { ...key, ...warningsFor(parts, body) }, version }
      },
    }),
  ]
}

function rotateAndRevokeEndpoints(parts: ManagementParts, show: Shown): readonly WebEndpoint[] {
  const overlapSeconds = z
    .number()
    .int()
    .min(0)
    .max(bounds.keyOverlapMsMax / 1_000)
    .default(0)
  return [
    endpoint({
      method: 'POST',
      path: '/api/web/keys/{key}/rotate',
      who: { account: 'developer' },
      summary:
        'Replace the text of a key. The new text is never shown again; the old one works for `overlapSeconds` more.',
      params,
      body: z.strictObject({ overlapSeconds }),
      answer: NewKey,
      async run({ params: { key: id }, body, scope, by }) {
        const { text, result } = await rotateApiKey(parts, { id, scope, by }, body.overlapSeconds * 1_000)
        requireDone(result, { unknown: resourceUnknown, revoked: isRevoked, playground: isPlayground })
        const { body: key, version } = await show(id, null)
        return { body: { ...key, key: text }, version }
      },
    }),
    endpoint({
      method: 'DELETE',
      path: '/api/web/keys/{key}',
      who: { account: 'developer' },
      summary: 'Revoke an API key for good. It stays in the list and in the records of its calls.',
      params,
      changes: ({ key }) => [`keys/${textId('key', key)}`],
      answer: noContent,
      status: 204,
      async run({ params: { key: id }, scope, by }) {
        requireDone(await revokeKey(parts, { id, scope, by }), { unknown: resourceUnknown })
        return {}
      },
    }),
  ]
}

function bulkEndpoint(parts: ManagementParts): WebEndpoint {
  return endpoint({
    method: 'POST',
    path: '/api/web/keys/bulk',
    who: { account: 'developer' },
    summary: 'Disable, enable or revoke many API keys. The answer has the result for each of them.',
    body: z.strictObject({ action: z.enum(bulkActions), keys: z.array(idOf('key')).min(1).max(KEYS_AT_ONCE_MAX) }),
    changes: (_params, { keys }) => keys.map(key => `keys/${textId('key', key)}`),
    answer: z.object({ data: z.array(BulkResult) }),
    async run({ body: { action, keys }, scope, by: { expectedVersion: _, ...by } }) {
      const change = (id: number) =>
        action === 'revoke'
          ? revokeKey(parts, { id, scope, by })
          : changeKey(parts, { id, scope, by }, { disabled: action === 'disable' })
      const faults: unknown[] = []
      const results = [...new Set(keys)].map(async id => {
        const { done } = await change(id).catch(fault => {
          faults.push(fault)
          return { done: 'failed' } as const
        })
        if (done === 'failed') return { key: textId('key', id), result: done }
        const isRefused = done === 'unknown' || done === 'playground' || (done === 'revoked' && action !== 'revoke')
        return { key: textId('key', id), result: isRefused ? done : ('done' as const) }
      })
      const data = await Promise.all(results)
      if (faults.length === data.length) throw faults[0]
      if (data.every(({ result }) => result === 'unknown')) throw resourceUnknown()
      return { body: { data } }
    },
  })
}
