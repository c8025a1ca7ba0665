// Why a message ended, for a caller.

import type { Finish } from '../neutral/answer.ts'
import { writtenReasons } from '../neutral/finish-reasons.ts'

const written = writtenReasons['anthropic-messages']

/** An answer that calls tools waits for them; one that calls none does not. */
export function writeStopReason(finish: Finish, { calls, refused }: { calls: boolean; refused: boolean }): string {
  if (calls && finish === 'stop') return written.calls.says
  if (refused && finish === 'stop') return written.filtered.says
  return !calls && finish === 'calls' ? written.stop.says : written[finish].says
}
