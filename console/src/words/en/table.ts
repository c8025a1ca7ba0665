import { words } from '../words.ts'

export const tableWords = words('table', {
  nothingMatches: 'Nothing matches these filters.',
  columns: 'Columns',
  width: 'Width of {column}',
  widthHint: 'Drag or use the arrow keys. Double-click or Enter: automatic.',
  narrower: 'Narrower: {column}',
  wider: 'Wider: {column}',
  more: 'Show more',
  endedEarly: 'The search read very many rows and stopped. Show more to go on.',
  select: 'Select {name}',
  selectAll: 'Select all',
})
