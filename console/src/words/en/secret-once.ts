import { words } from '../words.ts'

export const secretOnceWords = words('secretOnce', {
  done: 'I have copied it',
  doneLink: 'I have passed it on',
  save: 'Save as a file',
})
