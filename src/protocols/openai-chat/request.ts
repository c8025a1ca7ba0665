// POST /v1/chat/completions: what we read of the body, and what we replace in it for an upstream.

import { Refusal } from '../../base/errors.ts'
import type { FieldSpan } from '../../base/json.ts'
import { scanObject } from '../../base/json.ts'
import type { Call, CallTarget, OutputCapField } from '../call.ts'
import { isObject, readJsonObject, sameButForCase, scanBounds } from '../json-object.ts'
import type { Splice } from '../splice.ts'
import { spliced } from '../splice.ts'
import { readEndUser, readTags } from '../tags.ts'
import { fetchingFields, weighInput } from './input.ts'

/** An upstream may heed either; the hold must bound both. */
const CAP_FIELDS = ['max_completion_tokens', 'max_tokens'] as const

/** Name models that an upstream may serve instead: at the price of the one that was asked for, a dearer one. */
const OTHER_MODELS = ['models', 'fallbacks', 'preset'] as const

/** The fields that routing and billing rest on. A duplicate of one could be read one way here and another there. */
const READ_FIELDS: readonly string[] = [
  ...['model', 'messages', 'stream', 'stream_options', 'n', 'service_tier'],
  ...OTHER_MODELS,
  ...CAP_FIELDS,
  ...fetchingFields,
]
const CHOICES_MAX = 128
const OUTPUT_TOKENS_MAX = 1_000_000_000

export function readCall(body: Buffer): Call {
  const { json, fields } = readJsonObject(body, READ_FIELDS)
  const model = json.model
  if (model === undefined || model === null) throw new Refusal('field_missing', 'model', at('model'))
  if (typeof model !== 'string') throw new Refusal('field_invalid', 'model', at('model', 'must be a string'))
  for (const field of OTHER_MODELS) checkAbsent(json, field)
  checkMessages(json.messages)
  const options = optional(json, 'stream_options', object) as Record<string, unknown> | undefined
  checkOnce(body, fields.get('stream_options'))
  const stream = optional(json, 'stream', boolean) as boolean | undefined
  const choices = optional(json, 'n', choiceCount)
  const caps = CAP_FIELDS.map(field => optional(json, field, count) as number | undefined)
  const cap = Math.max(...caps.map(value => value ?? 0))
  const serviceClass = optional(json, 'service_tier', word) as string | undefined
  const endUser = readEndUser(json.user, json.safety_identifier)
  const tags = readTags(json.metadata)
  return {
    dialect: 'openai-chat',
    body,
    fields,
    json,
    bodyBytes: body.byteLength,
    ...weighInput(json, body.byteLength),
    model,
    stream: stream ?? false,
    wantsUsage: options?.include_usage === true,
    choices: (choices as number | undefined) ?? 1,
    ...(cap > 0 && { outputTokensMax: cap }),
    ...(serviceClass !== undefined && { serviceClass }),
    ...(endUser !== undefined && { endUser }),
    ...(tags !== undefined && { tags }),
  }
}

export function writeCall(call: Call, target: CallTarget): Uint8Array {
  const model = call.fields.get('model')!
  const splices: Splice[] = [{ ...model, text: JSON.stringify(target.model) }]
  if (call.stream && target.askUsage && !call.wantsUsage) splices.push(usageSplice(call))
  if (target.cap !== undefined) splices.push(...capSplices(call, target.cap, target.capField))
  return spliced(call.body, splices)
}

/** A new field before all others, of which there is at least one. */
function fieldSplice(call: Call, name: string, value: string): Splice {
  const open = call.body.indexOf(0x7b) + 1
  return { start: open, end: open, text: `"${name}":${value},` }
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

function usageSplice(call: Call): Splice {
  const given = call.fields.get('stream_options')
  if (given === undefined) return fieldSplice(call, 'stream_options', '{"include_usage":true}')
  const options = scanObject(call.body.subarray(given.start, given.end), scanBounds)
  if (typeof options === 'string') return { ...given, text: '{"include_usage":true}' } // it is null
  const own = options.fields.get('include_usage')
  if (own !== undefined) return { start: given.start + own.start, end: given.start + own.end, text: 'true' }
  const open = given.start + 1
  return { start: open, end: open, text: options.fields.size === 0 ? '"include_usage":true' : '"include_usage":true,' }
}

/** The one option that we read must not stand twice either. */
function checkOnce(body: Buffer, span: FieldSpan | undefined): void {
  const scan = span === undefined ? 'malformed' : scanObject(body.subarray(span.start, span.end), scanBounds)
  if (typeof scan === 'string') return
  if (!scan.duplicates.has('include_usage') && sameButForCase(scan.fields, ['include_usage']) === undefined) return
  throw new Refusal('field_duplicate', 'include_usage', at('stream_options.include_usage', 'may stand once'))
}

function checkMessages(messages: unknown): void {
  if (messages === undefined || messages === null) throw new Refusal('field_missing', 'messages', at('messages'))
  if (!Array.isArray(messages) || messages.length === 0) {
    throw new Refusal('field_invalid', 'messages', at('messages', 'must be a list with at least one message'))
  }
  messages.forEach((message: unknown, index) => {
    const ok = isObject(message) && typeof message.role === 'string'
    if (!ok) throw new Refusal('field_invalid', 'message', at(`messages[${index}]`, 'must be an object with a role'))
  })
}

function checkAbsent(json: Readonly<Record<string, unknown>>, field: string): void {
  const value = json[field] ?? undefined
  const isEmpty = value === undefined || (Array.isArray(value) && value.length === 0)
  if (!isEmpty) throw new Refusal('field_invalid', field, at(field, 'is not served: a call is for one model'))
}

function optional(json: Readonly<Record<string, unknown>>, field: string, rule: Rule): unknown {
  const value = json[field] ?? undefined
  if (value !== undefined && !rule.check(value)) throw new Refusal('field_invalid', field, at(field, rule.says))
  return value
}

interface Rule {
  readonly check: (value: unknown) => boolean
  readonly says: string
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) > 0 && (value as number) <= OUTPUT_TOKENS_MAX
}

const object: Rule = { check: isObject, says: 'must be an object' }
const word: Rule = { check: value => typeof value === 'string' && value.length <= 64, says: 'must be a short text' }
const boolean: Rule = { check: value => typeof value === 'boolean', says: 'must be true or false' }
const count: Rule = { check: isCount, says: 'must be a positive integer' }
const choiceCount: Rule = {
  check: value => isCount(value) && (value as number) <= CHOICES_MAX,
  says: `must be an integer from 1 to ${CHOICES_MAX}`,
}

/** Which field is at fault, for dialects that have a place for it, and in words. */
function at(param: string, says = 'is required'): { param: string; hint: string } {
  return { param, hint: `"${param}" ${says}.` }
}
