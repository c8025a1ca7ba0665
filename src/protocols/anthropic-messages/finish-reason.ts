// The stop reasons that callers of this dialect get.

import type { Finish } from '../neutral/answer.ts'
import { writtenReasons } from '../neutral/finish-reasons.ts'

const reasons = writtenReasons['anthropic-messages']

/** The reason must agree with the content: `tool_use` exactly if there are tool calls, `refusal` if there is a refusal. */
export function writeStopReason(finish: Finish, { calls, refused }: { calls: boolean; refused: boolean }): string {
  if (calls && finish === 'stop') return reasons.calls.reason
  if (refused && finish === 'stop') return reasons.filtered.reason
  return !calls && finish === 'calls' ? reasons.stop.reason : reasons[finish].reason
}
