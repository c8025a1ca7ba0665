// All operations as the writer runs them: some, then the operator's balances, then the commit.

import { accountOperations } from '../ledger/account-operations.ts'
import type { Books } from '../ledger/books.ts'
import { codeOperations } from '../ledger/code-operations.ts'
import { fundingOperations } from '../ledger/funding-operations.ts'
import { ledgerOperations } from '../ledger/ledger-operations.ts'
import { peopleOperations } from '../people/people-operations.ts'
import { recordOperations } from '../records/deletion-orders.ts'
import { keyOperations } from '../rules/key-operations.ts'
import { ruleOperations } from '../rules/rules-operations.ts'
import { tierOperations } from '../rules/tier-operations.ts'
import { secretOperations } from '../secrets/secret-operations.ts'
import { keptOperations } from '../vault/kept-operations.ts'
import { webhookOperations } from '../webhooks/webhook-operations.ts'
import type { Run } from './operations.ts'

export interface Operating {
  readonly run: Run
  /** Brings the operator's own balances up to date; before each commit. */
  balance(): void
  /** Forgets what a rolled-back transaction had noted. */
  reset(): void
}

export interface OperatingOptions {
  /** Stored responses of all accounts together. */
  readonly responsesBytesMax?: number | undefined
}

export function buildOperations(books: Books, { responsesBytesMax }: OperatingOptions = {}): Operating {
  const kept = keptOperations(books.db, responsesBytesMax)
  return {
    run: {
      ...ledgerOperations(books),
      ...accountOperations(books),
      ...keyOperations(books),
      ...fundingOperations(books),
      ...codeOperations(books),
      ...ruleOperations(books),
      ...recordOperations(books),
      ...secretOperations(books),
      ...tierOperations(books),
      ...peopleOperations(books),
      ...webhookOperations(books),
      ...kept.run,
    },
    balance: () => books.operators.write(),
    reset() {
      books.operators.reset()
      books.budgets.reload()
      kept.reset()
    },
  }
}
