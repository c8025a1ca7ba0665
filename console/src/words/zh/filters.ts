import type { filtersWords } from '../en/filters.ts'
import type { Chinese } from '../words.ts'

export const filters: Chinese<typeof filtersWords> = {
  filters: '筛选',
  filtersUsed: '筛选（{n}）',
  clear: '清除筛选',
  all: '全部',
  range: '时间（{zone}）',
  range_all: '全部时间',
  range_1h: '最近 1 小时',
  range_24h: '最近 24 小时',
  range_7d: '最近 7 天',
  range_30d: '最近 30 天',
  range_90d: '最近 90 天',
  ownRange: '自定义时间段',
  from: '从',
  before: '至',
}
