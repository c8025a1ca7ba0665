// The job that writes the daily hashes, on any database that runs steps.

import { statelessOperations } from '../../src/store/engine/cold-operations.ts'
import { DayCloser } from '../../src/store/engine/day-closer.ts'
import type { OperationInput, OperationResult } from '../../src/store/engine/operations.ts'
import type { Steps } from '../../src/store/engine/steps.ts'
import type { QueryInput, QueryName, QueryResult } from '../../src/store/queries/queries.ts'
import { stepQueries } from '../../src/store/queries/queries.ts'

export interface ClosedDays {
  run<T>(steps: Steps<T>): T | Promise<T>
  readonly nowMs: number
  readonly transfersAtOnce?: number
  /** Called before each write. */
  onWrite?(): void
}

/** Needs no context. */
export const closeDay = statelessOperations.closeDay as (
  input: OperationInput<'closeDay'>,
) => Steps<OperationResult<'closeDay'>>

/** Closes all days before that of `nowMs`. */
export async function closeDays({ run, nowMs, transfersAtOnce, onWrite }: ClosedDays): Promise<void> {
  const parts = {
    queries: {
      async query<Name extends QueryName>(name: Name, input: QueryInput<Name>): Promise<QueryResult<Name>> {
        return await run(stepQueries[name](input))
      },
    },
    writer: {
      async run(_name: string, input: OperationInput<'closeDay'>): Promise<OperationResult<'closeDay'>> {
        onWrite?.()
        return await run(closeDay(input))
      },
    },
    dateMs: () => nowMs,
  }
  await new DayCloser(parts as unknown as ConstructorParameters<typeof DayCloser>[0], transfersAtOnce).sweep()
}
