// Why a message ended, both ways.

import type { Finish } from '../answer.ts'

const read: Readonly<Record<string, Finish>> = {
  end_turn: 'stop',
  stop_sequence: 'stop_sequence',
  max_tokens: 'length',
  model_context_window_exceeded: 'context',
  tool_use: 'calls',
  refusal: 'filtered',
  pause_turn: 'paused',
  /** It summed up what was said, and waits to be called with that. */
  compaction: 'paused',
}

const written: Readonly<Record<Finish, string>> = {
  stop: 'end_turn',
  stop_sequence: 'stop_sequence',
  length: 'max_tokens',
  context: 'model_context_window_exceeded',
  calls: 'tool_use',
  filtered: 'refusal',
  paused: 'pause_turn',
  other: 'end_turn',
}

/** An answer that calls tools waits for them, whatever it says; one that calls none does not. */
export function readFinish(reason: unknown, calls: boolean): Finish {
  const finish = typeof reason === 'string' && Object.hasOwn(read, reason) ? read[reason]! : 'other'
  if (calls && (finish === 'stop' || finish === 'other')) return 'calls'
  return !calls && finish === 'calls' ? 'stop' : finish
}

export function writeStopReason(finish: Finish, { calls, refused }: { calls: boolean; refused: boolean }): string {
  if (calls && (finish === 'stop' || finish === 'other')) return written.calls
  if (refused && (finish === 'stop' || finish === 'other')) return written.filtered
  return !calls && finish === 'calls' ? written.stop : written[finish]
}
