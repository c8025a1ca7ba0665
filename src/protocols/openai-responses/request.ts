// Reads the body of POST /v1/responses, and writes it for an upstream of the same dialect.

import type { Call, CallState, CallTarget } from '../neutral/call.ts'
import { packedMark, unpackSealed } from '../neutral/reasoning-state.ts'
import { checkTools, invalid, missing, optional, otherModels, refuseFields, requireModel } from '../request/checks.ts'
import { fieldSplice } from '../request/field-splice.ts'
import { isObject, readJsonObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import type { Splice } from '../request/splice.ts'
import { spliced } from '../request/splice.ts'
import { readEndUser, readTags } from '../request/tags.ts'
import type { Flavour } from './flavour.ts'
import { storedFields, weighInput } from './input.ts'
import { placeOfItem } from './response-body.ts'

const CAP = 'max_output_tokens'

/**
 * Fields that routing and billing depend on. A duplicate is refused, because an upstream could read the other value.
 */
export const readFields: readonly string[] = [
  'model',
  'input',
  'stream',
  'service_tier',
  'reasoning',
  'tools',
  'max_tool_calls',
  'store',
  'background',
  CAP,
  ...otherModels,
  ...storedFields,
]

export function readCall(body: Buffer, flavour: Flavour): Call {
  const { json, fields } = readJsonObject(body, readFields)
  const model = requireModel(json)
  refuseFields(json, otherModels)
  const state = readState(json)
  checkInput(json, state)
  optional(json, 'tools', 'list')
  checkTools(json)
  const cap = optional(json, CAP, 'count')
  const serviceClass = optional(json, 'service_tier', 'word')
  const endUser = readEndUser(json.safety_identifier, json.user)
  const tags = readTags(json.metadata)
  return {
    dialect: flavour.name,
    body,
    fields,
    json,
    bodyBytes: body.byteLength,
    ...weighInput(json, body.byteLength),
    model,
    stream: optional(json, 'stream', 'boolean') ?? false,
    wantsUsage: true, // usage is part of the last event
    choices: 1,
    state,
    ...(cap !== undefined && { outputTokensMax: cap }),
    ...(serviceClass !== undefined && { serviceClass }),
    ...(endUser !== undefined && { endUser }),
    ...(tags !== undefined && { tags }),
  }
}

function readState(json: Json): CallState {
  const previous = optional(json, 'previous_response_id', 'text')
  const { conversation } = json
  const id = isObject(conversation) ? conversation.id : (conversation ?? undefined)
  if (id !== undefined && typeof id !== 'string')
    throw invalid('conversation', 'must be an id, or an object with an id')
  if (previous !== undefined && id !== undefined)
    throw invalid('conversation', 'must not be used together with "previous_response_id"')
  return {
    store: optional(json, 'store', 'boolean') ?? true,
    background: optional(json, 'background', 'boolean') ?? false,
    ...(previous !== undefined && { previous }),
    ...(id !== undefined && { conversation: id }),
  }
}

function checkInput(json: Json, state: CallState): void {
  const { input } = json
  if (input === undefined || input === null) {
    const stored = optional(json, 'prompt', 'object') ?? state.previous ?? state.conversation
    if (stored === undefined) throw missing('input')
    return
  }
  if (typeof input === 'string') return
  if (!Array.isArray(input)) throw invalid('input', 'must be a text or a list of items')
  input.forEach((item: unknown, index) => {
    const isItem = isObject(item) && (typeof item.type === 'string' || typeof item.role === 'string')
    if (!isItem) throw invalid(`input[${index}]`, 'must be an object with a type or a role')
  })
}

export function writeCall(call: Call, target: CallTarget): Uint8Array {
  const model = call.fields.get('model')!
  const splices: Splice[] = [{ ...model, text: JSON.stringify(target.model) }]
  if (target.cap !== undefined) splices.push(...capSplice(call, target.cap))
  if (target.previous !== undefined) {
    const span = call.fields.get('previous_response_id')
    const text = JSON.stringify(target.previous)
    splices.push(span === undefined ? fieldSplice(call, 'previous_response_id', text) : { ...span, text })
  }
  const input = call.fields.get('input')
  const changed = input === undefined ? undefined : inputForUpstream(call, target)
  if (changed !== undefined) splices.push({ ...input!, text: JSON.stringify(changed) })
  return spliced(call.body, splices)
}

function capSplice(call: Call, tokens: number): readonly Splice[] {
  const text = String(tokens)
  const span = call.fields.get(CAP)
  if (span === undefined) return [fieldSplice(call, CAP, text)]
  const callerCap = call.outputTokensMax
  return callerCap !== undefined && callerCap <= tokens ? [] : [{ ...span, text }]
}

/**
 * Returns the input for one upstream. State that the gateway packed is unpacked for the upstream that created it, and
 * removed for any other. Reasoning items of the gateway without state are removed, because no upstream knows them.
 * Undefined if nothing changes, so that the caller's bytes can stay unchanged.
 */
function inputForUpstream({ body, json: { input } }: Call, target: CallTarget): readonly unknown[] | undefined {
  if (!Array.isArray(input)) return undefined
  const items = input as readonly unknown[]
  if (!body.includes(packedMark) && !items.some(isGatewayThought)) return undefined
  const changed = items.flatMap(item => itemForUpstream(item, target))
  const isSame = changed.length === items.length && changed.every((item, at) => item === items[at])
  return isSame ? undefined : changed
}

function itemForUpstream(item: unknown, { origin, losses }: CallTarget): readonly unknown[] {
  const packed = isObject(item) ? item.encrypted_content : undefined
  const isPacked = typeof packed === 'string' && packed.startsWith(packedMark)
  if (!isPacked && !isGatewayThought(item)) return [item]
  const sealed = unpackSealed(packed)
  const isOwn = sealed?.form === 'encrypted' && sealed.origin !== undefined && sealed.origin === origin
  if (!isOwn) {
    losses?.add(isPacked ? 'reasoning_state' : 'reasoning')
    return []
  }
  return [{ ...(item as Json), ...(sealed.id !== undefined && { id: sealed.id }), encrypted_content: sealed.value }]
}

/** A reasoning item with an id of the gateway and without its state, which some clients drop. */
const isGatewayThought = (item: unknown): boolean =>
  isObject(item) && item.type === 'reasoning' && !item.encrypted_content && placeOfItem(item.id) !== undefined
