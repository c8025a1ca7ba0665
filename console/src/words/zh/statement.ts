import type { statementWords } from '../en/statement.ts'
import type { Chinese } from '../words.ts'

export const statement: Chinese<typeof statementWords> = {
  title: '账单明细',
  made: '时间',
  kind: '类型',
  kind_charge: '调用',
  kind_shortfall: '未覆盖',
  kind_top_up: '充值',
  kind_gift: '赠送',
  kind_adjustment: '更正',
  kind_refund: '退款',
  kind_redemption: '兑换码',
  kind_opening: '期初余额',
  ref: '关联',
  reference: '备注',
  with: '对方账户',
  author: '操作人',
  amount: '金额',
  balance: '之后余额',
  emptyTitle: '还没有资金变动',
  emptyText: '每次调用、充值、赠送和退款都会在这里成为一行，并显示之后的余额。',
  agrees: '{n} 行，合计 {sum}：所有余额一致（由本浏览器计算）。',
  agreesPart: '{n} 行，合计 {sum}：这些行的余额一致（由本浏览器计算）。',
  sumOnly: '{n} 行，合计 {sum}。',
  disagrees: '{ref} 处的余额不等于之前余额加金额。请告知网关运营者。',
}
