// Builds the handlers of all operations. For each transaction the writer runs some handlers, then writes the
// operator's balances, then commits.

import type { Books } from '../ledger/books.ts'
import { codeOperations } from '../ledger/code-operations.ts'
import { fundingOperations } from '../ledger/funding-operations.ts'
import { buildIndexWriter } from '../ledger/late-indexes.ts'
import { ledgerOperations } from '../ledger/ledger-operations.ts'
import { priceOperations } from '../ledger/price-operations.ts'
import { peopleOperations } from '../people/people-operations.ts'
import { recordOperations } from '../records/record-operations.ts'
import { keyOperations } from '../rules/key-operations.ts'
import { ruleOperations } from '../rules/rules-operations.ts'
import { tierOperations } from '../rules/tier-operations.ts'
import { secretOperations } from '../secrets/secret-operations.ts'
import { vaultOperations } from '../vault/vault-operations.ts'
import { webhookOperations } from '../webhooks/webhook-operations.ts'
import type { OperationHandlers } from './operations.ts'

export interface OperationRunner {
  readonly run: OperationHandlers
  /** Writes the changes of the operator's own balances. The writer calls this before each commit. */
  writeOperatorBalances(): void
  /** Adds the newest rows to an index, if there are many. The writer calls this between its transactions. */
  writeIndexes(): void
  /** Discards what a rolled-back transaction had changed in memory. */
  reset(): void
}

export interface OperationOptions {
  /** The most bytes that the stored responses of all accounts may take together. */
  readonly responsesBytesMax?: number | undefined
}

export function buildOperations(books: Books, { responsesBytesMax }: OperationOptions = {}): OperationRunner {
  const vault = vaultOperations(books.db, responsesBytesMax)
  return {
    run: {
      ...ledgerOperations(books),
      ...priceOperations(books),
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
    writeOperatorBalances: () => books.operators.write(),
    writeIndexes: buildIndexWriter(books.db),
    reset() {
      books.operators.reset()
      books.budgets.reload()
      vault.reset()
    },
  }
}
