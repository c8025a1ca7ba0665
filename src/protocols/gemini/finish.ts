// Why the model stopped, both ways.

import type { Finish } from '../answer.ts'

const meanings: ReadonlyMap<unknown, Finish> = new Map<unknown, Finish>([
  ['STOP', 'stop'],
  ['MAX_TOKENS', 'length'],
  ['CONTINUATION', 'length'], // it would go on if it were asked again
  ...[
    ...['SAFETY', 'RECITATION', 'LANGUAGE', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII'],
    ...['IMAGE_SAFETY', 'IMAGE_PROHIBITED_CONTENT', 'IMAGE_RECITATION'],
  ].map(reason => [reason, 'filtered'] as const),
])

/** A call ends with the reason that the end of a text has. */
export function readFinish(reason: unknown, hasCalls: boolean): Finish {
  const finish = meanings.get(reason) ?? 'other'
  return hasCalls && finish === 'stop' ? 'calls' : finish
}

const reasons: Readonly<Record<Finish, string>> = {
  stop: 'STOP',
  stop_sequence: 'STOP',
  calls: 'STOP',
  length: 'MAX_TOKENS',
  context: 'MAX_TOKENS',
  filtered: 'SAFETY',
  paused: 'OTHER',
  other: 'OTHER',
}

export const writeFinish = (finish: Finish): string => reasons[finish]

export const BAD_CALL = 'MALFORMED_FUNCTION_CALL'
