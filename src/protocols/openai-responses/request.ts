// POST /v1/responses: what we read of the body, and what we replace in it for an upstream.

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

/** The fields that routing and billing rest on. A duplicate of one could be read one way here and another there. */
export const readFields: readonly string[] = [
  ...['model', 'input', 'stream', 'service_tier', 'reasoning', 'tools', 'max_tool_calls', 'store', 'background', CAP],
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
    wantsUsage: true, // it is part of the last event
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
  if (id !== undefined && typeof id !== 'string') throw invalid('conversation', 'must be an id, or an object with one')
  if (previous !== undefined && id !== undefined) throw invalid('conversation', 'excludes previous_response_id')
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
    const ok = isObject(item) && (typeof item.type === 'string' || typeof item.role === 'string')
    if (!ok) throw invalid(`input[${index}]`, 'must be an object with a type or a role')
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
  const known = input === undefined ? undefined : knownInput(call, target)
  if (known !== undefined) splices.push({ ...input!, text: JSON.stringify(known) })
  return spliced(call.body, splices)
}

function capSplice(call: Call, tokens: number): readonly Splice[] {
  const text = String(tokens)
  const span = call.fields.get(CAP)
  if (span === undefined) return [fieldSplice(call, CAP, text)]
  const own = call.outputTokensMax
  return own !== undefined && own <= tokens ? [] : [{ ...span, text }]
}

/**
 * The input as the upstream knows it: state that we packed is unpacked for the one that made it, and taken away before
 * it could reach any other. An item without it is one that the upstream has never seen. Undefined where nothing is to
 * be changed, so that a caller's bytes stay as they are.
 */
function knownInput({ body, json: { input } }: Call, target: CallTarget): readonly unknown[] | undefined {
  if (!Array.isArray(input)) return undefined
  const items = input as readonly unknown[]
  if (!body.includes(packedMark) && !items.some(isOurThought)) return undefined
  const known = items.flatMap(item => knownItem(item, target))
  const isSame = known.length === items.length && known.every((item, at) => item === items[at])
  return isSame ? undefined : known
}

function knownItem(item: unknown, { origin, losses }: CallTarget): readonly unknown[] {
  const packed = isObject(item) ? item.encrypted_content : undefined
  const isPacked = typeof packed === 'string' && packed.startsWith(packedMark)
  if (!isPacked && !isOurThought(item)) return [item]
  const sealed = unpackSealed(packed)
  const isOwn = sealed?.form === 'encrypted' && sealed.origin !== undefined && sealed.origin === origin
  if (!isOwn) {
    losses?.add(isPacked ? 'reasoning_state' : 'reasoning')
    return []
  }
  return [{ ...(item as Json), ...(sealed.id !== undefined && { id: sealed.id }), encrypted_content: sealed.value }]
}

/** A reasoning item with a name of ours and without its state, which some clients drop. No upstream knows the name. */
const isOurThought = (item: unknown): boolean =>
  isObject(item) && item.type === 'reasoning' && !item.encrypted_content && placeOfItem(item.id) !== undefined
