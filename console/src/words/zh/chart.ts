import type { chartWords } from '../en/chart.ts'
import type { Chinese } from '../words.ts'

export const chart: Chinese<typeof chartWords> = {
  asTable: '表格',
  asChart: '图表',
  zone: '时区 {zone}',
  time: '时间',
  soFar: '截至目前',
  openRecords: '打开此时段的调用记录',
}
