// Which fields of an answer reach a caller of another dialect, object by object.

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

/** What a caller loses of a chunk, but for its parts. */
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

/** A part that is unknown as a whole is told as one, and lost as such. */
export function notePart(part: Json, losses: Losses): void {
  noteLost(part, partTable, { path: 'parts', losses })
  if (isObject(part.functionCall)) noteLost(part.functionCall, callTable, { path: 'functionCall', losses })
}
