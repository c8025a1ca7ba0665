// The ledger as a whole: what all balances come to, and whether the auditor agrees with them.

import * as z from 'zod'
import { textId } from '../../base/ids.ts'
import type { ManagementParts } from '../management-parts.ts'
import { usdText } from '../services/statement-lines.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, time } from './endpoint.ts'
import { money } from './money-input.ts'

const Own = z.object({ account: z.string(), name: z.string(), about: z.string(), balance: money })
const Customers = z.object({ kind: z.enum(['prepaid', 'postpaid']), accounts: z.number(), balance: money, held: money })

const TrialBalance = z
  .object({
    own: z.array(Own),
    customers: z.array(Customers),
    sum: money.meta({ description: 'Of all balances: 0.00, or the books do not agree.' }),
    transfers: z.number().meta({ description: 'The last one that it is as of.' }),
  })
  .meta({ id: 'TrialBalance' })

const Finding = z.object({ check: z.string(), account: z.string().nullable(), finding: z.string() })

/** Money that they gave is below zero. */
const about: Readonly<Record<string, string>> = {
  revenue: 'What calls have brought in.',
  promo: 'What was given away.',
  shortfall: 'What calls cost beyond what their callers had.',
  clearing: 'What came from outside.',
}

export function ledgerEndpoints({ desk, auditor }: ManagementParts): readonly WebEndpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/ledger/trial-balance',
      who: { site: 'support' },
      about: "Show the operator's own accounts and what all balances come to. Statements tell what moved them.",
      answer: TrialBalance,
      async run() {
        const { operators, customers, sum, transfers } = await desk.ask('trialBalance', {})
        return {
          body: {
            own: operators.map(({ id, name, balance }) => ({
              ...{ account: textId('acc', id), name, about: about[name] ?? '', balance: usdText(balance) },
            })),
            customers: customers.map(({ kind, accounts, balance, held }) => ({
              kind: kind as 'prepaid' | 'postpaid',
              ...{ accounts, balance: usdText(balance), held: usdText(held) },
            })),
            ...{ sum: usdText(sum), transfers },
          },
        }
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/ledger/check',
      who: { site: 'support' },
      about: 'Show what the auditor found: it proves the books again and again while calls go on.',
      answer: z.object({
        books: z.enum(['agree', 'do not agree', 'not looked at yet']),
        audited: time.nullable(),
        findings: z.array(Finding),
      }),
      async run() {
        const { auditedMs } = auditor.state
        const findings = auditor.findings.map(({ check, accountId, text }) => ({
          ...{ check, account: accountId === null ? null : textId('acc', accountId), finding: text },
        }))
        const seen = auditedMs === null ? ('not looked at yet' as const) : ('agree' as const)
        const audited = auditedMs === null ? null : new Date(auditedMs).toISOString()
        return { body: { books: findings.length > 0 ? ('do not agree' as const) : seen, audited, findings } }
      },
    }),
  ]
}
