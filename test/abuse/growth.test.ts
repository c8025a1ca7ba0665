// A caller may choose any number of names of models and conversations. The gateway remembers a bounded number of them,
// and serves others as before.

import { expect, test } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import { Limits } from '../../src/limits/limits.ts'
import { Affinity } from '../../src/routing/choice/affinity.ts'
import { RetryBudget } from '../../src/routing/retry-budget.ts'
import type { LimitRow } from '../../src/store/rules/rules.ts'
import { requests, row, subject } from '../limits/rows.ts'

const MANY = 300_000

test('the retry budget remembers a bounded number of model names', () => {
  const budget = new RetryBudget()
  for (let name = 0; name < MANY; name++) budget.begin(`m${name}`, name).end()
  expect(budget.size).toBeLessThanOrEqual(bounds.retryGroupsMax)
  expect(budget.begin('other', MANY).mayRetry(MANY)).toBe(true)
})

test('affinity remembers a bounded number of conversations', () => {
  const affinity = new Affinity()
  const kept = { channelId: 'c', model: 'm' }
  for (let name = 0; name < MANY; name++) affinity.set(`1:${name}`, kept, { ttlMs: undefined, nowMs: name })
  expect(affinity.size).toBeLessThanOrEqual(bounds.affinitiesMax)
})

const scopes: readonly LimitRow['per'][] = [['key', 'model'], ['account', 'model'], ['model']]

test.each(scopes.map(per => ({ per })))('limits remember a bounded number of model names with %o', ({ per }) => {
  const limits = new Limits()
  limits.setRules([row(1, { ...requests(5, 'day'), per })])
  for (let name = 0; name < MANY / 10; name++) limits.admit(subject({ model: `open/m${name}` }), name / 100)
  expect(limits.size.owners).toBeLessThanOrEqual(bounds.limitedModelsOfKeyMax + 2)
  const other = { keyId: 2, accountId: 20, model: 'open/of-another' }
  expect(limits.admit(subject(other), MANY).admitted).toBe(true)
})
