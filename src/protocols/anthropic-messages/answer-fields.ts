// Lists, object by object, which fields of a message a translation carries to callers of other dialects, and records
// the others as losses.

import type { ChoiceContents } from '../neutral/finish-reasons.ts'
import type { Losses } from '../neutral/losses.ts'
import type { FieldTable } from '../request/fields.ts'
import { addLostFields, tableOf } from '../request/fields.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'

export const answerFields: FieldTable = {
  ...tableOf('read', 'id type role model content stop_reason stop_sequence stop_details usage'),
  ...tableOf('moot', 'diagnostics amazon-bedrock-invocationMetrics'),
  'amazon-bedrock-guardrailAction': 'read',
}

export const deltaFields: FieldTable = tableOf('read', 'stop_reason stop_sequence stop_details')

/** Details of a refusal. Other dialects have only its text. */
const stopDetailFields: FieldTable = { type: 'moot', explanation: 'read', category: 'lost' }

const blockFields: Readonly<Record<string, FieldTable>> = {
  text: tableOf('read', 'type text citations'),
  thinking: tableOf('read', 'type thinking signature'),
  redacted_thinking: tableOf('read', 'type data'),
  tool_use: tableOf('read', 'type id name input caller'),
}

/** Records the lost fields of a block. A block of another type is passed on as a native part and recorded as a whole. */
export function addLostBlockFields(block: Json, losses: Losses): void {
  const { type, caller } = block
  if (typeof type !== 'string' || !Object.hasOwn(blockFields, type)) return
  addLostFields(block, blockFields[type]!, { path: type, losses })
  // Code that the provider runs made this call, and expects the result; the model does not.
  if (typeof caller === 'object' && caller !== null && (caller as Json).type !== 'direct') {
    losses.add('answer.tool_use.caller')
  }
}

/** Blocks of the provider's own tools, and others that ask nothing of the caller. */
const OWN_BLOCKS = /^(?:server_tool_use|mcp_tool_use|compaction|container_upload|.*_result)$/

/** What is lost with a block that other dialects do not have: a tool call for the caller, or something unknown. */
export function lostIn({ type }: Json): ChoiceContents['lost'] {
  if (typeof type !== 'string') return 'unknown'
  if (OWN_BLOCKS.test(type) || Object.hasOwn(blockFields, type)) return type === 'tool_use' ? 'call' : undefined
  return type.endsWith('_use') ? 'call' : 'unknown'
}

/** Reads the provider's explanation of a refusal, and records the lost details. */
export function readExplanation(details: unknown, losses: Losses): string | undefined {
  if (!isObject(details)) return undefined
  addLostFields(details, stopDetailFields, { path: 'stop_details', losses })
  const { explanation } = details
  return typeof explanation === 'string' && explanation !== '' ? explanation : undefined
}

/** Bedrock's guardrails replace the answer and report that in a field of their own. */
export const readStopReason = (answer: Json): unknown =>
  answer['amazon-bedrock-guardrailAction'] === 'INTERVENED' ? 'guardrail_intervened' : answer.stop_reason
