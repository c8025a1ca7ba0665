import { words } from '../words.ts'

export const chartWords = words('chart', {
  asTable: 'As a table',
  asChart: 'As a chart',
  zone: 'times in {zone}',
  time: 'Time',
  soFar: 'so far',
  openRecords: 'Open the records of this time',
})
