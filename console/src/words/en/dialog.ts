import { words } from '../words.ts'

export const dialogWords = words('dialog', {
  close: 'Close',
  cancel: 'Cancel',
  typeToConfirm: 'Type {text} to confirm.',
})
