// All operations as the writer runs them: some, then the operator's balances, then the commit.

import { accountOperations } from './account-operations.ts'
import type { Books } from './books.ts'
import { fundingOperations } from './funding-operations.ts'
import { codeOperations } from './code-operations.ts'
import { keptOperations } from './kept-operations.ts'
import { keyOperations } from './key-operations.ts'
import { ledgerOperations } from './ledger-operations.ts'
import type { Run } from './operations.ts'
import { peopleOperations } from './people-operations.ts'
import { recordOperations } from './record-deletion.ts'
import { ruleOperations } from './rules-operations.ts'
import { secretOperations } from './secret-operations.ts'
import { tierOperations } from './tier-operations.ts'
import { webhookOperations } from './webhook-operations.ts'

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
