import { words } from '../words.ts'

export const explainWords = words('explain', {
  intro:
    'A dry run: all checks are made and a channel is chosen, but nothing is sent, held or counted in the limits of the key.',
  key: 'As which key',
  keyHint: 'A name, the last characters, or an id (key_…)',
  keyMissing: 'Choose a key from the list.',
  dialect: 'Dialect',
  body: 'Request (JSON)',
  bodyInvalid: 'This is not valid JSON: look at line {line}, column {column}.',
  bodyNoObject: 'The request must be a JSON object.',
  run: 'Explain',
  again: 'Explain again',
  noKeys: 'There are no keys yet. Create one first.',
})
