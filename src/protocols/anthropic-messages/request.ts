// POST /v1/messages and /v1/messages/count_tokens. Reads the call from the body, and replaces the few values in the body
// that an upstream must see differently.

import { THINKING_BUDGET_MIN } from '../../base/money/model-traits.ts'
import type { Call, CallTarget } from '../neutral/call.ts'
import { PACKED_PREFIX } from '../neutral/reasoning-state.ts'
import type { RequestHead } from '../protocol.ts'
import { replaceChanged } from '../request/changed-field.ts'
import {
  checkMessages,
  checkTools,
  invalid,
  missing,
  otherModelFields,
  readOptional,
  refuseFields,
  requireModel,
} from '../request/checks.ts'
import { streamSplice } from '../request/field-splice.ts'
import { isObject, readJsonObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import type { Splice } from '../request/splices.ts'
import { applySplices } from '../request/splices.ts'
import { readEndUser } from '../request/tags.ts'
import { externalInputFields, measureInput } from './input.ts'
import { lacksThinking, removePackedState } from './packed-state.ts'
import { checkVersion } from './versions.ts'

/** Fields of aggregators: other models to answer the call, and plug-ins, whose work no answer reports. */
const REFUSED_FIELDS = [...otherModelFields, 'plugins'] as const

/**
 * Fields that routing and billing depend on. They may occur once only: of two, the gateway might read one and the
 * upstream the other.
 */
export const uniqueFields: readonly string[] = [
  'model',
  'messages',
  'stream',
  'max_tokens',
  'thinking',
  'service_tier',
  'speed',
  'inference_geo',
  ...REFUSED_FIELDS,
  ...externalInputFields,
]

/** Headers of the caller that are sent to an upstream of this dialect. */
export const passedHeaders = ['anthropic-version', 'anthropic-beta'] as const

/** A feature that gives some models a longer context than their own. Each token of it is billed. */
const LONG_CONTEXT = /(?:^|[ ,])context-1m-/
const LONG_CONTEXT_TOKENS = 1_000_000

const OUTPUT_TOKENS_MAX = 1_000_000_000

export function readCall(body: Buffer, request: RequestHead): Call {
  const { json, fields } = readJsonObject(body, uniqueFields)
  const call = readCommon(body, request, { json, fields })
  return {
    ...call,
    stream: readOptional(json, 'stream', 'boolean') ?? false,
    outputTokensMax: readCap(json.max_tokens),
  }
}

/** Reads a request whose tokens are to be counted. `max_tokens` is not required: Claude Code does not send it. */
export function readCountCall(body: Buffer, request: RequestHead): Call {
  return { ...readCommon(body, request, readJsonObject(body, uniqueFields)), stream: false }
}

export const writeCount = (inputTokens: number): string => JSON.stringify({ input_tokens: inputTokens })

/** Undefined for an answer that holds no count. */
export function readCount(json: unknown): number | undefined {
  const count = isObject(json) ? json.input_tokens : undefined
  return Number.isSafeInteger(count) && (count as number) >= 0 ? (count as number) : undefined
}

function readCommon(body: Buffer, request: RequestHead, { json, fields }: Pick<Call, 'json' | 'fields'>): Call {
  const model = requireModel(json)
  refuseFields(json, REFUSED_FIELDS)
  checkMessages(json.messages)
  checkTools(json, 'custom')
  checkVersion(json, request.header('anthropic-version'))
  const metadata = readOptional(json, 'metadata', 'object')
  const serviceClass = readServiceClass(json)
  const endUser = readEndUser(metadata?.user_id)
  return {
    dialect: 'anthropic-messages',
    body,
    fields,
    json,
    bodyBytes: body.byteLength,
    ...measureInput(json, body.byteLength),
    model,
    stream: false,
    wantsUsage: true, // every answer of this dialect has usage
    choices: 1,
    ...(LONG_CONTEXT.test(request.header('anthropic-beta') ?? '') && { contextTokens: LONG_CONTEXT_TOKENS }),
    ...(serviceClass !== undefined && { serviceClass }),
    ...(endUser !== undefined && { endUser }),
  }
}

/** A cap of 0 is valid: the model writes nothing, and the prompt is put into the cache. */
function readCap(value: unknown): number {
  if (value === undefined || value === null) throw missing('max_tokens')
  const isCap = Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= OUTPUT_TOKENS_MAX
  if (!isCap) throw invalid('max_tokens', 'must be an integer of at least 0')
  return value as number
}

/** Speed and region have prices of their own, and so has each combination of them. */
function readServiceClass(json: Json): string | undefined {
  const tier = readOptional(json, 'service_tier', 'word')
  const speed = readOptional(json, 'speed', 'word')
  const geo = readOptional(json, 'inference_geo', 'word')
  const priced = [
    ...(speed === undefined || speed === 'standard' ? [] : [speed]),
    ...(geo === undefined || geo === 'global' ? [] : [`geo_${geo}`]),
  ]
  return priced.length === 0 ? tier : priced.join('+')
}

export function writeCall(call: Call, target: CallTarget): Uint8Array {
  const { body, fields, json } = call
  const splices: Splice[] = [{ ...fields.get('model')!, text: JSON.stringify(target.model) }]
  if (target.stream) splices.push(streamSplice(call))
  const replaceField = (field: string, value: unknown): void => {
    splices.push({ ...fields.get(field)!, text: JSON.stringify(value) })
  }
  const cap = target.cap !== undefined && target.cap < (call.outputTokensMax ?? 0) ? target.cap : undefined
  if (cap !== undefined) replaceField('max_tokens', cap)
  // The caller sends back packed reasoning state from an earlier answer. Only the provider that made it can use it.
  const messages = json.messages as readonly unknown[]
  const cleaned = body.includes(PACKED_PREFIX) ? removePackedState(messages, target) : undefined
  if (cleaned !== undefined) splices.push(replaceChanged(body, fields.get('messages')!, messages, cleaned))
  const thinking = limitThinking(json.thinking, cap, cleaned)
  if (thinking?.type === 'disabled') target.losses?.add('thinking')
  if (thinking !== undefined) replaceField('thinking', thinking)
  return applySplices(body, splices)
}

/** A thinking budget must be below the cap. Thinking is not possible where thinking that is needed was removed. */
function limitThinking(
  thinking: unknown,
  cap: number | undefined,
  cleaned: readonly unknown[] | undefined,
): Json | undefined {
  if (!isObject(thinking) || thinking.type !== 'enabled') return undefined
  if (cleaned !== undefined && lacksThinking(cleaned)) return { type: 'disabled' }
  if (cap === undefined || !((thinking.budget_tokens as number) >= cap)) return undefined
  if (cap <= THINKING_BUDGET_MIN) return { type: 'disabled' }
  return { ...thinking, budget_tokens: Math.max(THINKING_BUDGET_MIN, Math.floor(cap / 2)) }
}
