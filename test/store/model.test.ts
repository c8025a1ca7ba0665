// A hundred thousand random operations: the ledger does what a few maps say it should.

import { expect, test } from 'bun:test'
import { runModel } from './model-run.ts'

test.each([1, 2, 3, 4])('the ledger does what its model does (seed %d)', seed => {
  const counts = runModel({ seed, steps: 25_000 })
  // Each of these must have happened, or the run shows nothing.
  const wanted = [
    ...['hold held', 'hold balance_too_low', 'hold budget_too_low', 'hold account_frozen', 'hold account_unknown'],
    ...['settle', 'settle exists', 'checkpoint noted', 'crash', 'post posted', 'post balance_too_low'],
    ...['refund posted', 'refund exists', 'refund call_not_charged', 'refund more_than_charged'],
    ...['budget set', 'budget removed', 'account set', 'account balance_too_low', 'day'],
  ]
  expect(wanted.filter(name => !counts[name])).toEqual([])
})
