// POST /v1/embeddings, /v1/moderations and /v1/rerank: text goes in, numbers come out.

import { tokenCount } from '../../base/money/usage.ts'
import type { Call } from '../neutral/call.ts'
import { writeError } from '../openai-chat/errors.ts'
import { answerReader, noFrames, readJsonCall, writeModel } from '../passthrough-call.ts'
import type { Protocol } from '../protocol.ts'
import { invalid, missing, optional } from '../request/checks.ts'
import { isObject } from '../request/json-object.ts'
import { readInputUsage } from '../usage/passthrough-usage.ts'
import { vectorCodec } from './vectors.ts'

/** Nothing is streamed, and nobody waits for words. */
const base = { lastEvent: '', quiet: true, writeCall: writeModel, readFrame: noFrames, writeError } as const

/** Vectors pass in the encoding that was asked for: as the bytes that they are. */
export const embeddings: Protocol = {
  ...base,
  name: 'openai-embeddings',
  vectors: vectorCodec,
  readCall: body => withInput(readJsonCall('openai-embeddings', body, ['input'])),
  readAnswer: answerReader(({ data, usage }) =>
    Array.isArray(data) ? { outputBytes: data.length, usage: readInputUsage(usage) } : undefined,
  ),
}

export const moderations: Protocol = {
  ...base,
  name: 'openai-moderations',
  readCall: body => withInput(readJsonCall('openai-moderations', body, ['input'])),
  readAnswer: answerReader(({ results, usage }) =>
    Array.isArray(results) ? { outputBytes: results.length, usage: readInputUsage(usage) } : undefined,
  ),
}

export const rerank: Protocol = {
  ...base,
  name: 'openai-rerank',
  readCall(body) {
    const call = readJsonCall('openai-rerank', body, ['query', 'documents'])
    if (call.json.query === undefined || call.json.query === null) throw missing('query')
    const documents = optional(call.json, 'documents', 'list')
    if (documents === undefined) throw missing('documents')
    // A hundred documents are a search; a long one counts as several.
    const pieces = documents.length + body.byteLength / PIECE_BYTES
    const units = { searches: Math.ceil(pieces / 100) }
    const unitsGuess = { searches: Math.ceil(Math.max(1, documents.length) / 100) }
    return { ...manyTexts(call, documents), units, unitsGuess }
  },
  readAnswer: answerReader(({ results, data, usage, meta }) => {
    const found = Array.isArray(results) ? results : data
    if (!Array.isArray(found)) return undefined
    const { billed_units: billed, tokens } = isObject(meta) ? meta : {}
    const searches = isObject(billed) ? billed.search_units : undefined
    const counted = typeof searches === 'number' ? tokenCount(Math.ceil(searches)) : undefined
    const units = counted === undefined ? {} : { searches: counted }
    return { outputBytes: found.length, usage: readInputUsage(usage ?? tokens, units) }
  }),
}

const PIECE_BYTES = 250

/** A text, a list of texts, tokens, a list of those, or parts. */
function withInput(call: Call): Call {
  const { input } = call.json
  if (input === undefined || input === null) throw missing('input')
  const isUsable = typeof input === 'string' || (Array.isArray(input) && input.length > 0)
  if (!isUsable) throw invalid('input', 'must be a text or a list')
  return manyTexts(call, Array.isArray(input) ? input : [])
}

/** A context is that of one text, and each is read in its own. */
function manyTexts(call: Call, inputs: readonly unknown[]): Call {
  const seen = inputs.filter(isSeen).length
  if (seen === 0) return { ...call, inputTokensMax: call.bodyBytes }
  return { ...call, textOnly: false, inputTokensMax: call.bodyBytes + seen * SEEN_TOKENS_MAX }
}

/** Of one picture, or of whatever else is not text. */
const SEEN_TOKENS_MAX = 16_384

/** Whether something else than text is to be read, which may lie elsewhere: of a part, of a document. */
function isSeen(input: unknown): boolean {
  if (!isObject(input)) return false
  const { text, type, content } = input
  if (Array.isArray(content)) return content.some(isSeen)
  return typeof text !== 'string' || (type ?? 'text') !== 'text'
}
