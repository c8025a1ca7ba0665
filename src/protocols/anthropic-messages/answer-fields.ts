// Which fields of a message reach a caller of another dialect, object by object.

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

const blocks: Readonly<Record<string, FieldTable>> = {
  text: fields('read', 'type text citations'),
  thinking: fields('read', 'type thinking signature'),
  redacted_thinking: fields('read', 'type data'),
  tool_use: fields('read', 'type id name input caller'),
}

/** A block of another type is told as a whole, and lost as such. */
export function noteBlock(block: Json, losses: Losses): void {
  const { type, caller } = block
  if (typeof type !== 'string' || !Object.hasOwn(blocks, type)) return
  noteLost(block, blocks[type]!, { path: type, losses })
  // Called by code that the provider runs: its result goes back to that code, and not to the model.
  if (typeof caller === 'object' && caller !== null && (caller as Json).type !== 'direct') {
    losses.add('answer.tool_use.caller')
  }
}

/** Guardrails of a cloud replace the answer, and say so in a field of their own. */
export const stopReasonOf = (answer: Json): unknown =>
  answer['amazon-bedrock-guardrailAction'] === 'INTERVENED' ? 'guardrail_intervened' : answer.stop_reason
