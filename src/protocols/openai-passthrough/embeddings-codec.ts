// Translates embeddings of OpenAI and of Ark, which have the same fields, to and from other dialects.

import { tokenCount } from '../../base/money/usage.ts'
import type { Call } from '../neutral/call.ts'
import type { EmbeddingsCodec, EmbeddingsRequest, EmbeddingsResult } from '../neutral/embeddings.ts'
import { missingVectors, requireVector } from '../neutral/embeddings.ts'
import { parseAnswerObject } from '../passthrough-call.ts'
import { invalid, readOptional } from '../request/checks.ts'
import { isObject } from '../request/json-body.ts'

const TRANSLATED_FIELDS: readonly string[] = ['model', 'input', 'dimensions', 'encoding_format']

/** The average bytes of text in one token. */
const TOKEN_BYTES = 4

export const openaiEmbeddingsCodec: EmbeddingsCodec = {
  readRequest({ json }) {
    const dimensions = readOptional(json, 'dimensions', 'count')
    return {
      inputs: requireTexts(json.input),
      ...(dimensions !== undefined && { dimensions }),
      lostFields: Object.keys(json).filter(field => !TRANSLATED_FIELDS.includes(field) && json[field] !== null),
    }
  },

  writeRequest({ inputs, dimensions, taskType }: EmbeddingsRequest, { model, losses }) {
    if (taskType !== undefined) losses.add('task_type')
    const request = { model, input: inputs, encoding_format: 'float' }
    return JSON.stringify(dimensions === undefined ? request : { ...request, dimensions })
  },

  readResult(body) {
    const answer = parseAnswerObject(body)
    if (!Array.isArray(answer?.data)) throw missingVectors()
    const vectors: (readonly number[])[] = []
    for (const [position, item] of (answer.data as readonly unknown[]).entries()) {
      if (!isObject(item)) throw missingVectors()
      const index = item.index ?? position
      if (index !== position && !(Number.isSafeInteger(index) && (index as number) < answer.data.length))
        throw missingVectors()
      vectors[index as number] = readNumbers(item.embedding)
    }
    if (vectors.length !== answer.data.length || vectors.includes(undefined as never)) throw missingVectors()
    const tokens = isObject(answer.usage) ? tokenCount(answer.usage.prompt_tokens) : undefined
    return { vectors, ...(tokens !== undefined && { tokens }) }
  },

  writeResult({ vectors, tokens }: EmbeddingsResult, call: Call) {
    const isBase64 = call.json.encoding_format === 'base64'
    const data = vectors.map((vector, index) => {
      return { object: 'embedding', index, embedding: isBase64 ? encodeVector(vector) : vector }
    })
    const count = tokens ?? Math.ceil(call.inputBytes / TOKEN_BYTES)
    return JSON.stringify({
      object: 'list',
      data,
      model: call.model,
      usage: { prompt_tokens: count, total_tokens: count },
    })
  },
}

function requireTexts(input: unknown): readonly string[] {
  const texts: readonly unknown[] = Array.isArray(input) ? input : [input]
  if (texts.every(text => typeof text === 'string')) return texts as readonly string[]
  throw invalid('input', 'must be a text or a list of texts: this model does not take token ids')
}

/** Reads a list of numbers, or base64 of 32-bit little-endian floats. */
function readNumbers(embedding: unknown): readonly number[] {
  if (typeof embedding !== 'string') return requireVector(embedding)
  const bytes = Buffer.from(embedding, 'base64')
  const count = Math.floor(bytes.length / 4)
  return requireVector(Array.from({ length: count }, (_, position) => bytes.readFloatLE(position * 4)))
}

function encodeVector(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4)
  vector.forEach((value, position) => bytes.writeFloatLE(value, position * 4))
  return bytes.toString('base64')
}
