// Sums up records in small steps. In the second step it kills itself before a statement.
//
// rolling-child.ts <address as JSON> <number of the statement>

import type { Steps } from '../../src/store/engine/steps.ts'
import { PostgresPool } from '../../src/store/postgres/pools.ts'
import { rollUpSome } from '../../src/store/postgres/roll-up.ts'
import { RecordMoneyCalculator } from '../../src/store/statistics/record-money.ts'

const [address, statement] = process.argv.slice(2)
const pool = new PostgresPool({ address: JSON.parse(address!), connections: 1, deadlineMs: 60_000 })
const money = new RecordMoneyCalculator()
const rollUp = (): Steps<number> => rollUpSome(10, money, Date.now())

function* killedAt(steps: Steps<number>, count: number): Steps<number> {
  let step = steps.next()
  for (let at = 0; !step.done; at++) {
    if (at === count) process.kill(process.pid, 'SIGKILL')
    step = steps.next(yield step.value)
  }
  return step.value
}

await pool.transact(rollUp())
await pool.transact(killedAt(rollUp(), Number(statement)))
await pool.close()
