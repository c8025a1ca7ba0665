// The thread that adds records to the statistics on PostgreSQL, over a connection of its own. Summing up takes CPU time,
// for which no call should wait.

import { serveThread } from '../../base/threads/serve-thread.ts'
import { RecordMoneyCalculator } from '../statistics/record-money.ts'
import type { EndUserToErase } from '../statistics/statistics-thread.ts'
import type { PoolOptions } from './pools.ts'
import { PostgresPool } from './pools.ts'
import { eraseEndUser, isLogged, lastLogged, pruneSteps, rollUpSome } from './roll-up.ts'

export interface RollUpThreadMethods {
  /** Sums up some records. Returns whether no more are waiting. */
  step(): boolean
  /** Returns when all records that are written by now are summed up. */
  catchUp(): void
  /** Deletes expired sums. */
  prune(): void
  eraseEndUser(request: EndUserToErase): void
  close(): void
}

/** Few enough that a step takes little time: others wait for its lock. */
const ROWS_PER_STEP = 2_000

serveThread<RollUpThreadMethods, PoolOptions>(options => {
  const pool = new PostgresPool({ ...options, connections: 1 })
  const money = new RecordMoneyCalculator()

  async function step(): Promise<boolean> {
    return (await pool.transact(rollUpSome(ROWS_PER_STEP, money, Date.now()))) < ROWS_PER_STEP
  }

  async function catchUp(): Promise<void> {
    const last = await pool.read(lastLogged())
    // Rows whose numbers are lower may be committed later; waiting for them too does no harm.
    while (last !== undefined && (await pool.read(isLogged(last)))) await step()
  }

  async function prune(): Promise<void> {
    for (const some of pruneSteps(Date.now())) while ((await pool.transact(some())) > 0);
  }

  // There is one connection, and waiting for it has a deadline.
  let previous: Promise<unknown> = Promise.resolve()
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const next = previous.then(work, work)
    previous = next
    return next
  }
  return {
    step: () => inTurn(step),
    catchUp: () => inTurn(catchUp),
    prune: () => inTurn(prune),
    eraseEndUser: ({ endUser, accountId }) => inTurn(() => pool.transact(eraseEndUser(endUser, accountId))),
    close: () => pool.close(),
  }
})
