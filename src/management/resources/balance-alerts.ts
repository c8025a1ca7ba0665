// When an account is to be called low: what its webhooks are told of depends on it.

import * as z from 'zod'
import { moneyText } from '../../store/ledger/money-text.ts'
import type { Scope } from '../../store/queries/paging.ts'
import type { ManagementParts } from '../management-parts.ts'
import { usdText } from '../services/statement-lines.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf, nothing } from './endpoint.ts'
import { done, found, unknown } from './listing.ts'
import { money, positiveUsd } from './money-input.ts'

const levels = ['fine', 'low', 'empty'] as const

const BalanceAlert = z
  .object({
    threshold: money.nullable().meta({ description: 'Null: it is never called low.' }),
    state: z.enum(levels).nullable().meta({ description: 'As it was last told.' }),
  })
  .meta({ id: 'BalanceAlert' })

const params = z.object({ account: idOf('acc') })
const path = '/api/web/accounts/{account}/balance-alert'

export function balanceAlertEndpoints({ desk, writer }: ManagementParts): readonly WebEndpoint[] {
  async function show(id: number, scope: Scope | null) {
    const { threshold, level, version } = found(await desk.ask('balanceAlert', { id, scope }))
    const state = level === null ? null : levels[level]!
    return { body: { threshold: threshold === null ? null : usdText(threshold), state }, version }
  }
  return [
    endpoint({
      ...{ method: 'GET', path, params },
      who: { account: 'viewer' },
      about: 'Show when an account is called low, and whether it is.',
      answer: BalanceAlert,
      run: ({ params: { account }, scope }) => show(account, scope),
    }),
    endpoint({
      ...{ method: 'PUT', path, params },
      who: { account: 'manager' },
      about: 'Say below which balance, with its credit limit, an account is low; if it is, that is told at once.',
      body: z.strictObject({ threshold: positiveUsd }),
      answer: BalanceAlert,
      async run({ params: { account }, body, scope, by }) {
        const input = { accountId: account, scope, threshold: moneyText(body.threshold) }
        done(await writer.run('setAlert', input, by), { account_unknown: unknown })
        return show(account, scope)
      },
    }),
    endpoint({
      ...{ method: 'DELETE', path, params },
      who: { account: 'manager' },
      about: 'Never call an account low.',
      answer: nothing,
      status: 204,
      async run({ params: { account }, scope, by }) {
        const input = { accountId: account, scope, threshold: null }
        done(await writer.run('setAlert', input, by), { account_unknown: unknown })
        return {}
      },
    }),
  ]
}
