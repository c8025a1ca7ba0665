import type { statesWords } from '../en/states.ts'
import type { Chinese } from '../words.ts'

export const states: Chinese<typeof statesWords> = {
  loading: '正在加载',
  failed: '无法加载此内容',
  offline: '无法连接网关',
  forbidden: '您无权查看此内容',
  forbiddenNote: '需要其他角色。请联系本站的所有者或管理员，或账户的管理者。',
  notThere: '未找到',
  notThereNote: '它可能已被删除，或属于您不是成员的账户。',
  support: '获取帮助',
  requestId: '请求',
  tryAgain: '重试',
  tryAgainIn: '{n} 秒后重试',
  notFound: '没有此页面',
  notFoundText: '地址可能有误，或页面已移动。',
  toOverview: '前往概览',
  pageFailed: '此页面出错',
  reload: '重新加载',
}
