// Endpoints for the balance threshold below which the webhooks of an account get balance.low.

import * as z from 'zod'
import { usdText } from '../../base/money/money.ts'
import { moneyText } from '../../store/ledger/money-text.ts'
import type { Scope } from '../../store/queries/paging.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf, noContent, version } from './endpoint.ts'
import { requireDone, requireFound, resourceUnknown } from './list-queries.ts'
import { money, positiveUsd } from './money-input.ts'

const levels = ['fine', 'low', 'empty'] as const

const BalanceAlert = z
  .object({
    threshold: money.nullable().meta({ description: 'Null: no threshold, so the balance is never low.' }),
    state: z.enum(levels).nullable().meta({ description: 'The state of the last event.' }),
    version,
  })
  .meta({ id: 'BalanceAlert' })

const params = z.object({ account: idOf('acc') })
const path = '/api/web/accounts/{account}/balance-alert'

export function balanceAlertEndpoints({ queryWorker, writer }: ManagementParts): readonly WebEndpoint[] {
  async function show(id: number, scope: Scope | null) {
    const row = requireFound(await queryWorker.query('balanceAlert', { id, scope }))
    const { threshold, level } = row
    const state = level === null ? null : levels[level]!
    return {
      body: { threshold: threshold === null ? null : usdText(threshold), state, version: row.version },
      version: row.version,
    }
  }
  return [
    endpoint({
      method: 'GET',
      path,
      params,
      who: { account: 'viewer' },
      summary: 'Show the balance threshold of an account and whether its balance is low.',
      answer: BalanceAlert,
      run: ({ params: { account }, scope }) => show(account, scope),
    }),
    endpoint({
      method: 'PUT',
      path,
      params,
      who: { account: 'manager' },
      summary:
        'Set the threshold for balance plus credit limit. If the account is already below it, the event is sent at once.',
      body: z.strictObject({ threshold: positiveUsd }),
      answer: BalanceAlert,
      async run({ params: { account }, body, scope, by }) {
        const input = { accountId: account, scope, threshold: moneyText(body.threshold) }
        requireDone(await writer.run('setAlert', input, by), { account_unknown: resourceUnknown })
        return show(account, scope)
      },
    }),
    endpoint({
      method: 'DELETE',
      path,
      params,
      who: { account: 'manager' },
      summary: 'Remove the balance threshold of an account.',
      answer: noContent,
      status: 204,
      async run({ params: { account }, scope, by }) {
        const input = { accountId: account, scope, threshold: null }
        requireDone(await writer.run('setAlert', input, by), { account_unknown: resourceUnknown })
        return {}
      },
    }),
  ]
}
