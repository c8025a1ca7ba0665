// Ark's calls that read text and write none: embeddings of text and of media, tokenization, and stored contexts.

import { writeError } from '../ark/errors.ts'
import type { Call } from '../neutral/call.ts'
import { readUsage } from '../openai-chat/usage.ts'
import { openaiEmbeddingsCodec } from '../openai-passthrough/embeddings-codec.ts'
import { buildAnswerReader, readJsonCall, rejectFrame, writeModel } from '../passthrough-call.ts'
import type { Protocol } from '../protocol.ts'
import { invalid, missing, readOptional } from '../request/checks.ts'
import { MEDIA_PART_BYTES } from '../request/input-size.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { readInputUsage } from '../usage/passthrough-usage.ts'

const common = { lastEvent: '', hidesStages: true, writeCall: writeModel, readFrame: rejectFrame, writeError } as const

export const embeddings: Protocol = {
  ...common,
  name: 'ark-embeddings',
  vectors: openaiEmbeddingsCodec,
  readCall(body) {
    const call = readJsonCall('ark-embeddings', body, ['input'])
    const { input } = call.json
    if (input === undefined || input === null) throw missing('input')
    if (typeof input !== 'string' && !Array.isArray(input)) throw invalid('input', 'must be a text or a list')
    // The model's context window bounds each text on its own, so the whole body is the bound on the input.
    return { ...call, inputTokensMax: call.bodyBytes }
  },
  readAnswer: buildAnswerReader(({ data, usage }) =>
    Array.isArray(data) ? { outputBytes: data.length, usage: readInputUsage(usage) } : undefined,
  ),
}

/** In its answer `data` is one object, not a list. */
export const multimodalEmbeddings: Protocol = {
  ...common,
  name: 'ark-multimodal-embeddings',
  readCall(body) {
    const call = readJsonCall('ark-multimodal-embeddings', body, ['input'])
    const input = readOptional(call.json, 'input', 'list')
    if (input === undefined) throw missing('input')
    return { ...call, ...measureInput(input, call) }
  },
  readAnswer: buildAnswerReader(({ data, usage }) =>
    isObject(data) || Array.isArray(data) ? { outputBytes: 1, usage: readInputUsage(usage) } : undefined,
  ),
}

type Measured = Pick<Call, 'textOnly' | 'inputBytes' | 'imageInputBytes'>

/** Video frames are billed like images. */
function measureInput(input: readonly unknown[], { bodyBytes }: Call): Measured {
  const mediaParts = input.filter(part => !isObject(part) || part.type !== 'text').length
  if (mediaParts === 0) return { textOnly: true, inputBytes: bodyBytes }
  const imageInputBytes = mediaParts * MEDIA_PART_BYTES
  return { textOnly: false, inputBytes: imageInputBytes, imageInputBytes }
}

/** Counts tokens. Its calls cost nothing. */
export const tokenization: Protocol = {
  ...common,
  name: 'ark-tokenization',
  free: true,
  readCall(body) {
    const call = readJsonCall('ark-tokenization', body, ['text'])
    if (call.json.text === undefined || call.json.text === null) throw missing('text')
    return call
  },
  readAnswer: buildAnswerReader(({ data }) => (Array.isArray(data) ? { outputBytes: 0 } : undefined)),
}

const TEXTS_MAX = 256

/** Throws a Refusal for anything but a text or a list of texts. */
export function readTexts({ json: { text } }: Call): readonly string[] {
  const texts: readonly unknown[] = Array.isArray(text) ? text : [text]
  const isUsable = texts.length > 0 && texts.length <= TEXTS_MAX && texts.every(item => typeof item === 'string')
  if (!isUsable) throw invalid('text', `must be a text, or a list of 1 to ${TEXTS_MAX}`)
  return texts as readonly string[]
}

/** Writes the counts only: the ids of the tokens depend on the model's vocabulary, which the gateway does not have. */
export function writeTokenization(counts: readonly number[], { model }: Call): string {
  const object = 'tokenization'
  const data = counts.map((total_tokens, index) => ({ index, object, total_tokens, token_ids: [], offset_mapping: [] }))
  return JSON.stringify({ object: 'list', model, data })
}

/** Stores the beginning of a conversation upstream and returns its id. */
export const contextCreate: Protocol = {
  ...common,
  name: 'ark-context-create',
  readCall(body) {
    const call = readJsonCall('ark-context-create', body, ['messages'])
    if (readOptional(call.json, 'messages', 'list') === undefined) throw missing('messages')
    return call
  },
  readAnswer: buildAnswerReader((json: Json) =>
    typeof json.id === 'string' ? { outputBytes: 1, usage: readUsage(json.usage) } : undefined,
  ),
}
