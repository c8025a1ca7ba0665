// POST /v1beta/models/…:embedContent and :batchEmbedContents. Google's own client sends a batch even for one text.

import type { UsageReport } from '../../base/money/usage.ts'
import { tokenCount } from '../../base/money/usage.ts'
import type { Call, CallTarget } from '../neutral/call.ts'
import type { EmbeddingsCodec, EmbeddingsRequest, EmbeddingsResult } from '../neutral/embeddings.ts'
import { missingVectors, requireVector } from '../neutral/embeddings.ts'
import { buildAnswerReader, buildPassthroughCall, parseAnswerObject, rejectFrame } from '../passthrough-call.ts'
import type { Protocol, RequestHead } from '../protocol.ts'
import { invalid, missing, readOptional } from '../request/checks.ts'
import { isObject, readJsonObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { readInputUsage } from '../usage/passthrough-usage.ts'
import { readCountOrZero } from '../usage/token-totals.ts'
import { writeError } from './errors.ts'
import { toCamelCaseFields } from './field-names.ts'
import { asList } from './input.ts'
import { requirePath } from './request.ts'
import { countMediaTokens } from './usage.ts'

const INPUTS_MAX = 2_048
const UNIQUE_FIELDS = ['model', 'content', 'requests']
const TRANSLATED_FIELDS = ['model', 'content', 'taskType', 'outputDimensionality', 'embedContentConfig']

type EmbedVerb = 'embedContent' | 'batchEmbedContents'

export const embedContent = embedProtocol('gemini-embed', 'embedContent')
export const batchEmbedContents = embedProtocol('gemini-batch-embed', 'batchEmbedContents')

function embedProtocol(name: string, verb: EmbedVerb): Protocol & { readonly vectors: EmbeddingsCodec } {
  const isBatch = verb === 'batchEmbedContents'
  return {
    name,
    lastEvent: '',
    hidesStages: true,
    readCall: (body, request) => readEmbedCall(body, request, name, verb),
    writeCall: writeEmbedCall,
    readAnswer: buildAnswerReader(({ embedding, embeddings, usageMetadata }) => {
      const found = embeddings ?? (embedding === undefined ? undefined : [embedding])
      return Array.isArray(found) ? { outputBytes: found.length, usage: readEmbedUsage(usageMetadata) } : undefined
    }),
    readFrame: rejectFrame,
    writeError,
    vectors: {
      readRequest: ({ json }) => readAsk(listRequests(toCamelCaseFields(json), isBatch), isBatch),
      writeRequest: (ask, { model }) => writeAsk(ask, model, isBatch),
      readResult: readVectors,
      writeResult: found => writeVectors(found, isBatch),
    },
  }
}

/** Reads the call. The model reads only the texts, so only they count as input. Throws a Refusal. */
function readEmbedCall(body: Buffer, request: RequestHead, name: string, verb: EmbedVerb): Call {
  const { model } = requirePath(request, [verb])
  const { json, fields } = readJsonObject(body, UNIQUE_FIELDS)
  const requests = listRequests(toCamelCaseFields(json), verb === 'batchEmbedContents')
  const parts = requests.flatMap(({ content }) => (isObject(content) ? asList(content.parts) : []))
  const texts = parts.flatMap(part => (isObject(part) && typeof part.text === 'string' ? [part.text] : []))
  const textOnly = texts.length === parts.length
  const inputBytes = textOnly ? texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0) : body.byteLength
  // The model's context window bounds each text on its own, so the whole body is the bound on the input.
  return {
    ...buildPassthroughCall(name, body, { json, fields, model }),
    textOnly,
    inputBytes,
    inputTokensMax: body.byteLength,
  }
}

function readEmbedUsage(metadata: unknown): UsageReport | undefined {
  if (!isObject(metadata) || metadata.promptTokenCount === undefined) return undefined
  const { promptTokenCount: total, promptTokenDetails, promptTokensDetails } = metadata
  const parts = asList(promptTokenDetails ?? promptTokensDetails)
  const listed = parts.reduce<number>((sum, part) => sum + (isObject(part) ? readCountOrZero(part.tokenCount) : 0), 0)
  if (!(listed <= readCountOrZero(total))) return 'nonsense'
  const { audio, image } = countMediaTokens(parts)
  return readInputUsage({ prompt_tokens: total, prompt_tokens_details: { audio_tokens: audio, image_tokens: image } })
}

function listRequests(json: Json, isBatch: boolean): readonly Json[] {
  if (!isBatch) {
    if (json.content === undefined || json.content === null) throw missing('content')
    return [json]
  }
  const requests = readOptional(json, 'requests', 'list')
  if (requests === undefined) throw missing('requests')
  if (requests.length === 0 || requests.length > INPUTS_MAX) {
    throw invalid('requests', `must be a list of 1 to ${INPUTS_MAX}`)
  }
  return requests.map((request, index) => {
    if (!isObject(request)) throw invalid(`requests[${index}]`, 'must be an object')
    return toCamelCaseFields(request, `requests[${index}]`)
  })
}

/** The body repeats the model name, and so does each request of a batch. */
function writeEmbedCall({ json }: Call, { model }: CallTarget): Uint8Array {
  const modelPath = `models/${model}`
  const replaceModel = (request: unknown): unknown =>
    isObject(request) && 'model' in request ? { ...request, model: modelPath } : request
  const { requests } = json
  const body = Array.isArray(requests) ? { ...json, requests: requests.map(replaceModel) } : json
  return Buffer.from(JSON.stringify(replaceModel(body)))
}

interface InputRequest {
  readonly text: string
  readonly dimensions: number | undefined
  readonly taskType: string | undefined
}

/** Other dialects have one set of options for all inputs, so the requests of a batch must have the same options. */
function readAsk(requests: readonly Json[], isBatch: boolean): EmbeddingsRequest {
  const inputs = requests.map((request, index) =>
    readInput(request, isBatch ? `requests[${index}].content` : 'content'),
  )
  const { dimensions, taskType } = inputs[0]!
  if (inputs.some(input => input.dimensions !== dimensions || input.taskType !== taskType)) {
    throw invalid('requests', 'must have the same options: only their content may differ')
  }
  const unread = new Set(
    requests.flatMap(request => Object.keys(request).filter(field => !TRANSLATED_FIELDS.includes(field))),
  )
  return {
    inputs: inputs.map(input => input.text),
    ...(dimensions !== undefined && { dimensions }),
    ...(taskType !== undefined && { taskType }),
    lostFields: [...unread],
  }
}

function readInput(request: Json, field: string): InputRequest {
  const { content } = request
  if (content === undefined || content === null) throw missing(field)
  const config = toCamelCaseFields(readOptional(request, 'embedContentConfig', 'object') ?? {})
  const parts = isObject(content) ? asList(content.parts) : []
  const texts = parts.map(part => (isObject(part) ? part.text : undefined))
  if (texts.length === 0 || texts.some(text => typeof text !== 'string')) throw invalid(field, 'must be text')
  return {
    text: texts.join('\n'),
    dimensions:
      readOptional(request, 'outputDimensionality', 'count') ?? readOptional(config, 'outputDimensionality', 'count'),
    taskType: readOptional(request, 'taskType', 'word') ?? readOptional(config, 'taskType', 'word'),
  }
}

function writeAsk({ inputs, dimensions, taskType }: EmbeddingsRequest, model: string, isBatch: boolean): string {
  const requests = inputs.map(text => ({
    model: `models/${model}`,
    content: { parts: [{ text }] },
    ...(taskType !== undefined && { taskType }),
    ...(dimensions !== undefined && { outputDimensionality: dimensions }),
  }))
  if (isBatch) return JSON.stringify({ requests })
  if (requests.length > 1) throw invalid('input', 'must be one text: this model takes one text per request')
  return JSON.stringify(requests[0])
}

function writeVectors({ vectors, tokens }: EmbeddingsResult, isBatch: boolean): string {
  const usage = tokens === undefined ? {} : { usageMetadata: { promptTokenCount: tokens, totalTokenCount: tokens } }
  if (isBatch) return JSON.stringify({ embeddings: vectors.map(values => ({ values })), ...usage })
  return JSON.stringify({ embedding: { values: vectors[0] ?? [] }, ...usage })
}

function readVectors(body: Buffer): EmbeddingsResult {
  const answer = parseAnswerObject(body)
  const found = answer?.embeddings ?? (answer?.embedding === undefined ? undefined : [answer.embedding])
  if (!Array.isArray(found)) throw missingVectors()
  const vectors = (found as readonly unknown[]).map(one => requireVector(isObject(one) ? one.values : undefined))
  const usage = answer?.usageMetadata
  const tokens = isObject(usage) ? tokenCount(usage.promptTokenCount) : undefined
  return { vectors, ...(tokens !== undefined && { tokens }) }
}
