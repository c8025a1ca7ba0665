// Embeddings of OpenAI and of Ark, whose fields are the same, for upstreams and callers of another dialect.

import { tokenCount } from '../../base/money/usage.ts'
import type { Call } from '../neutral/call.ts'
import type { VectorAsk, VectorCodec, Vectors } from '../neutral/embeddings.ts'
import { noVectors, requireNumbers } from '../neutral/embeddings.ts'
import { parseAnswer } from '../passthrough-call.ts'
import { invalid, optional } from '../request/checks.ts'
import { isObject } from '../request/json-object.ts'

const READ: readonly string[] = ['model', 'input', 'dimensions', 'encoding_format']

/** About as many bytes of text as a token has. */
const TOKEN_BYTES = 4

export const vectorCodec: VectorCodec = {
  readAsk({ json }) {
    const dimensions = optional(json, 'dimensions', 'count')
    return {
      inputs: textsOf(json.input),
      ...(dimensions !== undefined && { dimensions }),
      unread: Object.keys(json).filter(field => !READ.includes(field) && json[field] !== null),
    }
  },

  writeAsk({ inputs, dimensions, taskType }: VectorAsk, { model, losses }) {
    if (taskType !== undefined) losses.add('task_type')
    const wish = { model, input: inputs, encoding_format: 'float' }
    return JSON.stringify(dimensions === undefined ? wish : { ...wish, dimensions })
  },

  readVectors(body) {
    const answer = parseAnswer(body)
    if (!Array.isArray(answer?.data)) throw noVectors()
    const vectors: (readonly number[])[] = []
    for (const [at, one] of (answer.data as readonly unknown[]).entries()) {
      if (!isObject(one)) throw noVectors()
      const index = one.index ?? at
      if (index !== at && !(Number.isSafeInteger(index) && (index as number) < answer.data.length)) throw noVectors()
      vectors[index as number] = numbersOf(one.embedding)
    }
    if (vectors.length !== answer.data.length || vectors.includes(undefined as never)) throw noVectors()
    const tokens = isObject(answer.usage) ? tokenCount(answer.usage.prompt_tokens) : undefined
    return { vectors, ...(tokens !== undefined && { tokens }) }
  },

  writeVectors({ vectors, tokens }: Vectors, call: Call) {
    const asBase64 = call.json.encoding_format === 'base64'
    const data = vectors.map((vector, index) => {
      return { object: 'embedding', index, embedding: asBase64 ? base64Of(vector) : vector }
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

function textsOf(input: unknown): readonly string[] {
  const texts: readonly unknown[] = Array.isArray(input) ? input : [input]
  if (texts.every(text => typeof text === 'string')) return texts as readonly string[]
  throw invalid('input', 'must be a text or a list of texts: this model has other tokens')
}

/** Numbers, or the bytes of them: floats of 32 bits, little-endian. */
function numbersOf(embedding: unknown): readonly number[] {
  if (typeof embedding !== 'string') return requireNumbers(embedding)
  const bytes = Buffer.from(embedding, 'base64')
  const count = Math.floor(bytes.length / 4)
  return requireNumbers(Array.from({ length: count }, (_, at) => bytes.readFloatLE(at * 4)))
}

function base64Of(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4)
  vector.forEach((value, at) => bytes.writeFloatLE(value, at * 4))
  return bytes.toString('base64')
}
