// Ark's embeddings, of text and of pictures, its tokenization, and its kept contexts.

import { writeError } from '../ark/errors.ts'
import type { Call } from '../neutral/call.ts'
import { readUsage } from '../openai-chat/usage.ts'
import { vectorCodec } from '../openai-passthrough/vectors.ts'
import { answerReader, noFrames, readJsonCall, writeModel } from '../passthrough-call.ts'
import type { Protocol } from '../protocol.ts'
import { invalid, missing, optional } from '../request/checks.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import { readInputUsage } from '../usage/passthrough-usage.ts'

const base = { lastEvent: '', quiet: true, writeCall: writeModel, readFrame: noFrames, writeError } as const

/** What a picture or a film is taken to be in bytes of text. */
const PART_BYTES = 4_000

export const embeddings: Protocol = {
  ...base,
  name: 'ark-embeddings',
  vectors: vectorCodec,
  readCall(body) {
    const call = readJsonCall('ark-embeddings', body, ['input'])
    const { input } = call.json
    if (input === undefined || input === null) throw missing('input')
    if (typeof input !== 'string' && !Array.isArray(input)) throw invalid('input', 'must be a text or a list')
    // A context is that of one text, and each is read in its own.
    return { ...call, inputTokensMax: call.bodyBytes }
  },
  readAnswer: answerReader(({ data, usage }) =>
    Array.isArray(data) ? { outputBytes: data.length, usage: readInputUsage(usage) } : undefined,
  ),
}

/** Its `data` is one object and no list. */
export const multimodalEmbeddings: Protocol = {
  ...base,
  name: 'ark-multimodal-embeddings',
  readCall(body) {
    const call = readJsonCall('ark-multimodal-embeddings', body, ['input'])
    const input = optional(call.json, 'input', 'list')
    if (input === undefined) throw missing('input')
    return { ...call, ...weigh(input, call) }
  },
  readAnswer: answerReader(({ data, usage }) =>
    isObject(data) || Array.isArray(data) ? { outputBytes: 1, usage: readInputUsage(usage) } : undefined,
  ),
}

function weigh(input: readonly unknown[], { bodyBytes }: Call): Pick<Call, 'textOnly' | 'inputBytes'> {
  const seen = input.filter(part => !isObject(part) || part.type !== 'text').length
  return seen === 0 ? { textOnly: true, inputBytes: bodyBytes } : { textOnly: false, inputBytes: seen * PART_BYTES }
}

/** Counts and costs nothing. */
export const tokenization: Protocol = {
  ...base,
  name: 'ark-tokenization',
  free: true,
  readCall(body) {
    const call = readJsonCall('ark-tokenization', body, ['text'])
    if (call.json.text === undefined || call.json.text === null) throw missing('text')
    return call
  },
  readAnswer: answerReader(({ data }) => (Array.isArray(data) ? { outputBytes: 0 } : undefined)),
}

const TEXTS_MAX = 256

/** Throws a Refusal for what is no list of texts. */
export function textsOf({ json: { text } }: Call): readonly string[] {
  const texts: readonly unknown[] = Array.isArray(text) ? text : [text]
  const isUsable = texts.length > 0 && texts.length <= TEXTS_MAX && texts.every(one => typeof one === 'string')
  if (!isUsable) throw invalid('text', `must be a text, or a list of 1 to ${TEXTS_MAX}`)
  return texts as readonly string[]
}

/** Numbers alone: which tokens they are, only the model's own vocabulary could tell. */
export function writeTokenization(counts: readonly number[], { model }: Call): string {
  const object = 'tokenization'
  const data = counts.map((total_tokens, index) => ({ index, object, total_tokens, token_ids: [], offset_mapping: [] }))
  return JSON.stringify({ object: 'list', model, data })
}

/** Keeps the beginning of a conversation upstream, which then has a name. */
export const contextCreate: Protocol = {
  ...base,
  name: 'ark-context-create',
  readCall(body) {
    const call = readJsonCall('ark-context-create', body, ['messages'])
    if (optional(call.json, 'messages', 'list') === undefined) throw missing('messages')
    return call
  },
  readAnswer: answerReader((json: Json) =>
    typeof json.id === 'string' ? { outputBytes: 1, usage: readUsage(json.usage) } : undefined,
  ),
}
