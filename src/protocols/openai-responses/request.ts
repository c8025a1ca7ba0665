// Reads the body of POST /v1/responses, and writes it for an upstream of the same dialect.

import type { Call, CallState, CallTarget } from '../neutral/call.ts'
import { PACKED_PREFIX, unpackReasoningState } from '../neutral/reasoning-state.ts'
import { replaceChanged } from '../request/changed-field.ts'
import {
  checkTools,
  invalid,
  missing,
  otherModelFields,
  readOptional,
  refuseFields,
  requireModel,
} from '../request/checks.ts'
import { insertField, streamSplice } from '../request/field-splice.ts'
import { isObject, readJsonObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import type { Splice } from '../request/splices.ts'
import { applySplices } from '../request/splices.ts'
import { readEndUser, readTags } from '../request/tags.ts'
import type { ResponsesFlavour } from './flavour.ts'
import { measureInput, storedFields } from './input.ts'
import { locateItem } from './response-object.ts'

const CAP = 'max_output_tokens'

/**
 * Fields that routing and billing depend on. A duplicate is refused, because an upstream could read the other value.
 */
export const uniqueFields: readonly string[] = [
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
  ...otherModelFields,
  ...storedFields,
]

export function readCall(body: Buffer, flavour: ResponsesFlavour): Call {
  const { json, fields } = readJsonObject(body, uniqueFields)
  const model = requireModel(json)
  refuseFields(json, otherModelFields)
  const state = readState(json)
  checkInput(json, state)
  readOptional(json, 'tools', 'list')
  checkTools(json)
  const cap = readOptional(json, CAP, 'count')
  const serviceClass = readOptional(json, 'service_tier', 'word')
  const endUser = readEndUser(json.safety_identifier, json.user)
  const tags = readTags(json.metadata)
  return {
    dialect: flavour.name,
    body,
    fields,
    json,
    bodyBytes: body.byteLength,
    ...measureInput(json, body.byteLength),
    model,
    stream: readOptional(json, 'stream', 'boolean') ?? false,
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
  const previous = readOptional(json, 'previous_response_id', 'text')
  const { conversation } = json
  const id = isObject(conversation) ? conversation.id : (conversation ?? undefined)
  if (id !== undefined && typeof id !== 'string')
    throw invalid('conversation', 'must be an id, or an object with an id')
  if (previous !== undefined && id !== undefined)
    throw invalid('conversation', 'must not be used together with "previous_response_id"')
  return {
    store: readOptional(json, 'store', 'boolean') ?? true,
    background: readOptional(json, 'background', 'boolean') ?? false,
    ...(previous !== undefined && { previous }),
    ...(id !== undefined && { conversation: id }),
  }
}

function checkInput(json: Json, state: CallState): void {
  const { input } = json
  if (input === undefined || input === null) {
    const stored = readOptional(json, 'prompt', 'object') ?? state.previous ?? state.conversation
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
  if (target.stream) splices.push(streamSplice(call))
  if (target.cap !== undefined) splices.push(...capSplice(call, target.cap))
  if (target.previous !== undefined) {
    const span = call.fields.get('previous_response_id')
    const text = JSON.stringify(target.previous)
    splices.push(span === undefined ? insertField(call, 'previous_response_id', text) : { ...span, text })
  }
  const input = call.fields.get('input')
  const changed = input === undefined ? undefined : inputForUpstream(call, target)
  if (changed !== undefined) splices.push(replaceChanged(call.body, input!, call.json.input, changed))
  return applySplices(call.body, splices)
}

function capSplice(call: Call, tokens: number): readonly Splice[] {
  const text = String(tokens)
  const span = call.fields.get(CAP)
  if (span === undefined) return [insertField(call, CAP, text)]
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
  if (!body.includes(PACKED_PREFIX) && !items.some(isGatewayThought)) return undefined
  const changed = items.flatMap(item => itemForUpstream(item, target))
  const isSame = changed.length === items.length && changed.every((item, at) => item === items[at])
  return isSame ? undefined : changed
}

function itemForUpstream(item: unknown, { origin, losses }: CallTarget): readonly unknown[] {
  const packed = isObject(item) ? item.encrypted_content : undefined
  const isPacked = typeof packed === 'string' && packed.startsWith(PACKED_PREFIX)
  if (!isPacked && !isGatewayThought(item)) return [item]
  const sealed = unpackReasoningState(packed)
  const isOwn = sealed?.form === 'encrypted' && sealed.origin !== undefined && sealed.origin === origin
  if (!isOwn) {
    losses?.add(isPacked ? 'reasoning_state' : 'reasoning')
    return []
  }
  return [{ ...(item as Json), ...(sealed.id !== undefined && { id: sealed.id }), encrypted_content: sealed.value }]
}

/** A reasoning item with an id of the gateway and without its state, which some clients drop. */
const isGatewayThought = (item: unknown): boolean =>
  isObject(item) && item.type === 'reasoning' && !item.encrypted_content && locateItem(item.id) !== undefined
