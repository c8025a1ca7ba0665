// Endpoints for accounts: their names, how they pay, and what their keys may use.

import * as z from 'zod'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { textId } from '../../base/ids.ts'
import { usdText } from '../../base/money/money.ts'
import { timeOrNull, timeText } from '../../base/time.ts'
import type { AccountDetails } from '../../store/queries/accounts.ts'
import type { Scope } from '../../store/queries/paging.ts'
import { KEYS_COUNTED_MAX } from '../../store/queries/use.ts'
import type { ManagementParts } from '../management-parts.ts'
import { rightsWarnings } from '../services/rule-check.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf, listOf, listQuery, managedBy, time, version } from './endpoint.ts'
import { label, modelPatterns, tierName, yesNo } from './fields.ts'
import { checkGivenId, givenId, idTaken } from './given-id.ts'
import { shownWarnings, warnings } from './hint-schema.ts'
import { buildListQuery, listAnswer, requireDone, requireFound, resourceUnknown, tierUnknown } from './list-queries.ts'
import { boundUsd, money } from './money-input.ts'
import { shownUse, useFields, usesOf, withUse } from './use-fields.ts'

const accountType = z.enum(['personal', 'team'])
const kind = z
  .enum(['prepaid', 'postpaid'])
  .meta({ description: 'prepaid: calls need a balance or credit; postpaid: calls are never refused for lack of money' })
export const accountSettings = {
  name: label,
  kind,
  creditLimit: boundUsd,
  keepsBodies: z.boolean(),
  tier: tierName.nullable().meta({ description: 'The tier of its new keys; null: the default tier' }),
  allows: modelPatterns.meta({ description: 'Patterns of models that its keys may use; null: all models' }),
  denies: modelPatterns,
}

export const Account = z
  .object({
    id: z.string(),
    name: z.string(),
    type: accountType,
    kind,
    balance: money,
    held: money,
    creditLimit: money,
    available: money.nullable().meta({ description: 'What calls may still spend; null for a postpaid account' }),
    keepsBodies: z.boolean(),
    tier: z.string().nullable(),
    allows: modelPatterns,
    denies: modelPatterns,
    frozen: z.boolean(),
    frozenSince: time.nullable(),
    created: time,
    version,
    managedBy,
  })
  .meta({ id: 'Account' })

const ListedAccount = Account.extend({
  use: z
    .object({
      ...useFields,
      keys: z.number().meta({ description: `Keys that are not revoked; at most ${KEYS_COUNTED_MAX} are counted` }),
    })
    .meta({ id: 'AccountUse' })
    .nullable()
    .meta({ description: 'Null without `use=true`' }),
}).meta({ id: 'ListedAccount' })

const params = z.object({ account: idOf('acc') })
const Change = z.strictObject({ ...accountSettings, frozen: z.boolean() }).partial()
const Wanted = z.strictObject({
  id: givenId('acc').optional(),
  ...z.object(accountSettings).partial().shape,
  name: label,
  type: accountType.default('team'),
  uniqueName: z.boolean().default(false).meta({ description: 'Refuse if another account of a team has this name' }),
})

const reserved = { kind: 'admin', creditLimit: 'admin', frozen: 'admin', tier: 'admin' } as const

export function shownAccount({ frozenMs, createdMs, ...account }: AccountDetails): z.input<typeof Account> {
  const { balance, creditLimit, held } = account
  const available = usdText(String(BigInt(balance) + BigInt(creditLimit) - BigInt(held)))
  return {
    ...account,
    id: textId('acc', account.id),
    balance: usdText(balance),
    held: usdText(held),
    creditLimit: usdText(creditLimit),
    available: account.kind === 'postpaid' ? null : available,
    frozen: frozenMs !== null,
    frozenSince: timeOrNull(frozenMs),
    created: timeText(createdMs),
  } as z.input<typeof Account>
}

const Written = Account.extend(warnings)

const warningsFor = (parts: ManagementParts, { allows, denies }: z.output<typeof Change>) =>
  shownWarnings(rightsWarnings({ patterns: [...(allows ?? []), ...(denies ?? [])] }, parts))

const creditLimitTooLow = (): Refusal => new Refusal('state_unfit', 'balance', { hint: hintOf('credit_too_low') })
const nameTaken = (): Refusal => new Refusal('name_taken', 'account', { param: 'name' })
const nameReserved = (): Refusal =>
  new Refusal('role_too_low', 'name', { param: 'name', hint: hintOf('team_name_reserved') })
const rightsTooWide = (): Refusal =>
  new Refusal('role_too_low', 'rights', {
    param: 'allows',
    hint: hintOf('rights_too_wide'),
  })

export function accountEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  return [...readEndpoints(parts), ...writeEndpoints(parts)]
}

type Shown = (id: number, scope: Scope | null) => Promise<{ body: z.input<typeof Account>; version: number }>

function buildShow({ queryWorker }: ManagementParts): Shown {
  return async (id, scope) => {
    const account = requireFound(await queryWorker.query('account', { id, scope }))
    return { body: shownAccount(account), version: account.version }
  }
}

function readEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  const show = buildShow(parts)
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/accounts',
      who: { account: 'viewer' },
      summary: 'List accounts: all of them, or those of which you are a member.',
      query: listQuery(
        {
          name: z.string().max(100).optional().meta({ description: 'The beginning of the name' }),
          type: accountType.optional(),
          kind: kind.optional(),
          frozen: yesNo.optional(),
          use: withUse,
        },
        ['created', 'name', 'balance'],
      ),
      answer: listOf(ListedAccount),
      async run({ query: { use, ...query }, scope }) {
        const pageQuery = buildListQuery(query, scope, '-created')
        const page = await parts.queryWorker.query('accounts', pageQuery)
        const uses = use === true ? await usesOf(parts, 'accountUse', page.rows, scope) : new Map<number, never>()
        return listAnswer(page, pageQuery, account => {
          const found = uses.get(account.id)
          return {
            ...shownAccount(account),
            use: found === undefined ? null : { ...shownUse(found), keys: found.keys },
          }
        })
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/accounts/{account}',
      who: { account: 'viewer' },
      summary: 'Show an account with its balance and settings.',
      params,
      answer: Account,
      run: ({ params: { account }, scope }) => show(account, scope),
    }),
  ]
}

function writeEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  const show = buildShow(parts)
  const { writer, mintId, onKeyChanged } = parts
  return [
    endpoint({
      method: 'POST',
      path: '/api/web/accounts',
      who: { site: 'admin' },
      summary: 'Create an account, without keys and money.',
      body: Wanted,
      answer: Written,
      status: 201,
      async run({ body: { id: wantedId, type, name, uniqueName, ...change }, by }) {
        const id = checkGivenId(wantedId, parts.dateMs()) ?? mintId()
        const result = await writer.run('createAccount', { ...change, id, name, type, uniqueName }, by)
        if (result.done === 'tier_unknown') throw await tierUnknown(parts, change.tier)
        requireDone(result, { id_taken: idTaken, name_taken: nameTaken })
        const { body, version } = await show(id, null)
        return { body: { ...body, ...warningsFor(parts, change) }, version }
      },
    }),
    endpoint({
      method: 'PATCH',
      path: '/api/web/accounts/{account}',
      who: { account: 'manager' },
      summary:
        'Change an account. Managers may restrict the models of its keys further; admins may also allow more, and rename ' +
        'the account of a team.',
      params,
      body: Change,
      // A file does not say whether an account is frozen.
      changes: ({ account }, { frozen: _, ...body }) =>
        Object.keys(body).length === 0 ? [] : [`accounts/${textId('acc', account)}`],
      answer: Written,
      reserved,
      async run({ params: { account: id }, body, scope, by }) {
        const result = await writer.run('setAccount', { ...body, id, scope }, by)
        if (result.done === 'tier_unknown') throw await tierUnknown(parts, body.tier)
        requireDone(result, {
          account_unknown: resourceUnknown,
          balance_too_low: creditLimitTooLow,
          rights_wider: rightsTooWide,
          name_reserved: nameReserved,
        })
        onKeyChanged() // cached keys contain fields of their account
        const { body: account, version } = await show(id, scope)
        return { body: { ...account, ...warningsFor(parts, body) }, version }
      },
    }),
  ]
}
