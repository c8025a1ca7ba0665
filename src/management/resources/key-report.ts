// What a key may do now: its state, models, limits, budgets and money, each with what is left; and which models a key or
// an account may really use.

import * as z from 'zod'
import { FairQueue } from '../../base/collections/fair-queue.ts'
import type { ErrorCode } from '../../base/errors.ts'
import { errorRows, refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { textId } from '../../base/ids.ts'
import { usdText } from '../../base/money/money.ts'
import { timeOrNull, timeText } from '../../base/time.ts'
import type { KeyRights } from '../../identity/key-rights.ts'
import type { Actor } from '../actor.ts'
import { shareOf } from '../actor.ts'
import type { LiveGateway } from '../live-gateway.ts'
import type { ManagementParts } from '../management-parts.ts'
import { periodEnd } from '../services/budget-period.ts'
import { keyStates, stateOf } from '../services/key-state.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf, listOf, listQuery, time } from './endpoint.ts'
import { buildListQuery, listAnswer, requireFound } from './list-queries.ts'
import { pageInMemory } from './memory-pages.ts'
import { money } from './money-input.ts'

const patterns = z.array(z.string()).nullable()

const Stop = z
  .object({
    code: z.string().meta({ description: 'The error that calls get' }),
    text: z.string(),
    until: time.nullable().meta({ description: 'When calls may succeed again; null: not by itself' }),
  })
  .meta({ id: 'KeyStop' })

const LimitLeft = z
  .object({
    whose: z.string().meta({ description: 'Whom the limit is for' }),
    resource: z.enum(['requests', 'tokens', 'concurrency']),
    span: z.enum(['minute', 'day']).nullable(),
    max: z.number(),
    used: z.number(),
    left: z.number(),
    resets: time.meta({ description: 'When all of it is available again' }),
  })
  .meta({ id: 'KeyLimitLeft' })

const BudgetLeft = z
  .object({
    scope: z.enum(['key', 'account']),
    span: z.enum(['day', 'month', 'total']),
    cap: money,
    spent: money,
    held: money,
    left: money,
    resets: time.nullable(),
  })
  .meta({ id: 'KeyBudgetLeft' })

const KeyReport = z
  .object({
    id: z.string(),
    name: z.string(),
    account: z.string(),
    tier: z.string(),
    state: z.enum(keyStates),
    expires: time.nullable(),
    stops: z.array(Stop).meta({ description: 'What refuses every call now; empty: calls are accepted' }),
    models: z.object({ allowed: patterns, allowedToAccount: patterns, denied: patterns, requiredTags: patterns }),
    endpoints: patterns,
    addresses: patterns,
    strictCap: z.boolean(),
    keepsBodies: z.boolean(),
    limits: z.array(LimitLeft),
    budgets: z.array(BudgetLeft),
    funds: z.object({
      kind: z.enum(['prepaid', 'postpaid']),
      frozen: z.boolean(),
      balance: money,
      held: money,
      creditLimit: money,
      available: money.nullable().meta({ description: 'Null: only budgets stop a postpaid account' }),
    }),
  })
  .meta({ id: 'KeyReport' })

const UsableModel = z
  .object({
    name: z.string().meta({ description: 'As callers write it' }),
    kind: z.enum(['model', 'route']),
    allowed: z.boolean(),
    reason: z.string().nullable().meta({ description: 'The code of the error that calls get; null: it is allowed' }),
  })
  .meta({ id: 'UsableModel' })

const params = z.object({ key: idOf('key') })
const viewer = { account: 'viewer' } as const
const modelQuery = listQuery({ allowed: z.stringbool().optional(), text: z.string().max(200).optional() }, ['name'])

type StopRow = z.input<typeof Stop>
const stop = (code: ErrorCode, untilMs: number | null = null, text: string = errorRows[code].message): StopRow => ({
  code,
  text,
  until: timeOrNull(untilMs),
})

export function keyReportEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  const { queryWorker, reader, dateMs } = parts
  function running(): LiveGateway {
    const gateway = parts.liveGateway()
    if (gateway === undefined) throw refusal('state_unfit', hintOf('gateway_needed'))
    return gateway
  }

  /** Lists take turns: thousands of models are compared with all patterns, on the thread that serves calls. */
  const turns = new FairQueue(1, 1)

  async function listModels(rights: KeyRights, { allowed, text, ...query }: z.output<typeof modelQuery>, actor: Actor) {
    const gateway = running()
    const pageQuery = buildListQuery(query, null, 'name')
    const reasonOf = ({ name }: ListedName): ErrorCode | null => gateway.modelProblem(name, rights) ?? null
    const found = names(parts).filter(
      ({ name }) => text === undefined || name.toLowerCase().includes(text.toLowerCase()),
    )
    const fits = (row: ListedName): boolean => allowed === (reasonOf(row) === null)
    const run = (): Promise<readonly ListedName[]> => filterInSteps(found, fits)
    const wanted = allowed === undefined ? found : await turns.run(shareOf(actor), { run })
    const page = pageInMemory(wanted, pageQuery, ({ name }) => name)
    return listAnswer(page, pageQuery, row => {
      const reason = reasonOf(row)
      return { ...row, reason, allowed: reason === null }
    })
  }

  return [
    endpoint({
      method: 'GET',
      path: '/api/web/keys/{key}/report',
      who: viewer,
      summary: 'Tell what a key may do now: its limits, budgets and money with what is left, and what stops it.',
      params,
      answer: KeyReport,
      async run({ params: { key: id }, scope }) {
        const key = requireFound(await queryWorker.query('key', { id, scope }))
        const { row } = requireFound(await reader.findKeyById(id))
        const nowMs = dateMs()
        const account = requireFound(await reader.accounts.findByKey(id, nowMs))
        const quotas = await running().quotasOf(row)
        const state = stateOf(key, nowMs)
        const budgets = account.budgets.map(budget => ({ ...budget, left: budget.cap - budget.spent - budget.held }))
        const { kind, balance, held, creditLimit, frozen } = account
        const available = kind === 'postpaid' ? null : balance + creditLimit - held
        const stops = [
          ...(state === 'active' ? [] : [stop('key_invalid', null, `The key is ${state}.`)]),
          ...(frozen ? [stop('account_frozen')] : []),
          ...(available !== null && available <= 0n ? [stop('balance_too_low')] : []),
          ...budgets.filter(({ left }) => left <= 0n).map(({ span }) => stop('budget_too_low', periodEnd(span, nowMs))),
          ...quotas
            .filter(({ remaining }) => remaining < 1)
            .map(({ resource, span, resetMs }) => stop(limitCode(resource, span), nowMs + Math.ceil(resetMs))),
        ]
        return {
          body: {
            ...{ id: textId('key', id), name: key.name, account: textId('acc', key.accountId), tier: row.tier, state },
            ...{ expires: timeOrNull(row.expiresMs), endpoints: row.endpoints, addresses: row.addresses, stops },
            ...{ strictCap: row.strictCap, keepsBodies: row.keepsBodies },
            models: {
              ...{ allowed: row.allows, allowedToAccount: row.accountAllows, denied: row.denies },
              requiredTags: row.requires,
            },
            limits: quotas.map(({ whose, resource, span, limit, remaining, resetMs }) => ({
              ...{ whose, resource, span, max: limit, left: remaining, used: Math.max(0, limit - remaining) },
              resets: timeText(nowMs + Math.ceil(resetMs)),
            })),
            budgets: budgets.map(({ scope: of, span, cap, spent, held: reserved, left }) => ({
              ...{ scope: of, span, cap: usdText(cap), spent: usdText(spent), held: usdText(reserved) },
              ...{ left: usdText(left > 0n ? left : 0n), resets: timeOrNull(periodEnd(span, nowMs)) },
            })),
            funds: {
              ...{ kind, frozen, balance: usdText(balance), held: usdText(held), creditLimit: usdText(creditLimit) },
              available: available === null ? null : usdText(available),
            },
          } as z.input<typeof KeyReport>,
        }
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/keys/{key}/models',
      who: viewer,
      summary: 'List the models that a key may really use, and why it may not use others.',
      params,
      query: modelQuery,
      answer: listOf(UsableModel),
      async run({ params: { key: id }, query, scope, actor }) {
        requireFound(await queryWorker.query('key', { id, scope }))
        return await listModels(requireFound(await reader.findKeyById(id)).row, query, actor)
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/accounts/{account}/models',
      who: viewer,
      summary: 'List the models that keys of an account may use, and why they may not use others.',
      params: z.object({ account: idOf('acc') }),
      query: modelQuery,
      answer: listOf(UsableModel),
      async run({ params: { account: id }, query, scope, actor }) {
        const { allows, denies } = requireFound(await queryWorker.query('account', { id, scope }))
        return await listModels({ allows: null, accountAllows: allows, denies, requires: null }, query, actor)
      },
    }),
  ]
}

const limitCode = (resource: string, span: string | null): ErrorCode => {
  if (resource === 'concurrency') return 'concurrency_exceeded'
  if (resource === 'tokens') return span === 'day' ? 'tpd_exceeded' : 'tpm_exceeded'
  return span === 'day' ? 'rpd_exceeded' : 'qpm_exceeded'
}

interface ListedName {
  readonly name: string
  readonly kind: 'model' | 'route'
}

/** After so many rows other work runs. */
const ROWS_PER_STEP = 50

async function filterInSteps<T>(rows: readonly T[], fits: (row: T) => boolean): Promise<readonly T[]> {
  const found: T[] = []
  for (const [at, row] of rows.entries()) {
    if (at % ROWS_PER_STEP === 0) await new Promise(resolve => setImmediate(resolve))
    if (fits(row)) found.push(row)
  }
  return found
}

/** Models of providers that have a channel, and the names that an operator has defined. A pattern is no name. */
function names({ catalogue, rules }: ManagementParts): readonly ListedName[] {
  const routes = rules.current.routes.filter(({ name }) => !name.includes('*'))
  const known = new Map(routes.map(({ name }) => [name, { name, kind: 'route' as const }]))
  const models = [...catalogue().providers.values()]
    .filter(({ id }) => catalogue().channelsOf(id).length > 0)
    .flatMap(provider => [...provider.models.keys()].map(id => `${provider.id}/${id}`))
    .filter(name => !known.has(name))
  return [...known.values(), ...models.map(name => ({ name, kind: 'model' as const }))]
}
