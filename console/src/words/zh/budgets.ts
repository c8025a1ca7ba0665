import type { budgetsWords } from '../en/budgets.ts'
import type { Chinese } from '../words.ts'

export const budgets: Chinese<typeof budgetsWords> = {
  noneOfAccount: '没有预算。该账户的密钥可以花费全部可用金额。',
  noneOfKey: '没有预算。该密钥可以花费账户的全部可用金额。',
  span: '周期',
  span_day: '每天（UTC）',
  span_month: '每月（UTC）',
  span_total: '总计',
  spanFixed: '如需其他周期，请另加预算。',
  cap: '上限',
  capHint: '美元。用尽后，进行中的回答会提前结束，新的调用会被拒绝。',
  ofKey: '仅限制此密钥。成员可以创建其他密钥；账户的预算限制该账户的所有密钥。',
  ofAccount: '限制该账户的所有密钥的总花费。',
  add: '添加预算',
  change: '更改预算',
  remove: '移除预算',
  removeTitle: '移除预算“{span}”？',
  removeText: '此后花费仅受余额和其他预算限制。',
  save: '保存预算',
  saved: '预算已保存',
  leftOf: '剩余 {left}，上限 {cap}',
  spent: '已花费 {spent}',
  spentHeld: '已花费 {spent}，进行中的调用预扣 {held}',
  resets: '{time} 重新开始',
}
