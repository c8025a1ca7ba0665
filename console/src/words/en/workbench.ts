import { words } from '../words.ts'

export const workbenchWords = words('workbench', {
  title: 'Price backtest',
  intro:
    'A backtest computes what past calls would have cost with another price, or with another price multiplier of a tier. Nothing is changed.',
  model: 'Model',
  modelHint: 'Leave it empty to test a price multiplier on all models.',
  tier: 'Tier',
  anyTier: 'All tiers',
  multiplier: 'Price multiplier',
  multiplierHint: '1 is the list price. 1.2 adds a fifth.',
  price: 'Price to test',
  run: 'Run backtest',
  was: 'Actual',
  wouldBe: 'Backtest',
  difference: 'Difference',
  calls: 'Calls',
  byModel: 'By model',
  leftOut: 'Left out: {n} calls, {reason}',
  incomplete: 'Only calls since {time} could be computed.',
  nothing: 'There are no calls of this kind in this time.',
  empty: 'Choose what to test. The result appears here.',
  chart: 'Cost per day: actual and backtest',
})
