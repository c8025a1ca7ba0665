// Endpoints for the whole ledger: the sum of all balances, and the findings of the audit.

import * as z from 'zod'
import { textId } from '../../base/ids.ts'
import { usdText } from '../../base/money/money.ts'
import { timeOrNull } from '../../base/time.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, time } from './endpoint.ts'
import { Hint } from './hint-schema.ts'
import { money } from './money-input.ts'

const OperatorAccount = z.object({ account: z.string(), name: z.string(), about: z.string(), balance: money })
const Customers = z.object({ kind: z.enum(['prepaid', 'postpaid']), accounts: z.number(), balance: money, held: money })

const TrialBalance = z
  .object({
    own: z.array(OperatorAccount),
    customers: z.array(Customers),
    sum: money.meta({ description: 'The sum of all balances: 0.00 if the ledger is consistent.' }),
    transfers: z.number().meta({ description: 'The number of the last transfer that is included.' }),
  })
  .meta({ id: 'TrialBalance' })

const Finding = z.object({
  check: z.string(),
  account: z.string().nullable(),
  finding: z.string(),
  findingHint: Hint,
})

/** A negative balance is money that the account gave. */
const descriptions: Readonly<Record<string, string>> = {
  revenue: 'The income from calls.',
  promo: 'The credit that was given away.',
  shortfall: 'The costs of calls that the balances of their callers did not cover.',
  clearing: 'The money that came in from outside.',
}

export const books = z.enum(['agree', 'do not agree', 'not looked at yet'])

/** What the last audits say about the ledger. */
export function booksOf({ state, findings }: ManagementParts['auditor']): z.output<typeof books> {
  if (findings.length > 0) return 'do not agree'
  return state.auditedMs === null ? 'not looked at yet' : 'agree'
}

export function ledgerEndpoints({ queryWorker, auditor }: ManagementParts): readonly WebEndpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/ledger/trial-balance',
      who: { site: 'support' },
      summary: "Show the operator's own accounts and the sum of all balances. Their statements show the transfers.",
      answer: TrialBalance,
      async run() {
        const { operators, customers, sum, transfers } = await queryWorker.query('trialBalance', {})
        return {
          body: {
            own: operators.map(({ id, name, balance }) => ({
              account: textId('acc', id),
              name,
              about: descriptions[name] ?? '',
              balance: usdText(balance),
            })),
            customers: customers.map(({ kind, accounts, balance, held }) => ({
              kind: kind as 'prepaid' | 'postpaid',
              accounts,
              balance: usdText(balance),
              held: usdText(held),
            })),
            sum: usdText(sum),
            transfers,
          },
        }
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/ledger/check',
      who: { site: 'support' },
      summary: 'Show the findings of the ledger audit, which runs again and again while calls go on.',
      answer: z.object({
        books,
        audited: time.nullable(),
        findings: z.array(Finding),
      }),
      async run() {
        const findings = auditor.findings.map(({ check, accountId, text, hint }) => ({
          check,
          account: accountId === null ? null : textId('acc', accountId),
          finding: text,
          findingHint: hint,
        }))
        return { body: { books: booksOf(auditor), audited: timeOrNull(auditor.state.auditedMs), findings } }
      },
    }),
  ]
}
