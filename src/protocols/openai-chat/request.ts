// Reads the body of POST /v1/chat/completions, and writes it for an upstream of the same dialect.

import { Refusal } from '../../base/errors.ts'
import type { FieldSpan } from '../../base/text/json-bytes.ts'
import type { Call, CallTarget, OutputCapField } from '../neutral/call.ts'
import { replaceChanged } from '../request/changed-field.ts'
import {
  checkMessages,
  checkTools,
  deferringFields,
  describeField,
  otherModelFields,
  readOptional,
  refuseDeferred,
  refuseFields,
  requireModel,
} from '../request/checks.ts'
import { insertField, streamSplice } from '../request/field-splice.ts'
import { findCaseDuplicate, isObject, readJsonObject, scanField } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import type { Splice } from '../request/splices.ts'
import { applySplices } from '../request/splices.ts'
import { readEndUser, readTags } from '../request/tags.ts'
import type { ChatFlavour } from './flavour.ts'
import { openaiChatFlavour } from './flavour.ts'
import { externalInputFields, measureInput, measurePrediction, opaqueFields } from './input.ts'
import { removePackedState } from './reasoning-state.ts'

/** An upstream may use either field, so the hold covers the larger one. */
const CAP_FIELDS = ['max_completion_tokens', 'max_tokens'] as const

/**
 * Fields that routing and billing depend on. A duplicate is refused, because an upstream could read the other value.
 */
export const uniqueFields: readonly string[] = [
  'model',
  'messages',
  'stream',
  'stream_options',
  'n',
  'service_tier',
  'thinking',
  'reasoning_effort',
  ...otherModelFields,
  ...CAP_FIELDS,
  ...externalInputFields,
  ...opaqueFields,
  ...deferringFields,
]

export const readCall = (body: Buffer): Call => readChatCall(body, openaiChatFlavour)

export function readChatCall(body: Buffer, { dialect, capsVisibleOutput }: ChatFlavour): Call {
  const { json, fields } = readJsonObject(body, uniqueFields)
  const model = requireModel(json)
  refuseFields(json, otherModelFields)
  refuseDeferred(json, deferringFields)
  readOptional(json, 'tools', 'list')
  checkMessages(json.messages)
  checkTools(json)
  const options = readOptional(json, 'stream_options', 'object')
  refuseDuplicateOption(body, fields.get('stream_options'))
  const stream = readOptional(json, 'stream', 'boolean')
  const choices = readOptional(json, 'n', 'choices')
  const totalCap = readOptional(json, 'max_completion_tokens', 'count') ?? 0
  const visibleCap = readOptional(json, 'max_tokens', 'count') ?? 0
  const cap = capsVisibleOutput && mayThink(json) ? totalCap : Math.max(totalCap, visibleCap)
  const serviceClass = readOptional(json, 'service_tier', 'word')
  const endUser = readEndUser(json.user, json.safety_identifier)
  const tags = readTags(json.metadata)
  const { textOnly, searchesMax, inputBytes, media, services, serverTools } = measureInput(json, body.byteLength)
  const call: Writable<Call> = {
    dialect,
    body,
    fields,
    json,
    bodyBytes: body.byteLength,
    textOnly,
    searchesMax,
    inputBytes,
    model,
    stream: stream ?? false,
    wantsUsage: options?.include_usage === true,
    choices: choices ?? 1,
  }
  if (media !== undefined) call.media = media
  if (services !== undefined) call.services = services
  if (serverTools !== undefined) call.serverTools = serverTools
  if (cap > 0) call.outputTokensMax = cap
  if (json.prediction) call.predictedBytes = measurePrediction(json.prediction)
  if (serviceClass !== undefined) call.serviceClass = serviceClass
  if (endUser !== undefined) call.endUser = endUser
  if (tags !== undefined) call.tags = tags
  return call
}

type Writable<T> = { -readonly [Name in keyof T]: T[Name] }

const mayThink = ({ thinking }: Json): boolean => !isObject(thinking) || thinking.type !== 'disabled'

export const writeCall = (call: Call, target: CallTarget): Uint8Array => writeChatCall(call, target, openaiChatFlavour)

export function writeChatCall(call: Call, target: CallTarget, { capsVisibleOutput }: ChatFlavour): Uint8Array {
  const model = call.fields.get('model')!
  const splices: Splice[] = [{ ...model, text: JSON.stringify(target.model) }]
  if (target.stream) splices.push(streamSplice(call))
  if ((call.stream || target.stream) && target.askUsage && !call.wantsUsage) splices.push(buildUsageSplice(call))
  if (target.cap !== undefined) {
    const capsVisibleOnly = capsVisibleOutput && mayThink(call.json)
    splices.push(
      ...(capsVisibleOnly ? wholeCapSplices(call, target.cap) : capSplices(call, target.cap, target.capField)),
    )
  }
  const messages = removePackedState(call)
  if (messages !== undefined) target.losses?.add('reasoning_state')
  if (messages !== undefined) {
    splices.push(replaceChanged(call.body, call.fields.get('messages')!, call.json.messages, messages))
  }
  return applySplices(call.body, splices)
}

/** Only `max_completion_tokens` limits all paid output. The upstream refuses both fields together. */
function wholeCapSplices(call: Call, tokens: number): readonly Splice[] {
  const [totalCap, visibleCap] = CAP_FIELDS.map(name => call.fields.get(name))
  const callerCap = readOptional(call.json, 'max_completion_tokens', 'count')
  if (callerCap !== undefined) return callerCap > tokens ? [{ ...totalCap!, text: String(tokens) }] : []
  const text = String(tokens)
  const cap = totalCap === undefined ? insertField(call, CAP_FIELDS[0], text) : { ...totalCap, text }
  return visibleCap === undefined ? [cap] : [cap, { ...visibleCap, text: 'null' }]
}

/** Lowers each cap of the caller that is too high. If the caller has none, sets the field that the upstream reads. */
function capSplices(call: Call, tokens: number, field: OutputCapField): readonly Splice[] {
  const callerCap = (name: string): number => {
    const span = call.fields.get(name)
    return span === undefined ? 0 : Number(call.body.toString('latin1', span.start, span.end)) || 0 // the value may be null
  }
  const text = String(tokens)
  const given = CAP_FIELDS.filter(name => callerCap(name) > 0)
  if (given.length === 0) {
    const nullField = call.fields.get(field)
    return [nullField === undefined ? insertField(call, field, text) : { ...nullField, text }]
  }
  return given.filter(name => callerCap(name) > tokens).map(name => ({ ...call.fields.get(name)!, text }))
}

export function buildUsageSplice(call: Call): Splice {
  const given = call.fields.get('stream_options')
  if (given === undefined) return insertField(call, 'stream_options', '{"include_usage":true}')
  const options = scanField(call.body, given)
  if (typeof options === 'string') return { ...given, text: '{"include_usage":true}' } // the value is null
  const option = options.fields.get('include_usage')
  if (option !== undefined) return { start: given.start + option.start, end: given.start + option.end, text: 'true' }
  const open = given.start + 1
  return { start: open, end: open, text: options.fields.size === 0 ? '"include_usage":true' : '"include_usage":true,' }
}

/** Refuses the stream option that the gateway reads if it is there in another case, too. */
export function refuseDuplicateOption(body: Buffer, span: FieldSpan | undefined): void {
  const scan = span === undefined ? 'malformed' : scanField(body, span)
  if (typeof scan === 'string') return
  if (findCaseDuplicate(scan.fields, ['include_usage']) === undefined) return
  throw new Refusal(
    'field_duplicate',
    'include_usage',
    describeField('stream_options.include_usage', 'must not occur more than once'),
  )
}
