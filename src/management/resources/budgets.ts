// Endpoints for budgets: what a key or an account may spend in total, in a day or in a month.

import * as z from 'zod'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { textId } from '../../base/ids.ts'
import { usdText } from '../../base/money/money.ts'
import { timeOrNull } from '../../base/time.ts'
import type { BudgetSpan } from '../../store/ledger/hold-types.ts'
import type { BudgetDetails } from '../../store/queries/accounts.ts'
import type { ManagementParts } from '../management-parts.ts'
import { periodEnd } from '../services/budget-period.ts'
import type { ManagementRequest, WebEndpoint } from './endpoint.ts'
import { endpoint, idOf, noContent, time, version } from './endpoint.ts'
import { isPlayground } from './fields.ts'
import { requireDone, requireFound, resourceUnknown } from './list-queries.ts'
import { boundUsd, money } from './money-input.ts'

export const budgetSpan = z.enum(['total', 'day', 'month'])

export const Budget = z
  .object({
    span: budgetSpan,
    cap: money,
    spent: money,
    held: money,
    left: money,
    ends: time.nullable().meta({ description: 'The end of the current day or month (UTC); null for a total budget' }),
    version,
  })
  .meta({ id: 'Budget' })

const budgetTooWide = (): Refusal =>
  new Refusal('role_too_low', 'budget', { param: 'cap', hint: hintOf('budget_too_wide') })

type Owner = 'key' | 'account'
type BudgetRequest = Pick<ManagementRequest<Readonly<Record<string, unknown>>, unknown, unknown>, 'params' | 'scope'>

export function shownBudget({ cap, spent, held, ...budget }: BudgetDetails, nowMs: number): z.input<typeof Budget> {
  const left = BigInt(cap) - BigInt(spent) - BigInt(held)
  return {
    span: budget.span as BudgetSpan,
    cap: usdText(cap),
    spent: usdText(spent),
    held: usdText(held),
    left: usdText(String(left > 0n ? left : 0n)),
    ends: timeOrNull(periodEnd(budget.span as BudgetSpan, nowMs)),
    version: budget.version,
  }
}

export const budgetEndpoints = (parts: ManagementParts): readonly WebEndpoint[] =>
  (['account', 'key'] as const).flatMap(of => endpointsOf(parts, of))

const ownerNames = { account: 'an account (all its keys together)', key: 'a key' }

function endpointsOf({ queryWorker, writer, dateMs }: ManagementParts, of: Owner): readonly WebEndpoint[] {
  const path = `/api/web/${of}s/{${of}}/budgets` as const
  const owner = z.object({ [of]: idOf(of === 'key' ? 'key' : 'acc') })
  const one = z.object({ ...owner.shape, span: budgetSpan })
  const spanIn = (params: Readonly<Record<string, unknown>>): BudgetSpan => params.span as BudgetSpan
  const idIn = (params: Readonly<Record<string, unknown>>): number => params[of] as number
  const changes = (params: Readonly<Record<string, unknown>>): readonly string[] => [
    `${of}s/${textId(of === 'key' ? 'key' : 'acc', idIn(params))}`,
  ]
  const read = async ({ params, scope }: BudgetRequest): Promise<readonly BudgetDetails[]> =>
    requireFound(await queryWorker.query('budgets', { id: idIn(params), of, scope, nowMs: dateMs() }))
  return [
    endpoint({
      method: 'GET',
      path,
      who: { account: 'viewer' },
      summary: `List the budgets of ${ownerNames[of]}.`,
      params: owner,
      answer: z.object({ data: z.array(Budget) }),
      run: async request => ({ body: { data: (await read(request)).map(budget => shownBudget(budget, dateMs())) } }),
    }),
    endpoint({
      method: 'PUT',
      path: `${path}/{span}`,
      who: { account: 'manager' },
      summary: `Set a budget of ${ownerNames[of]}. Spending counts from when it is first set; a new cap keeps what was spent.`,
      params: one,
      changes,
      body: z.strictObject({ cap: boundUsd }),
      answer: Budget,
      async run(request) {
        const {
          params,
          body: { cap },
          scope,
          by,
        } = request
        const wanted = spanIn(params)
        await read(request) // refuses the number of an account that is written as the id of a key
        const budgetId = { scopeId: idIn(params), scope, span: wanted }
        requireDone(await writer.run('setBudget', { ...budgetId, cap }, by), {
          scope_unknown: resourceUnknown,
          budget_wider: budgetTooWide,
          playground: isPlayground,
        })
        const budget = requireFound((await read(request)).find(row => row.span === wanted))
        return { body: shownBudget(budget, dateMs()), version: budget.version }
      },
    }),
    endpoint({
      method: 'DELETE',
      path: `${path}/{span}`,
      who: { account: 'manager' },
      summary: `Remove a budget of ${ownerNames[of]}.`,
      params: one,
      changes,
      answer: noContent,
      status: 204,
      async run(request) {
        const { params, scope, by } = request
        await read(request)
        const budgetId = { scopeId: idIn(params), scope, span: spanIn(params) }
        const result = await writer.run('setBudget', { ...budgetId, cap: null }, by)
        requireDone(result, {
          scope_unknown: resourceUnknown,
          none: resourceUnknown,
          budget_wider: budgetTooWide,
          playground: isPlayground,
        })
        return {}
      },
    }),
  ]
}
