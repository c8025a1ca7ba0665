// Builds the handlers of all operations. For each transaction the writer runs some handlers, then writes the
// operator's balances, then commits.

import type { AuditJob, StaleVersion } from '../audit-log/audited-operations.ts'
import { runAudited } from '../audit-log/audited-operations.ts'
import { readAccount } from '../ledger/accounts.ts'
import type { Books } from '../ledger/books.ts'
import { buildIndexWriter } from '../ledger/late-indexes.ts'
import { ledgerOperations } from '../ledger/ledger-operations.ts'
import { vaultOperations } from '../vault/vault-operations.ts'
import { statelessOperations } from './cold-operations.ts'
import type { OperationContext } from './operation.ts'
import type { ColdName, OperationHandlers, OperationName, OperationResult, OperationSteps } from './operations.ts'
import type { RunSteps } from './sqlite-steps.ts'
import { sqliteSteps } from './sqlite-steps.ts'
import type { Steps } from './steps.ts'

export interface OperationRunner {
  readonly run: OperationHandlers
  /** Runs an audited operation and writes its audit row. */
  runAudited(job: AuditJob): OperationResult<OperationName> | StaleVersion
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
  const vault = vaultOperations({ responsesBytesMax })
  const steps: Pick<OperationSteps, ColdName> = { ...statelessOperations, ...vault.run }
  const context = contextOf(books)
  const runSteps = sqliteSteps(books.db)
  return {
    run: { ...ledgerOperations(books), ...asFunctions(steps, context, runSteps) },
    runAudited: job => runSteps(runAudited(job, steps, context)),
    writeOperatorBalances: () => books.operators.write(),
    writeIndexes: buildIndexWriter(books.db),
    reset() {
      books.operators.reset()
      books.budgets.reload()
      vault.reset()
    },
  }
}

const contextOf = ({ nowMs, operators, budgets }: Books): OperationContext => ({
  nowMs,
  budgets,
  operators: {
    *read(id) {
      return (yield* readAccount(id))!.balance
    },
    // biome-ignore lint/correctness/useYield: the change is written at the end of the transaction
    *move(id, amount) {
      operators.move(id, amount)
    },
  },
})

type AnySteps = (input: unknown, context: OperationContext) => Steps<unknown>

function asFunctions(
  steps: Pick<OperationSteps, ColdName>,
  context: OperationContext,
  runSteps: RunSteps,
): Pick<OperationHandlers, ColdName> {
  const entries = Object.entries(steps as Record<string, AnySteps>)
  const handlers = entries.map(([name, operation]) => [name, (input: unknown) => runSteps(operation(input, context))])
  return Object.fromEntries(handlers) as Pick<OperationHandlers, ColdName>
}
