// Embeddings in every dialect. The vector is computed from the text, so that it is the same each time.

import { jsonAnswer } from '../answers.ts'
import type { Json } from '../body-fields.ts'
import { has, isCount, listOf, numberOf, objectOf, recordOf, recordsOf, stringOf } from '../body-fields.ts'
import type { Problem } from '../dialect.ts'
import { base36, countWords, createdS } from '../dialect.ts'
import { field, partsOf, readMethodPath } from '../gemini/request.ts'
import type { ReceivedRequest } from '../request.ts'
import type { Script } from '../script.ts'
import { script } from '../script.ts'

const sizeDefault = 8
const sizeMax = 3_072
const inputsMax = 256

/** A unit vector. */
function vectorOf(text: string, size: number): readonly number[] {
  let state = 0x811c9dc5
  for (let at = 0; at < text.length; at++) state = Math.imul(state ^ text.charCodeAt(at), 0x01000193) >>> 0
  const raw = Array.from({ length: size }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32 - 0.5
  })
  const length = Math.hypot(...raw)
  return raw.map(value => Math.fround(value / length))
}

const base64Of = (vector: readonly number[]): string => Buffer.from(new Float32Array(vector).buffer).toString('base64')

/** The inputs: texts, or lists of token ids. */
function inputsOf(input: unknown): readonly string[] {
  if (typeof input === 'string') return [input]
  const list = listOf(input)
  if (list.every(entry => typeof entry === 'number')) return list.length > 0 ? [list.join(' ')] : []
  return list.map(entry => (typeof entry === 'string' ? entry : listOf(entry).join(' ')))
}

export function answerEmbeddings(request: ReceivedRequest, refuse: (problem: Problem) => Script): Script {
  const body = objectOf(request)
  const inputs = inputsOf(body.input)
  if (typeof body.model !== 'string') return refuse({ message: 'you must provide a model parameter', param: 'model' })
  if (inputs.length === 0 || inputs.length > inputsMax || inputs.includes('')) {
    return refuse({ message: "'$.input' is invalid.", param: 'input' })
  }
  const size = sizeOf(body.dimensions)
  if (size === undefined) return refuse({ message: "'dimensions' is invalid.", param: 'dimensions' })
  const write = body.encoding_format === 'base64' ? base64Of : (vector: readonly number[]) => vector
  const data = inputs.map((text, index) => ({ object: 'embedding', index, embedding: write(vectorOf(text, size)) }))
  const words = inputs.reduce((sum, text) => sum + countWords(text), 0)
  const usage = { prompt_tokens: words, total_tokens: words }
  return script(...jsonAnswer(200, JSON.stringify({ object: 'list', data, model: body.model, usage })))
}

const sizeOf = (given: unknown): number | undefined =>
  isCount(given, sizeMax) ? (numberOf(given) ?? sizeDefault) : undefined

/** Ark's multimodal embeddings: one vector for all parts, and `data` is not a list. */
export function answerMultimodal(request: ReceivedRequest, refuse: (problem: Problem) => Script): Script {
  const body = objectOf(request)
  const parts = recordsOf(body.input)
  const size = sizeOf(body.dimensions)
  if (parts.length === 0 || parts.length > inputsMax || size === undefined) {
    return refuse({ message: 'The parameter `input` is not valid.', param: 'input' })
  }
  const text = parts.map(part => stringOf(part.text)).join(' ')
  const [text_tokens, image_tokens] = [countWords(text), parts.filter(part => has(part.image_url)).length * 10]
  const total = text_tokens + image_tokens
  const vector = vectorOf(text, size)
  const embedding = body.encoding_format === 'base64' ? base64Of(vector) : vector
  const usage = { prompt_tokens: total, total_tokens: total, prompt_tokens_details: { text_tokens, image_tokens } }
  const id = `fake${base36(request.ordinal)}`
  const head = { id, object: 'list', created: createdS, model: body.model }
  return script(...jsonAnswer(200, JSON.stringify({ ...head, data: { object: 'embedding', embedding }, usage })))
}

/** Gemini's embeddings, one or a batch, without usage. */
export function answerEmbedContent(request: ReceivedRequest, refuse: (problem: Problem) => Script): Script {
  const body = objectOf(request)
  const one = (asked: Json) => {
    const text = partsOf(asked.content)
      .map(part => stringOf(part.text))
      .join(' ')
    return { values: vectorOf(text, sizeOf(field(asked, 'outputDimensionality')) ?? sizeDefault) }
  }
  if (readMethodPath(request)?.verb === 'embedContent') {
    if (partsOf(body.content).length === 0) return refuse({ message: '* EmbedContentRequest.content: not specified' })
    return script(...jsonAnswer(200, JSON.stringify({ embedding: one(body) })))
  }
  const asked = recordsOf(body.requests).map(recordOf)
  if (asked.length === 0 || asked.length > inputsMax) {
    return refuse({ message: '* BatchEmbedContentsRequest.requests: not specified, or too many' })
  }
  return script(...jsonAnswer(200, JSON.stringify({ embeddings: asked.map(one) })))
}
