import { words } from '../words.ts'

export const valuesWords = words('values', {
  yes: 'yes',
  no: 'no',
  copy: 'Copy',
  copied: 'Copied',
  code: 'Code',
  copyFailed: 'Copying failed',
})
