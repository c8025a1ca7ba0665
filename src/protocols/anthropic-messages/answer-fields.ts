// Lists, object by object, which fields of a message a translation carries to callers of other dialects, and records
// the others as losses.

import type { Losses } from '../neutral/losses.ts'
import type { FieldTable } from '../request/fields.ts'
import { fields, noteLost } from '../request/fields.ts'
import type { Json } from '../request/json-type.ts'

export const answerFields: FieldTable = {
  ...fields('read', 'id type role model content stop_reason stop_sequence stop_details usage'),
  ...fields('moot', 'diagnostics amazon-bedrock-invocationMetrics'),
  'amazon-bedrock-guardrailAction': 'read',
}

export const deltaFields: FieldTable = fields('read', 'stop_reason stop_sequence stop_details')

const blockFields: Readonly<Record<string, FieldTable>> = {
  text: fields('read', 'type text citations'),
  thinking: fields('read', 'type thinking signature'),
  redacted_thinking: fields('read', 'type data'),
  tool_use: fields('read', 'type id name input caller'),
}

/** Records the lost fields of a block. A block of another type is passed on as a native part and recorded as a whole. */
export function noteBlock(block: Json, losses: Losses): void {
  const { type, caller } = block
  if (typeof type !== 'string' || !Object.hasOwn(blockFields, type)) return
  noteLost(block, blockFields[type]!, { path: type, losses })
  // Code that the provider runs made this call, and expects the result; the model does not.
  if (typeof caller === 'object' && caller !== null && (caller as Json).type !== 'direct') {
    losses.add('answer.tool_use.caller')
  }
}

/** Bedrock's guardrails replace the answer and report that in a field of their own. */
export const stopReasonOf = (answer: Json): unknown =>
  answer['amazon-bedrock-guardrailAction'] === 'INTERVENED' ? 'guardrail_intervened' : answer.stop_reason
