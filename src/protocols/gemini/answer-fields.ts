// Lists, object by object, which fields of an answer a translation carries to callers of other dialects, and records
// the others as losses.

import type { Losses } from '../neutral/losses.ts'
import type { FieldTable } from '../request/fields.ts'
import { addLostFields, isEmpty, tableOf } from '../request/fields.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { callFields, partFields } from './fields.ts'

const answerFields: FieldTable = {
  ...tableOf('read', 'candidates usageMetadata modelVersion responseId createTime promptFeedback error'),
  ...tableOf('moot', 'modelStatus sdkHttpResponse automaticFunctionCallingHistory'),
}

const feedbackFields: FieldTable = { ...tableOf('read', 'blockReason'), ...tableOf('moot', 'safetyRatings') }

const candidateFields: FieldTable = {
  ...tableOf('read', 'index content finishReason citationMetadata groundingMetadata urlContextMetadata logprobsResult'),
  ...tableOf('moot', 'safetyRatings avgLogprobs tokenCount continuationToken'),
}

const contentFields: FieldTable = tableOf('read', 'role parts')

const groundingFields: FieldTable = {
  ...tableOf('read', 'groundingChunks groundingSupports webSearchQueries imageSearchQueries retrievalQueries'),
  ...tableOf('moot', 'retrievalMetadata'),
}

/** Records the lost fields of a chunk itself; candidates and parts have functions of their own. */
export function addLostAnswerFields(answer: Json, losses: Losses): void {
  addLostFields(answer, answerFields, { path: '', losses })
  const { promptFeedback: feedback } = answer
  if (!isObject(feedback)) return
  addLostFields(feedback, feedbackFields, { path: 'promptFeedback', losses })
  if (hasBlocked(feedback)) losses.add('answer.promptFeedback.safetyRatings')
}

export function addLostCandidateFields(candidate: Json, losses: Losses): void {
  const { content, groundingMetadata: grounding } = candidate
  addLostFields(candidate, candidateFields, { path: 'candidates', losses })
  if (hasBlocked(candidate)) losses.add('answer.candidates.safetyRatings')
  if (isObject(content)) addLostFields(content, contentFields, { path: 'content', losses })
  else if (!isEmpty(content)) losses.add('answer.candidates.content')
  if (isObject(grounding)) addLostFields(grounding, groundingFields, { path: 'groundingMetadata', losses })
}

/** Whether a rating says what was blocked. Only then the ratings are a loss, because most answers have some. */
const hasBlocked = ({ safetyRatings: ratings }: Json): boolean =>
  Array.isArray(ratings) && ratings.some(rating => isObject(rating) && rating.blocked === true)

/** The pieces of a call are joined. */
const answerCallFields: FieldTable = { ...callFields, partialArgs: 'read' }

/** Records the lost fields of a part. A part of an unknown kind is passed on as a native part and recorded as a whole. */
export function addLostPartFields(part: Json, losses: Losses): void {
  addLostFields(part, partFields, { path: 'parts', losses })
  if (isObject(part.functionCall)) addLostFields(part.functionCall, answerCallFields, { path: 'functionCall', losses })
}
