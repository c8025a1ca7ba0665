import { words } from '../words.ts'

export const rotationWords = words('rotation', {
  text: 'There will be a new secret, shown once. Choose how long the old one goes on working, so that programs can be changed without a pause.',
  overlap: 'The old secret works for',
  overlap_0: 'no longer',
  overlap_300: '5 minutes',
  overlap_3600: '1 hour',
  overlap_86400: '1 day',
  overlap_604800: '7 days',
})
