import { words } from '../words.ts'

export const lossesWords = words('losses', {
  title: 'Loss map',
  intro:
    'What a call loses when a caller speaks another dialect than the provider. Every cell is tested with the official SDKs.',
  caller: 'Caller speaks',
  provider: 'Provider speaks',
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
