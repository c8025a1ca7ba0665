// Lists every dialect that the fake upstream speaks, and finds the dialect of a request.

import { anthropicWire } from './anthropic-messages/wire.ts'
import { arkResponsesWire, arkWire } from './ark/wire.ts'
import { pathOf, queryOf } from './body-fields.ts'
import type { Dialect } from './dialect.ts'
import { geminiWire } from './gemini/wire.ts'
import { chatWire } from './openai-chat/wire.ts'
import { responsesWire } from './openai-responses/wire.ts'
import type { ReceivedRequest } from './request.ts'

/** The five families. */
export const dialects: readonly Dialect[] = [chatWire, responsesWire, anthropicWire, geminiWire, arkWire]

const isArk = (path: string): boolean => /\/api\/v3(\/|$)/.test(path)

/** Decides by the path, or by headers and query if dialects share the path. The default is chat. */
export function findDialect(request: ReceivedRequest): Dialect {
  const path = pathOf(request)
  if (isArk(path)) return /\/responses(\/|$)/.test(path) ? arkResponsesWire : arkWire
  if (/\/chat\/completions$/.test(path)) return chatWire
  if (/:[A-Za-z]+$/.test(path)) return geminiWire
  if (/\/messages(\/count_tokens)?$/.test(path)) return anthropicWire
  if (/\/responses(\/|$)/.test(path)) return responsesWire
  if (request.headers.has('anthropic-version')) return anthropicWire
  const isGoogle = request.headers.has('x-goog-api-key') || queryOf(request).has('key')
  return isGoogle || /\/v1(beta|alpha)\/(?!openai\/)/.test(path) ? geminiWire : chatWire
}
