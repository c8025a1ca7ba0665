// Five hundred callers, and not enough for all of them: exactly as many are admitted as the money, budget or code
// allows.

import { expect, test } from 'bun:test'
import { raceNames, runRounds } from './rounds.ts'

const ROUNDS = 50
const MS_MAX = 300_000

test.each(raceNames)(
  'the race for %s has the right number of winners, fifty times',
  async name => {
    const seed = Date.now() % 1_000_000
    const violations = await runRounds({ rounds: ROUNDS, seed, races: [name] })
    expect({ seed, violations }).toEqual({ seed, violations: [] })
  },
  MS_MAX,
)
