import { words } from '../words.ts'

export const lossesWords = words('losses', {
  title: 'Loss map',
  intro:
    'What a call loses when the caller and the provider use different dialects. Every cell is tested with the official SDKs.',
  caller: 'Caller dialect',
  provider: 'Provider dialect',
  nothing: 'nothing lost',
  some: { one: '1 loss', other: '{n} losses' },
  cell: '{caller} to {provider}',
  choose: 'Choose a cell to see what is lost.',
  feature: 'Feature',
  lost: 'Lost',
  yours: 'What your callers lose',
  yoursNote: 'The newest 200 calls of this time that lost something.',
  yoursNone: 'No call of this time lost anything.',
  loss: 'Loss',
  calls: 'Calls',
})
