import { words } from '../words.ts'

export const downloadWords = words('download', {
  export: 'Export',
  csv: 'As CSV, for spreadsheets',
  ndjson: 'As NDJSON, for programs',
})
