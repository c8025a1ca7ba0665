import { words } from '../words.ts'

export const formWords = words('form', {
  cancel: 'Cancel',
  discard: 'Discard changes',
  conflict: 'Somebody else has changed this while you were editing. Choose a value for each field, then save again.',
  merged: 'Somebody else has changed other fields meanwhile. Your changes do not touch them. Save again.',
  field: 'Field',
  theirs: 'Now saved',
  mine: 'Yours',
  takeTheirs: 'Keep the saved one',
  keepMine: 'Use mine',
  leaveTitle: 'Leave without saving?',
  leaveText: 'Your changes on this page are lost if you leave.',
  stay: 'Stay',
  leave: 'Leave',
  half: 'A field is not complete.',
  noAmount: 'Write dollars with up to nine decimals, such as 0.25',
})
