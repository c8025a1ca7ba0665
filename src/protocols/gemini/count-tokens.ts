// POST /v1beta/models/…:countTokens. The body holds contents only, or a whole request under `generateContentRequest`.

import { tokenCount } from '../../base/money/usage.ts'
import type { Call, CallTarget } from '../neutral/call.ts'
import type { Conversation } from '../neutral/conversation.ts'
import type { Asked, ConversationTarget } from '../protocol.ts'
import { optional } from '../request/checks.ts'
import { bodyInside, isObject, parseAnswer, readJsonObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import { withoutPacked } from './packed.ts'
import { readBody, requirePath } from './request.ts'
import { unwrapped } from './response.ts'
import { camelFields, spansOf } from './spelling.ts'
import { requestOf } from './write-request.ts'

const UNIQUE_FIELDS = ['contents', 'generateContentRequest', 'model']

/** Reads the request whose tokens are to be counted, in either form. Throws a Refusal. */
export function readCountCall(body: Buffer, request: Asked): Call {
  const { model } = requirePath(request, ['countTokens'])
  const { json, fields } = readJsonObject(body, UNIQUE_FIELDS)
  const { generateContentRequest: span } = spansOf(fields, UNIQUE_FIELDS)
  const given = optional(camelFields(json), 'generateContentRequest', 'object')
  const inner = given === undefined || span === undefined ? body : bodyInside(body, span, given)
  return { ...readBody(inner), model, stream: false }
}

/** Writes a count request for an upstream of this dialect. */
export function writeCountCall(call: Call, target: CallTarget): string {
  return buildCountBody(withoutPacked(camelFields(call.json), target), target.model)
}

export function writeCountConversation(conversation: Conversation, target: ConversationTarget): string {
  return buildCountBody(requestOf(conversation, target), target.model)
}

/** Sends the whole request, because instructions and tools are tokens, too. */
function buildCountBody(request: Json, model: string): string {
  return JSON.stringify({ generateContentRequest: { ...request, model: `models/${model}` } })
}

export function writeCount({ tokens, cached = 0 }: { readonly tokens: number; readonly cached?: number }): string {
  const details = [{ modality: 'TEXT', tokenCount: tokens }]
  return JSON.stringify({
    totalTokens: tokens,
    ...(cached > 0 && { cachedContentTokenCount: cached }),
    promptTokensDetails: details,
  })
}

/** Undefined for a body that holds no count. */
export function readCount(body: Buffer): number | undefined {
  try {
    const answer = unwrapped(parseAnswer(body.toString('utf8')))
    return isObject(answer) ? tokenCount(answer.totalTokens) : undefined
  } catch {
    return undefined
  }
}
