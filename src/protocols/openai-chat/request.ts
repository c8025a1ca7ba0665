// POST /v1/chat/completions: what we read of the body, and what we replace in it for an upstream.

import { Refusal } from '../../base/errors.ts'
import type { FieldSpan } from '../../base/text/json-bytes.ts'
import type { Call, CallTarget, OutputCapField } from '../neutral/call.ts'
import {
  at,
  checkMessages,
  checkTools,
  optional,
  otherModels,
  postponingFields,
  refuseFields,
  refusePostponed,
  requireModel,
} from '../request/checks.ts'
import { fieldSplice } from '../request/field-splice.ts'
import { isObject, readJsonObject, sameButForCase, scanField } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import type { Splice } from '../request/splice.ts'
import { spliced } from '../request/splice.ts'
import { readEndUser, readTags } from '../request/tags.ts'
import type { Flavour } from './flavour.ts'
import { openaiChat } from './flavour.ts'
import { fetchingFields, hidingFields, weighInput } from './input.ts'
import { withoutState } from './reasoning-state.ts'

/** An upstream may heed either; the hold must bound both. */
const CAP_FIELDS = ['max_completion_tokens', 'max_tokens'] as const

/** The fields that routing and billing rest on. A duplicate of one could be read one way here and another there. */
export const readFields: readonly string[] = [
  ...['model', 'messages', 'stream', 'stream_options', 'n', 'service_tier', 'thinking', 'reasoning_effort'],
  ...otherModels,
  ...CAP_FIELDS,
  ...fetchingFields,
  ...hidingFields,
  ...postponingFields,
]

/** What differs between the dialects that are chat at heart. */
export type NativeFlavour = Pick<Flavour, 'dialect' | 'capsShownAlone'>

export const readCall = (body: Buffer): Call => readChatCall(body, openaiChat)

export function readChatCall(body: Buffer, { dialect, capsShownAlone }: NativeFlavour): Call {
  const { json, fields } = readJsonObject(body, readFields)
  const model = requireModel(json)
  refuseFields(json, otherModels)
  refusePostponed(json, postponingFields)
  optional(json, 'tools', 'list')
  checkMessages(json.messages)
  checkTools(json)
  const options = optional(json, 'stream_options', 'object')
  checkOnce(body, fields.get('stream_options'))
  const stream = optional(json, 'stream', 'boolean')
  const choices = optional(json, 'n', 'choices')
  const [whole = 0, shown = 0] = CAP_FIELDS.map(field => optional(json, field, 'count'))
  const cap = capsShownAlone && mayThink(json) ? whole : Math.max(whole, shown)
  const serviceClass = optional(json, 'service_tier', 'word')
  const endUser = readEndUser(json.user, json.safety_identifier)
  const tags = readTags(json.metadata)
  return {
    dialect,
    body,
    fields,
    json,
    bodyBytes: body.byteLength,
    ...weighInput(json, body.byteLength),
    model,
    stream: stream ?? false,
    wantsUsage: options?.include_usage === true,
    choices: choices ?? 1,
    ...(cap > 0 && { outputTokensMax: cap }),
    ...(serviceClass !== undefined && { serviceClass }),
    ...(endUser !== undefined && { endUser }),
    ...(tags !== undefined && { tags }),
  }
}

const mayThink = ({ thinking }: Json): boolean => !isObject(thinking) || thinking.type !== 'disabled'

export const writeCall = (call: Call, target: CallTarget): Uint8Array => writeChatCall(call, target, openaiChat)

export function writeChatCall(call: Call, target: CallTarget, { capsShownAlone }: NativeFlavour): Uint8Array {
  const model = call.fields.get('model')!
  const splices: Splice[] = [{ ...model, text: JSON.stringify(target.model) }]
  if (call.stream && target.askUsage && !call.wantsUsage) splices.push(usageSplice(call))
  if (target.cap !== undefined) {
    const isApart = capsShownAlone && mayThink(call.json)
    splices.push(...(isApart ? wholeCapSplices(call, target.cap) : capSplices(call, target.cap, target.capField)))
  }
  const messages = withoutState(call)
  if (messages !== undefined) target.losses?.add('reasoning_state')
  if (messages !== undefined) splices.push({ ...call.fields.get('messages')!, text: JSON.stringify(messages) })
  return spliced(call.body, splices)
}

/** Only `max_completion_tokens` bounds what is paid for, and it may not stand beside the other. */
function wholeCapSplices(call: Call, tokens: number): readonly Splice[] {
  const [whole, shown] = CAP_FIELDS.map(name => call.fields.get(name))
  const own = optional(call.json, 'max_completion_tokens', 'count')
  if (own !== undefined) return own > tokens ? [{ ...whole!, text: String(tokens) }] : []
  const text = String(tokens)
  const cap = whole === undefined ? fieldSplice(call, CAP_FIELDS[0], text) : { ...whole, text }
  return shown === undefined ? [cap] : [cap, { ...shown, text: 'null' }]
}

/** Into each field in which the caller gave a larger cap; where none is given, into the one that the upstream reads. */
function capSplices(call: Call, tokens: number, field: OutputCapField): readonly Splice[] {
  const own = (name: string): number => {
    const span = call.fields.get(name)
    return span === undefined ? 0 : Number(call.body.toString('latin1', span.start, span.end)) || 0 // it may be null
  }
  const text = String(tokens)
  const given = CAP_FIELDS.filter(name => own(name) > 0)
  if (given.length === 0) {
    const none = call.fields.get(field)
    return [none === undefined ? fieldSplice(call, field, text) : { ...none, text }]
  }
  return given.filter(name => own(name) > tokens).map(name => ({ ...call.fields.get(name)!, text }))
}

export function usageSplice(call: Call): Splice {
  const given = call.fields.get('stream_options')
  if (given === undefined) return fieldSplice(call, 'stream_options', '{"include_usage":true}')
  const options = scanField(call.body, given)
  if (typeof options === 'string') return { ...given, text: '{"include_usage":true}' } // it is null
  const own = options.fields.get('include_usage')
  if (own !== undefined) return { start: given.start + own.start, end: given.start + own.end, text: 'true' }
  const open = given.start + 1
  return { start: open, end: open, text: options.fields.size === 0 ? '"include_usage":true' : '"include_usage":true,' }
}

/** The one option that we read must not stand twice either. */
export function checkOnce(body: Buffer, span: FieldSpan | undefined): void {
  const scan = span === undefined ? 'malformed' : scanField(body, span)
  if (typeof scan === 'string') return
  if (!scan.duplicates.has('include_usage') && sameButForCase(scan.fields, ['include_usage']) === undefined) return
  throw new Refusal('field_duplicate', 'include_usage', at('stream_options.include_usage', 'may stand once'))
}
