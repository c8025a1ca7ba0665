// The races as a process of their own, so that they can run on a copy of the gateway.
//
//   process.ts <rounds> <seed>

import { runRounds } from './rounds.ts'

const [rounds, seed] = process.argv.slice(2).map(Number)
process.stdout.write(JSON.stringify(await runRounds({ rounds: rounds!, seed: seed! })))
