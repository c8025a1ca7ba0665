import type { tableWords } from '../en/table.ts'
import type { Chinese } from '../words.ts'

export const table: Chinese<typeof tableWords> = {
  nothingMatches: '没有符合筛选条件的内容。',
  columns: '列',
  width: '{column}的宽度',
  widthHint: '拖动或用左右方向键调整，双击或按 Enter 恢复自动宽度。',
  narrower: '缩窄：{column}',
  wider: '加宽：{column}',
  more: '显示更多',
  endedEarly: '搜索已读取大量内容后停止。点击“显示更多”继续。',
  select: '选择 {name}',
  selectAll: '全选',
}
