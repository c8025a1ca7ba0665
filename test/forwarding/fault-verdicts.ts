// What a caller gets for each fault of its upstream, when there is no other channel to try.

import type { Fault } from '../../src/fake-upstream/faults.ts'

/**
 * - `fine`: a whole good answer, and it is charged
 * - `broken`: 502, before any content
 * - `cut off`: an error event after content; 502 if the end came before we had sent any
 * - `slow`: 504
 * - `slow midway`: an error event that says so
 * - `too much`: 502, or 504 if the deadline comes before the bound
 * - `limited`: 503 with Retry-After
 * - `overloaded`: the same, because the upstream is
 * - `refused`: the upstream's own 4xx and its words
 * - `any`: a good answer or an error, both well formed
 */
export type Verdict =
  | 'fine'
  | 'broken'
  | 'cut off'
  | 'slow'
  | 'slow midway'
  | 'too much'
  | 'limited'
  | 'overloaded'
  | 'refused'
  | 'any'

type Row = Verdict | readonly [plain: Verdict, stream: Verdict]

/** By id, or by id and name where one of them differs. */
const verdicts: Readonly<Record<string, Row>> = {
  'F7': 'broken',
  'F8': 'broken',
  'F8 RST after half an answer': ['broken', 'cut off'],
  'F9': 'slow',
  'F10': 'broken',
  'F10 FIN after half an answer': ['broken', 'cut off'],
  'F11 headers of a whole answer, then silence': 'slow',
  'F11 headers of a stream, then silence': 'slow',
  'F11 half an answer, then silence': ['slow', 'slow midway'],
  'F12 first byte at half the deadline': 'fine',
  'F12 first byte at one and a half deadlines': 'slow',
  'F13': 'slow',
  'F14': 'slow midway',
  'F15 a million chunks of one byte': 'cut off',
  'F15 a million events of one letter': 'fine',
  'F16': 'broken',
  'F16 Content-Length too short': ['broken', 'fine'],
  'F16 Content-Length too long, then FIN': ['broken', 'any'],
  'F16 Content-Length too long, then silence': ['slow', 'fine'],
  'F16 Content-Length beside chunks': 'any',
  'F17': ['broken', 'cut off'],
  'F18': ['too much', 'broken'],
  'F18 a huge stream': 'cut off',
  'F19': 'any',
  'F20': 'broken',
  'F21': 'broken',
  'F22': 'fine',
  'F22 101 instead of an answer': 'broken',
  'F22 204 instead of an answer': 'broken',
  'F23': ['broken', 'cut off'],
  'F24': 'broken',
  'F25': 'broken',
  'F25 an answer without text': 'fine',
  'F26': 'broken',
  'F27': 'fine',
  'F28': 'fine',
  'F28 events with empty data': 'any',
  'F29': 'cut off',
  'F30': 'cut off',
  'F30 finished, but without terminal event': 'fine',
  'F31': 'cut off',
  'F32': 'fine',
  'F33': 'fine',
  'F34': 'broken',
  'F34 529': 'overloaded',
  'F34 429 with seconds': 'limited',
  'F34 429 with a date': 'limited',
  'F34 429 without Retry-After': 'limited',
  'F34 429 until long after us': 'limited',
  'F34 429 with negative seconds': 'limited',
  'F34 429 with a date long past': 'limited',
  'F34 429 with nonsense': 'limited',
  'F35': 'broken',
  'F35 404': 'refused',
  'F35 429 because we have not paid': 'limited',
  "F35 400 that is the caller's": 'refused',
  'F35 400 that is ours': 'refused',
  'F36': 'broken',
  'F36 credentials in a 400': 'refused',
  'F36 credentials in a header': 'refused',
  'F36 credentials in an error event': 'cut off',
}

/** Undefined for a fault that nobody has judged yet. */
export function verdictOn(fault: Fault, stream: boolean): Verdict | undefined {
  const row = verdicts[`${fault.id} ${fault.name}`] ?? verdicts[fault.id]
  return typeof row === 'string' ? row : row?.[stream ? 1 : 0]
}

/** Rows that no fault has; a renamed fault must not lose its verdict silently. */
export function unusedVerdicts(faults: readonly Fault[]): readonly string[] {
  const names = new Set(faults.flatMap(({ id, name }) => [id, `${id} ${name}`]))
  return Object.keys(verdicts).filter(row => !names.has(row))
}
