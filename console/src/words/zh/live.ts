import type { liveWords } from '../en/live.ts'
import type { Chinese } from '../words.ts'

export const live: Chinese<typeof liveWords> = {
  title: '实时',
  intro: '所有网关中刚结束的调用，遵循筛选条件。',
  connecting: '正在连接',
  live: '实时',
  away: '连接中断，正在重试',
  refused: '已停止',
  paused: '已暂停',
  pause: '暂停',
  resume: '继续',
  river: '进行中的调用',
  riverNote: '为本页提供服务的网关进程中的调用，按渠道显示。',
  nothing: '没有进行中的调用。',
  active: '{n} 个调用',
  blocked: '已阻断：{state}',
  recoversIn: '{time} 后重试',
  tail: '已结束的调用',
  kept: '打开本页以来 {n} 个调用',
  missed: '同时结束的调用过多，这里缺少一些。调用记录中包含全部。',
  waiting: '等待第一个调用结束。发送一个：',
  model: '模型',
  outcome: '结果',
  key: '密钥',
  channel: '渠道',
}
