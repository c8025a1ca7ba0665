// POST /v1beta/models/…:countTokens. The body holds contents only, or a whole request under `generateContentRequest`.

import { tokenCount } from '../../base/money/usage.ts'
import { writeJson } from '../../base/text/long-integers.ts'
import type { Call, CallTarget } from '../neutral/call.ts'
import type { Conversation } from '../neutral/conversation.ts'
import type { ConversationTarget, RequestHead } from '../protocol.ts'
import { readOptional } from '../request/checks.ts'
import { extractBody, isObject, parseUpstreamJson, readJsonObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { findFieldSpans, toCamelCaseFields } from './field-names.ts'
import { removePackedState } from './packed-state.ts'
import { readBody, requirePath } from './request.ts'
import { unwrapAnswer } from './response.ts'
import { buildRequest } from './write-conversation.ts'

const UNIQUE_FIELDS = ['contents', 'generateContentRequest', 'model']

/** Reads the request whose tokens are to be counted, in either form. Throws a Refusal. */
export function readCountCall(body: Buffer, request: RequestHead): Call {
  const { model } = requirePath(request, ['countTokens'])
  const { json, fields } = readJsonObject(body, UNIQUE_FIELDS)
  const { generateContentRequest: span } = findFieldSpans(fields, UNIQUE_FIELDS)
  const given = readOptional(toCamelCaseFields(json), 'generateContentRequest', 'object')
  const inner = given === undefined || span === undefined ? body : extractBody(body, span, given)
  return { ...readBody(inner), model, stream: false }
}

/** Writes a count request for an upstream of this dialect. */
export function writeCountCall(call: Call, target: CallTarget): string {
  const json = toCamelCaseFields(call.json)
  return buildCountBody({ ...json, contents: removePackedState(json.contents, target) ?? json.contents }, target.model)
}

export function writeCountConversation(conversation: Conversation, target: ConversationTarget): string {
  return buildCountBody(buildRequest(conversation, target), target.model)
}

/** Sends the whole request, because instructions and tools are tokens, too. */
function buildCountBody(request: Json, model: string): string {
  return writeJson({ generateContentRequest: { ...request, model: `models/${model}` } })
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
  const answer = unwrapAnswer(parseUpstreamJson(body))
  return isObject(answer) ? tokenCount(answer.totalTokens) : undefined
}
