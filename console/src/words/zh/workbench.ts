import type { workbenchWords } from '../en/workbench.ts'
import type { Chinese } from '../words.ts'

export const workbench: Chinese<typeof workbenchWords> = {
  title: '价格回测',
  intro: '回测计算过去的调用在其他价格或等级价格倍率下会花费多少。不会更改任何设置。',
  model: '模型',
  modelHint: '留空则对所有模型回测价格倍率。',
  tier: '等级',
  anyTier: '所有等级',
  multiplier: '价格倍率',
  multiplierHint: '1 表示原价，1.2 表示增加五分之一。',
  price: '回测价格',
  run: '运行回测',
  was: '实际',
  wouldBe: '回测',
  difference: '差额',
  calls: '调用',
  byModel: '按模型',
  leftOut: '未计入：{n} 次调用，{reason}',
  incomplete: '只能计算 {time} 之后的调用。',
  nothing: '此时间段内没有符合条件的调用。',
  empty: '选择要回测的内容，结果显示在这里。',
  chart: '每天的费用：实际与回测',
}
