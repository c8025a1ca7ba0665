// Prices of service classes, for vendors that publish them. The price data has none.
//
// Priority: openai.com/api-priority-processing, read 2026-11-15. It does not take long prompts. The class comes after
// the tiers of length, so that a long prompt costs the higher of the two prices. Flex: half of the price, as its
// documentation says for these models ("priced at Batch API rates"). Newer families have both classes, at prices
// without a source.

import { assert } from '../../src/base/assert.ts'
import { formatUsd, parseUsd } from '../../src/base/money/money.ts'
import type { FileCase, FilePrice, FileRates } from './prices.ts'

type Priority = readonly [input: string, cacheRead: string, output: string]

const priority: readonly (readonly [family: string, rates: Priority])[] = [
  ['gpt-4.1', ['3.50', '0.875', '14.00']],
  ['gpt-5', ['2.50', '0.25', '20.00']],
  ['gpt-5-mini', ['0.45', '0.045', '3.60']],
  ['gpt-5.1', ['2.50', '0.25', '20.00']],
  ['gpt-5.2', ['3.50', '0.35', '28.00']],
  ['gpt-5.4', ['5.00', '0.50', '30.00']],
  ['gpt-5.4-mini', ['1.50', '0.15', '9.00']],
  ['gpt-5.5', ['12.50', '1.25', '75.00']],
]

const flex = ['gpt-5', 'gpt-5-mini', 'gpt-5-nano', 'gpt-5.1', 'gpt-5.2', 'gpt-5.4', 'o3', 'o4-mini']

/** The price of a model of the vendor itself, with the known classes. */
export function withClasses(price: FilePrice, provider: string, id: string): FilePrice {
  if (provider !== 'openai') return price
  const family = id.replace(/-\d{4}-\d\d-\d\d$/, '')
  const [input, cacheRead, output] = priority.find(([name]) => name === family)?.[1] ?? []
  const cases: readonly FileCase[] = [
    ...(price.cases ?? []),
    ...(input && output && cacheRead ? [{ class: 'priority', input, output, cacheRead }] : []),
    ...(flex.includes(family) ? halved(price) : []),
  ]
  return cases.length === 0 ? price : { ...price, cases }
}

function halved(price: FilePrice): readonly FileCase[] {
  const { cases = [], currency, source, perSearch, perFileSearch, perRequest, ...rates } = price
  const lengths = cases.filter(({ inputAbove }) => inputAbove !== undefined)
  assert(lengths.length === cases.length, 'a price with classes has tiers of length only')
  return [
    { class: 'flex', ...halfOf(rates) },
    ...lengths.map(({ inputAbove, ...longer }) => ({ class: 'flex', inputAbove: inputAbove!, ...halfOf(longer) })),
  ]
}

function halfOf(rates: FileRates): FileRates {
  return Object.fromEntries(
    Object.entries(rates).map(([name, usd]) => {
      const exact = parseUsd(usd!)
      assert(exact !== undefined && exact % 2n === 0n, 'a rate has a half')
      return [name, formatUsd((exact / 2n) as typeof exact)]
    }),
  )
}
