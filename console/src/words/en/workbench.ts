import { words } from '../words.ts'

export const workbenchWords = words('workbench', {
  title: 'Price workbench',
  intro: 'What would past calls have cost with another price, or another multiplier of a tier? Nothing is changed.',
  model: 'Model',
  modelHint: 'Leave it empty to try a multiplier on all models.',
  tier: 'Tier',
  anyTier: 'All tiers',
  multiplier: 'Multiplier',
  multiplierHint: '1 is the price itself. 1.2 adds a fifth.',
  price: 'Price to try',
  run: 'Compute',
  was: 'It was',
  wouldBe: 'It would be',
  difference: 'Difference',
  calls: 'Calls',
  byModel: 'By model',
  leftOut: 'Left out: {n} calls, {reason}',
  incomplete: 'Only calls since {time} could be computed.',
  nothing: 'There are no calls of this kind in this time.',
  empty: 'Choose what to try. The result appears here.',
  chart: 'Cost each day: what it was and what it would be',
})
