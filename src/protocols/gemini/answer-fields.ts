// Lists, object by object, which fields of an answer a translation carries to callers of other dialects, and records
// the others as losses.

import type { Losses } from '../neutral/losses.ts'
import type { FieldTable } from '../request/fields.ts'
import { fields, noteLost } from '../request/fields.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import { callTable, partTable } from './tables.ts'

const answerFields: FieldTable = {
  ...fields('read', 'candidates usageMetadata modelVersion responseId createTime promptFeedback error'),
  ...fields('moot', 'modelStatus sdkHttpResponse automaticFunctionCallingHistory'),
}

const feedbackFields: FieldTable = { ...fields('read', 'blockReason'), ...fields('moot', 'safetyRatings') }

const candidateFields: FieldTable = {
  ...fields('read', 'index content finishReason citationMetadata groundingMetadata urlContextMetadata logprobsResult'),
  ...fields('moot', 'safetyRatings avgLogprobs tokenCount continuationToken'),
}

const contentFields: FieldTable = fields('read', 'role parts')

const groundingFields: FieldTable = {
  ...fields('read', 'groundingChunks groundingSupports webSearchQueries imageSearchQueries retrievalQueries'),
  ...fields('moot', 'retrievalMetadata'),
}

/** Records the lost fields of a chunk itself; candidates and parts have functions of their own. */
export function noteAnswer(answer: Json, losses: Losses): void {
  noteLost(answer, answerFields, { path: '', losses })
  const { promptFeedback: feedback } = answer
  if (isObject(feedback)) noteLost(feedback, feedbackFields, { path: 'promptFeedback', losses })
}

export function noteCandidate(candidate: Json, losses: Losses): void {
  const { content, groundingMetadata: grounding } = candidate
  noteLost(candidate, candidateFields, { path: 'candidates', losses })
  if (isObject(content)) noteLost(content, contentFields, { path: 'content', losses })
  if (isObject(grounding)) noteLost(grounding, groundingFields, { path: 'groundingMetadata', losses })
}

/** Records the lost fields of a part. A part of an unknown kind is passed on as a native part and recorded as a whole. */
export function notePart(part: Json, losses: Losses): void {
  noteLost(part, partTable, { path: 'parts', losses })
  if (isObject(part.functionCall)) noteLost(part.functionCall, callTable, { path: 'functionCall', losses })
}
