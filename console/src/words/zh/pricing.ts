import type { pricingWords } from '../en/pricing.ts'
import type { Chinese } from '../words.ts'

export const pricing: Chinese<typeof pricingWords> = {
  title: '模型与价格',
  unit: '每百万 token 的美元价格。',
  tier: '等级',
  standard: '标准价格',
  search: '模型',
  model: '模型',
  input: '输入',
  output: '输出',
  cacheRead: '缓存输入',
  context: '上下文',
  free: '免费',
  none: '没有符合条件的模型。',
  shown: '{n} 个模型',
  signIn: '登录',
}
