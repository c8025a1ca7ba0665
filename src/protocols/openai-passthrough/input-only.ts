// POST /v1/embeddings, /v1/moderations and /v1/rerank: calls that read text and return numbers.

import { tokenCount } from '../../base/money/usage.ts'
import type { Call } from '../neutral/call.ts'
import { writeError } from '../openai-chat/errors.ts'
import { buildAnswerReader, readJsonCall, rejectFrame, writeModel } from '../passthrough-call.ts'
import type { Protocol } from '../protocol.ts'
import { invalid, missing, readOptional } from '../request/checks.ts'
import { isObject } from '../request/json-body.ts'
import { readInputUsage } from '../usage/passthrough-usage.ts'
import { openaiEmbeddingsCodec } from './embeddings-codec.ts'

/** These calls are never streamed and generate no text. */
const common = { lastEvent: '', hidesStages: true, writeCall: writeModel, readFrame: rejectFrame, writeError } as const

/** Vectors are passed on unchanged, in the encoding that the caller asked for. */
export const embeddings: Protocol = {
  ...common,
  name: 'openai-embeddings',
  vectors: openaiEmbeddingsCodec,
  readCall: body => checkInput(readJsonCall('openai-embeddings', body, ['input'])),
  readAnswer: buildAnswerReader(({ data, usage }) =>
    Array.isArray(data) ? { outputBytes: data.length, usage: readInputUsage(usage) } : undefined,
  ),
}

export const moderations: Protocol = {
  ...common,
  name: 'openai-moderations',
  readCall: body => checkInput(readJsonCall('openai-moderations', body, ['input'])),
  readAnswer: buildAnswerReader(({ results, usage }) =>
    Array.isArray(results) ? { outputBytes: results.length, usage: readInputUsage(usage) } : undefined,
  ),
}

export const rerank: Protocol = {
  ...common,
  name: 'openai-rerank',
  readCall(body) {
    const call = readJsonCall('openai-rerank', body, ['query', 'documents'])
    if (call.json.query === undefined || call.json.query === null) throw missing('query')
    const documents = readOptional(call.json, 'documents', 'list')
    if (documents === undefined) throw missing('documents')
    // One search covers a hundred documents, and a long document counts as several.
    const chunks = documents.length + body.byteLength / CHUNK_BYTES
    const units = { searches: Math.ceil(chunks / 100) }
    const unitsGuess = { searches: Math.ceil(Math.max(1, documents.length) / 100) }
    const { inputTokensMax, ...bounded } = addInputBound(call, documents)
    return { ...bounded, inputTokensMax: inputTokensMax + queryTokensMax(call) * documents.length, units, unitsGuess }
  },
  readAnswer: buildAnswerReader(({ results, data, usage, meta }) => {
    const found = Array.isArray(results) ? results : data
    if (!Array.isArray(found)) return undefined
    const { billed_units: billed, tokens } = isObject(meta) ? meta : {}
    const searches = isObject(billed) ? billed.search_units : undefined
    const searchCount = typeof searches === 'number' ? tokenCount(Math.ceil(searches)) : undefined
    const units = searchCount === undefined ? {} : { searches: searchCount }
    return { outputBytes: found.length, usage: readInputUsage(usage ?? tokens, units) }
  }),
}

const CHUNK_BYTES = 250

/** A model that reads each document together with the query is billed for the query as often as there are documents. */
function queryTokensMax({ json: { query } }: Call): number {
  return typeof query === 'string' ? Buffer.byteLength(query) : MEDIA_TOKENS_MAX
}

/** The input is a text, a list of texts, tokens, a list of token lists, or parts. */
function checkInput(call: Call): Call {
  const { input } = call.json
  if (input === undefined || input === null) throw missing('input')
  const isUsable = typeof input === 'string' || (Array.isArray(input) && input.length > 0)
  if (!isUsable) throw invalid('input', 'must be a text or a list')
  return addInputBound(call, Array.isArray(input) ? input : [])
}

/** The model's context window bounds each text on its own, so the whole body is the bound on the input. */
function addInputBound(call: Call, inputs: readonly unknown[]): Call & { readonly inputTokensMax: number } {
  const mediaCount = inputs.filter(isMedia).length
  if (mediaCount === 0) return { ...call, inputTokensMax: call.bodyBytes }
  return { ...call, textOnly: false, inputTokensMax: call.bodyBytes + mediaCount * MEDIA_TOKENS_MAX }
}

/** Tokens of one image, or of any other input that is not text. */
const MEDIA_TOKENS_MAX = 16_384

/** Whether a part or a document has input other than text, for example an image at a URL. */
function isMedia(input: unknown): boolean {
  if (!isObject(input)) return false
  const { text, type, content } = input
  if (Array.isArray(content)) return content.some(isMedia)
  return typeof text !== 'string' || (type ?? 'text') !== 'text'
}
