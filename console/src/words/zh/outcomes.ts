import type { outcomeWords } from '../en/outcomes.ts'
import type { Chinese } from '../words.ts'

export const outcomes: Chinese<typeof outcomeWords> = {
  completed: '完成',
  client_left: '调用方断开连接',
  refused: '被拒绝',
  upstream_failed: '上游失败',
  over_bound: '过大或停顿过久',
  too_long: '超时',
  out_of_funds: '余额用尽',
  drained: '网关停止',
  revoked: '密钥被吊销',
  gateway_fault: '网关故障',
  replayed: '重放',
  task_succeeded: '任务成功',
  task_ended: '任务结束',
  task_lost: '任务丢失',
  gateway_crash: '网关崩溃',
}
