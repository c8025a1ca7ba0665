import type { downloadWords } from '../en/download.ts'
import type { Chinese } from '../words.ts'

export const download: Chinese<typeof downloadWords> = {
  export: '导出',
  csv: 'CSV（电子表格）',
  ndjson: 'NDJSON（程序）',
}
