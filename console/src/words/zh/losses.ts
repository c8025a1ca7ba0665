import type { lossesWords } from '../en/losses.ts'
import type { Chinese } from '../words.ts'

export const losses: Chinese<typeof lossesWords> = {
  title: '转换损失',
  intro: '调用方与供应商使用不同协议时会丢失的内容。每一格都用官方 SDK 测试。',
  caller: '调用方协议',
  provider: '供应商协议',
  nothing: '无损失',
  some: '{n} 项损失',
  cell: '{caller} 到 {provider}',
  choose: '选择一格以查看丢失的内容。',
  feature: '功能',
  lost: '丢失',
  yours: '您的调用方丢失的内容',
  yoursNote: '此时间段内最近 200 个有损失的调用。',
  yoursNone: '此时间段内没有调用丢失内容。',
  loss: '损失',
  calls: '调用',
}
