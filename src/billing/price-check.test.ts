// Tests what counts as a disagreement between price lists.

import { expect, test } from 'bun:test'
import type { CheckedModel } from './price-check.ts'
import { checkPrices, listedRate } from './price-check.ts'

const usd = listedRate

function row(ours: CheckedModel['ours'], ...theirs: CheckedModel['ours'][]): CheckedModel {
  const listings = theirs.map((rates, index) => ({ source: `list ${index + 1}`, rates }))
  return { model: 'river/one', when: '', ours, theirs: listings }
}

test('equal rates agree, and rates that only we name are not checked', () => {
  const models = [row({ input: usd(2), output: usd(8), cacheRead: usd(0.5) }, { input: usd(2), output: usd(8) })]
  expect(checkPrices(models)).toEqual({ disagreements: [], unlisted: [] })
})

test('a different rate is named with both values, and a lower one is marked', () => {
  const { disagreements } = checkPrices([row({ input: usd(2), output: usd(9) }, { input: usd(2.5), output: usd(8) })])
  expect(disagreements).toEqual([
    {
      model: 'river/one',
      when: '',
      rate: 'input',
      ours: 2_000_000_000n,
      isCheaper: true,
      theirs: [{ source: 'list 1', rate: 2_500_000_000n }],
    },
    {
      model: 'river/one',
      when: '',
      rate: 'output',
      ours: 9_000_000_000n,
      isCheaper: false,
      theirs: [{ source: 'list 1', rate: 8_000_000_000n }],
    },
  ])
})

test('one agreeing list is enough, and for a kind that a list does not name its neighbour counts', () => {
  const own = { input: usd(3), output: usd(9) }
  const maker = { input: usd(2), output: usd(8), cacheRead: usd(0.2) }
  expect(checkPrices([row({ ...own, cacheRead: usd(3) }, own, maker)]).disagreements).toEqual([])
  expect(checkPrices([row({ ...own, cacheRead: usd(0.2) }, own, maker)]).disagreements).toEqual([])
  expect(checkPrices([row({ ...own, cacheRead: usd(1) }, own, maker)]).disagreements).toHaveLength(1)
})

test('a fee that we do not charge is cheaper, and has no neighbour', () => {
  const [found] = checkPrices([row({ input: usd(2) }, { input: usd(2), perSearch: usd(0.01) })]).disagreements
  expect(found).toMatchObject({ rate: 'perSearch', ours: undefined, isCheaper: true })
})

test('a reason is passed on, and a model that is in no list is named once', () => {
  const known = { ...row({ input: usd(1) }, { input: usd(2) }), reason: 'the vendor said so' }
  const unknown = { ...row({ input: usd(1) }), model: 'river/two' }
  const { disagreements, unlisted } = checkPrices([known, unknown, { ...unknown, when: 'at 01:00' }])
  expect(disagreements).toMatchObject([{ model: 'river/one', reason: 'the vendor said so' }])
  expect(unlisted).toEqual(['river/two'])
})

test('a binary fraction gives the intended decimal, and a third is rounded up', () => {
  expect(listedRate(0.18000000000000002)).toBe(180_000_000n)
  expect(listedRate(0.07)).toBe(70_000_000n)
  expect(listedRate(0.08333333333333334)).toBe(83_333_334n)
})
