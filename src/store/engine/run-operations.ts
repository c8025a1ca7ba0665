// Builds the handlers of all operations. For each transaction the writer runs some handlers, then writes the
// operator's balances, then commits.

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
  /** Writes the changes of the operator's own balances. The writer calls this before each commit. */
  balance(): void
  /** Discards what a rolled-back transaction had changed in memory. */
  reset(): void
}

export interface OperatingOptions {
  /** The most bytes that the stored responses of all accounts may take together. */
  readonly responsesBytesMax?: number | undefined
}

export function buildOperations(books: Books, { responsesBytesMax }: OperatingOptions = {}): Operating {
  const vault = keptOperations(books.db, responsesBytesMax)
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
      ...vault.run,
    },
    balance: () => books.operators.write(),
    reset() {
      books.operators.reset()
      books.budgets.reload()
      vault.reset()
    },
  }
}
