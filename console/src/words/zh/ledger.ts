import type { ledgerWords } from '../en/ledger.ts'
import type { Chinese } from '../words.ts'

export const ledger: Chinese<typeof ledgerWords> = {
  title: '账本',
  intro: '每笔转账把金额从一个账户转到另一个账户。所有账户相加必须恰好为零。',
  auditor: '账本核对',
  auditorNote: '网关会定期自行核对账本。',
  consistent: '账本一致。',
  inconsistent: '账本不一致。',
  notYet: '尚未核对。',
  audited: '上次核对：{time}',
  trialBalance: '试算平衡表',
  trialNote: '本浏览器以纳美元为单位自行相加。选择网关自有账户可查看其明细。',
  account: '账户',
  count: '账户数',
  balance: '余额',
  prepaid: '预付费账户',
  postpaid: '后付费账户',
  sum: '合计',
  zero: '合计为零，共 {n} 笔转账。',
  notZero: '合计为 {sum}，但必须为零。请在网关上运行 “weir audit”。',
  statementOf: '{name} 的明细',
}
