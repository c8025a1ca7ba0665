// POST /v1/messages and /v1/messages/count_tokens: what we read of the body, and what we replace in it for an upstream.

import type { Call, CallTarget } from '../neutral/call.ts'
import { packedMark } from '../neutral/reasoning-state.ts'
import type { Asked } from '../protocol.ts'
import {
  checkMessages,
  checkTools,
  invalid,
  missing,
  optional,
  otherModels,
  refuseFields,
  requireModel,
} from '../request/checks.ts'
import { isObject, readJsonObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import type { Splice } from '../request/splice.ts'
import { spliced } from '../request/splice.ts'
import { readEndUser } from '../request/tags.ts'
import { callsLackThoughts, withoutPacked } from './foreign-state.ts'
import { fetchingFields, weighInput } from './input.ts'
import { checkVersion } from './versions.ts'

/** Aggregators read their own fields here as well. Nothing would tell what a plug-in did. */
const REFUSED = [...otherModels, 'plugins'] as const

/** The fields that routing and billing rest on. A duplicate of one could be read one way here and another there. */
export const readFields: readonly string[] = [
  ...['model', 'messages', 'stream', 'max_tokens', 'thinking', 'service_tier', 'speed', 'inference_geo'],
  ...REFUSED,
  ...fetchingFields,
]

/** Headers that go to an upstream of this dialect. */
export const passes = ['anthropic-version', 'anthropic-beta'] as const

const OUTPUT_TOKENS_MAX = 1_000_000_000

/** The least that a model can be told to think. */
const BUDGET_MIN = 1_024

export function readCall(body: Buffer, asked: Asked): Call {
  const { json, fields } = readJsonObject(body, readFields)
  const call = readCommon(body, asked, { json, fields })
  return { ...call, stream: optional(json, 'stream', 'boolean') ?? false, outputTokensMax: readCap(json.max_tokens) }
}

/** The same request, asked how long it is. It has no cap, and Claude Code sends none. */
export function readCountCall(body: Buffer, asked: Asked): Call {
  return { ...readCommon(body, asked, readJsonObject(body, readFields)), stream: false }
}

export const writeCount = (inputTokens: number): string => JSON.stringify({ input_tokens: inputTokens })

/** Undefined for what is not a count. */
export function readCount(json: unknown): number | undefined {
  const count = isObject(json) ? json.input_tokens : undefined
  return Number.isSafeInteger(count) && (count as number) >= 0 ? (count as number) : undefined
}

function readCommon(body: Buffer, asked: Asked, { json, fields }: Pick<Call, 'json' | 'fields'>): Call {
  const model = requireModel(json)
  refuseFields(json, REFUSED)
  checkMessages(json.messages)
  checkTools(json, 'custom')
  checkVersion(json, asked.header('anthropic-version'))
  const metadata = optional(json, 'metadata', 'object')
  const serviceClass = serviceClassOf(json)
  const endUser = readEndUser(metadata?.user_id)
  return {
    dialect: 'anthropic-messages',
    body,
    fields,
    json,
    bodyBytes: body.byteLength,
    ...weighInput(json, body.byteLength),
    model,
    stream: false,
    wantsUsage: true, // every message tells it
    choices: 1,
    ...(serviceClass !== undefined && { serviceClass }),
    ...(endUser !== undefined && { endUser }),
  }
}

/** Nothing is written under a cap of 0: the prompt is put into the cache. */
function readCap(value: unknown): number {
  if (value === undefined || value === null) throw missing('max_tokens')
  const isCap = Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= OUTPUT_TOKENS_MAX
  if (!isCap) throw invalid('max_tokens', 'must be an integer of at least 0')
  return value as number
}

/** Each of speed and place has a price of its own, and so has both. */
function serviceClassOf(json: Json): string | undefined {
  const tier = optional(json, 'service_tier', 'word')
  const speed = optional(json, 'speed', 'word')
  const place = optional(json, 'inference_geo', 'word')
  const dearer = [
    ...(speed === undefined || speed === 'standard' ? [] : [speed]),
    ...(place === undefined || place === 'global' ? [] : [`geo_${place}`]),
  ]
  return dearer.length === 0 ? tier : dearer.join('+')
}

export function writeCall(call: Call, target: CallTarget): Uint8Array {
  const { body, fields, json } = call
  const splices: Splice[] = [{ ...fields.get('model')!, text: JSON.stringify(target.model) }]
  const put = (field: string, value: unknown): void => {
    splices.push({ ...fields.get(field)!, text: JSON.stringify(value) })
  }
  const cap = target.cap !== undefined && target.cap < (call.outputTokensMax ?? 0) ? target.cap : undefined
  if (cap !== undefined) put('max_tokens', cap)
  // State came to this caller in a message that we wrote. Only its own provider can make anything of it.
  const messages = json.messages as readonly unknown[]
  const cleaned = body.includes(packedMark) ? withoutPacked(messages, target) : undefined
  if (cleaned !== undefined) put('messages', cleaned)
  const thinking = thinkingWithin(json.thinking, cap, cleaned)
  if (thinking?.type === 'disabled') target.losses?.add('thinking')
  if (thinking !== undefined) put('thinking', thinking)
  return spliced(body, splices)
}

/** A budget must be below the cap, and is refused where the thoughts of the calls under way were taken away. */
function thinkingWithin(
  thinking: unknown,
  cap: number | undefined,
  cleaned: readonly unknown[] | undefined,
): Json | undefined {
  if (!isObject(thinking) || thinking.type !== 'enabled') return undefined
  if (cleaned !== undefined && callsLackThoughts(cleaned)) return { type: 'disabled' }
  if (cap === undefined || !((thinking.budget_tokens as number) >= cap)) return undefined
  if (cap <= BUDGET_MIN) return { type: 'disabled' }
  return { ...thinking, budget_tokens: Math.max(BUDGET_MIN, Math.floor(cap / 2)) }
}
