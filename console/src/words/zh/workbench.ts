import type { workbenchWords } from '../en/workbench.ts'
import type { Chinese } from '../words.ts'

export const workbench: Chinese<typeof workbenchWords> = {
  title: '价格试算',
  intro: '若使用其他价格或等级系数，过去的调用会花费多少？不会更改任何设置。',
  model: '模型',
  modelHint: '留空则对所有模型试算系数。',
  tier: '等级',
  anyTier: '所有等级',
  multiplier: '系数',
  multiplierHint: '1 表示原价，1.2 表示增加五分之一。',
  price: '试用价格',
  run: '计算',
  was: '实际',
  wouldBe: '试算',
  difference: '差额',
  calls: '调用',
  byModel: '按模型',
  leftOut: '未计入：{n} 次调用，{reason}',
  incomplete: '只能计算 {time} 之后的调用。',
  nothing: '此时间段内没有符合条件的调用。',
  empty: '选择要试算的内容，结果显示在这里。',
  chart: '每天的费用：实际与试算',
}
