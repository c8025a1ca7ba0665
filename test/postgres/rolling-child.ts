// Sums up records in small steps, in a process that is killed. Writes a dot for each step.
//
// rolling-child.ts <address as JSON>

import { PostgresPool } from '../../src/store/postgres/pools.ts'
import { rollUpSome } from '../../src/store/postgres/roll-up.ts'
import { RecordMoneyCalculator } from '../../src/store/statistics/record-money.ts'

const pool = new PostgresPool({ address: JSON.parse(process.argv[2]!), connections: 1, deadlineMs: 10_000 })
const money = new RecordMoneyCalculator()
while ((await pool.transact(rollUpSome(10, money, Date.now()))) > 0) process.stdout.write('.')
await pool.close()
