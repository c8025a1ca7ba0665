import type { trialWords } from '../en/trial.ts'
import type { Chinese } from '../words.ts'

export const trial: Chinese<typeof trialWords> = {
  works: '渠道可用：{model} 在 {time} 内应答。',
  failed: '渠道测试失败：{reason}',
  status: '状态 {status}',
  advice_answered: '渠道可用。',
  advice_caller_at_fault: '供应商拒绝了请求。请查看其应答和渠道的覆盖设置。',
  advice_credential_bad: '供应商拒绝该凭据，请更换。',
  advice_forbidden: '该凭据无权执行此操作。请检查其在供应商处的权限，或换一个模型。',
  advice_rate_limited: '供应商暂时不接受更多调用。请稍后再试。',
  advice_quota_spent: '该凭据的配额或余额已用尽。请向供应商付款或提高其预算。',
  advice_not_here: '供应商没有为该凭据提供此模型。请获取其模型列表，或换一个模型。',
  advice_broken: '没有得到可用的应答。请检查基础地址、代理和供应商的状态。',
  advice_too_slow: '没有及时应答。请再试一次，或延长渠道的超时设置。',
  sent: '发送的内容',
  received: '收到的内容',
  overrides: '被渠道更改',
}
