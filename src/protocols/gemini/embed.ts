// POST /v1beta/models/…:embedContent and :batchEmbedContents. Google's own client sends a batch even of one.

import { Refusal } from '../../base/errors.ts'
import { tokenCount } from '../../base/usage.ts'
import type { Json } from '../checks.ts'
import { invalid, missing, optional } from '../checks.ts'
import { isObject, readJsonObject } from '../json-object.ts'
import type { Asked } from '../protocol.ts'
import { asList } from './input.ts'
import { requirePath } from './request.ts'
import { unwrapped } from './response.ts'
import { camelFields } from './spelling.ts'

const INPUTS_MAX = 2_048
const READ_FIELDS = ['model', 'content', 'requests']

export interface EmbedCall {
  /** As the caller named it. */
  readonly model: string
  readonly inputs: readonly string[]
  readonly dimensions?: number
  readonly taskType?: string
  /** Whether the answer is a list, however many there are. */
  readonly isBatch: boolean
}

export interface Embedded {
  readonly vectors: readonly (readonly number[])[]
  /** Of all inputs, where it is known. */
  readonly tokens?: number
}

/** Throws a Refusal. */
export function readEmbedCall(body: Buffer, asked: Asked): EmbedCall {
  const { model, verb } = requirePath(asked, ['embedContent', 'batchEmbedContents'])
  const { json } = readJsonObject(body, READ_FIELDS)
  const own = camelFields(json)
  const isBatch = verb === 'batchEmbedContents'
  const requests = isBatch ? readRequests(own) : [own]
  const wishes = requests.map((request, index) => readOne(request, isBatch ? `requests[${index}]` : ''))
  const { dimensions, taskType } = wishes[0]!
  if (wishes.some(wish => wish.dimensions !== dimensions || wish.taskType !== taskType)) {
    throw invalid('requests', 'must be alike in all but their content')
  }
  return {
    model,
    inputs: wishes.map(wish => wish.input),
    ...(dimensions !== undefined && { dimensions }),
    ...(taskType !== undefined && { taskType }),
    isBatch,
  }
}

function readRequests(json: Json): readonly Json[] {
  const requests = optional(json, 'requests', 'list')
  if (requests === undefined) throw missing('requests')
  if (requests.length === 0 || requests.length > INPUTS_MAX) {
    throw invalid('requests', `must be a list of 1 to ${INPUTS_MAX}`)
  }
  return requests.map((request, index) => {
    if (!isObject(request)) throw invalid(`requests[${index}]`, 'must be an object')
    return camelFields(request, `requests[${index}]`)
  })
}

interface EmbedWish {
  readonly input: string
  readonly dimensions: number | undefined
  readonly taskType: string | undefined
}

function readOne(request: Json, path: string): EmbedWish {
  const field = path === '' ? 'content' : `${path}.content`
  const { content } = request
  if (content === undefined || content === null) throw missing(field)
  const config = camelFields(optional(request, 'embedContentConfig', 'object') ?? {})
  const parts = isObject(content) ? asList(content.parts) : []
  const texts = parts.map(part => (isObject(part) ? part.text : undefined))
  if (texts.length === 0 || texts.some(text => typeof text !== 'string')) throw invalid(field, 'must be text')
  return {
    input: texts.join('\n'),
    dimensions: optional(request, 'outputDimensionality', 'count') ?? optional(config, 'outputDimensionality', 'count'),
    taskType: optional(request, 'taskType', 'word') ?? optional(config, 'taskType', 'word'),
  }
}

export function writeEmbedAnswer({ vectors, tokens }: Embedded, { isBatch }: Pick<EmbedCall, 'isBatch'>): string {
  const usage = tokens === undefined ? {} : { usageMetadata: { promptTokenCount: tokens, totalTokenCount: tokens } }
  if (isBatch) return JSON.stringify({ embeddings: vectors.map(values => ({ values })), ...usage })
  return JSON.stringify({ embedding: { values: vectors[0] ?? [] }, ...usage })
}

/** For an upstream of this dialect, as a batch: of one input as of many. */
export function writeEmbedCall({ inputs, dimensions, taskType }: Omit<EmbedCall, 'isBatch'>, model: string): string {
  const requests = inputs.map(text => ({
    model: `models/${model}`,
    content: { parts: [{ text }] },
    ...(taskType !== undefined && { taskType }),
    ...(dimensions !== undefined && { outputDimensionality: dimensions }),
  }))
  return JSON.stringify({ requests })
}

/** Throws a Refusal for what is no answer to it. */
export function readEmbedAnswer(body: Buffer): Embedded {
  const answer = parsed(body)
  const found = answer.embeddings ?? (answer.embedding === undefined ? undefined : [answer.embedding])
  if (!Array.isArray(found)) throw unusable()
  const vectors = (found as readonly unknown[]).map(embedding => {
    const values = isObject(embedding) ? embedding.values : undefined
    if (!Array.isArray(values) || values.some(value => typeof value !== 'number')) throw unusable()
    return values as readonly number[]
  })
  const usage = answer.usageMetadata
  const tokens = isObject(usage) ? tokenCount(usage.promptTokenCount) : undefined
  return { vectors, ...(tokens !== undefined && { tokens }) }
}

const unusable = (): Refusal => new Refusal('upstream_unusable', 'no embeddings')

function parsed(body: Buffer): Json {
  try {
    const answer = unwrapped(JSON.parse(body.toString('utf8')))
    if (isObject(answer)) return answer
  } catch {
    // It is told below what it is not.
  }
  throw unusable()
}
