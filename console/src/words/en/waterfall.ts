import { words } from '../words.ts'

export const waterfallWords = words('waterfall', {
  label: 'Stages of the call, in the order of time',
  first: 'first content after {time}',
})
