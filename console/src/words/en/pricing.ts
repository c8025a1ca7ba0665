import { words } from '../words.ts'

export const pricingWords = words('pricing', {
  title: 'Models and prices',
  unit: 'US dollars per million tokens.',
  tier: 'Tier',
  standard: 'standard prices',
  search: 'Model',
  model: 'Model',
  input: 'Input',
  output: 'Output',
  cacheRead: 'Cached input',
  context: 'Context',
  free: 'free',
  none: 'No model matches.',
  shown: { one: '1 model', other: '{n} models' },
  signIn: 'Sign in',
})
