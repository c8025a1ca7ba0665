// POST /v1beta/models/…:countTokens. A caller sends contents alone, or a whole request to be counted.

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

const READ_FIELDS = ['contents', 'generateContentRequest', 'model']

/** The call that is to be counted, in either form; its `json` is the request itself. Throws a Refusal. */
export function readCountCall(body: Buffer, asked: Asked): Call {
  const { model } = requirePath(asked, ['countTokens'])
  const { json, fields } = readJsonObject(body, READ_FIELDS)
  const { generateContentRequest: span } = spansOf(fields, READ_FIELDS)
  const given = optional(camelFields(json), 'generateContentRequest', 'object')
  const inner = given === undefined || span === undefined ? body : bodyInside(body, span, given)
  return { ...readBody(inner), model, stream: false }
}

/** A request for an upstream of this dialect, whichever form the caller chose. */
export function writeCountCall(call: Call, target: CallTarget): string {
  return countBody(withoutPacked(camelFields(call.json), target), target.model)
}

export function writeCountConversation(asked: Conversation, target: ConversationTarget): string {
  return countBody(requestOf(asked, target), target.model)
}

/** With all that it holds: instructions and tools are tokens, too. */
function countBody(request: Json, model: string): string {
  return JSON.stringify({ generateContentRequest: { ...request, model: `models/${model}` } })
}

export function writeCount({ tokens, cached = 0 }: { readonly tokens: number; readonly cached?: number }): string {
  const details = [{ modality: 'TEXT', tokenCount: tokens }]
  const kept = cached > 0 ? { cachedContentTokenCount: cached } : {}
  return JSON.stringify({ totalTokens: tokens, ...kept, promptTokensDetails: details })
}

/** Undefined for what is no count. */
export function readCount(body: Buffer): number | undefined {
  try {
    const answer = unwrapped(parseAnswer(body.toString('utf8')))
    return isObject(answer) ? tokenCount(answer.totalTokens) : undefined
  } catch {
    return undefined
  }
}
