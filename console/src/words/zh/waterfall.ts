import type { waterfallWords } from '../en/waterfall.ts'
import type { Chinese } from '../words.ts'

export const waterfall: Chinese<typeof waterfallWords> = {
  label: '调用的各阶段（按时间顺序）',
  first: '{time} 后收到首个内容',
}
