// What all passthrough calls share: the gateway replaces the model in the request, and meters the answer while it
// forwards it.

import type { UpstreamError } from '../base/errors.ts'
import { Refusal } from '../base/errors.ts'
import { hintOf } from '../base/hints.ts'
import type { Usage } from '../base/money/usage.ts'
import type { FieldSpan } from '../base/text/json-bytes.ts'
import type { FormPart } from '../http/server/multipart.ts'
import { boundaryOf } from '../http/server/multipart.ts'
import type { AnswerReading, Call, CallTarget, FrameReading } from './neutral/call.ts'
import { readError } from './openai-chat/response.ts'
import type { RequestHead } from './protocol.ts'
import {
  deferringFields,
  describeField,
  invalid,
  missing,
  otherModelFields,
  readOptional,
  refuseDeferred,
  refuseFields,
  requireModel,
} from './request/checks.ts'
import { isObject, parseBody, parseNestedJson, readJsonObject, unwrapError, withoutBom } from './request/json-body.ts'
import type { Json } from './request/json-type.ts'
import { getFormParts, isFile } from './request/large-form.ts'
import { isReferenceName, isSearchedName } from './request/references.ts'
import { findPassthroughServices, runsAtProvider } from './request/services.ts'
import { applySplices } from './request/splices.ts'
import { readEndUser } from './request/tags.ts'

/** Builds a call with the defaults of a call that reads text and generates none. */
export function buildPassthroughCall(
  dialect: string,
  body: Buffer,
  { json, fields, model, values = json }: ReadRequest,
): Call {
  const endUser = readEndUser(json.user, json.safety_identifier)
  const serviceClass = readOptional(json, 'service_tier', 'word')
  const services = findPassthroughServices(values)
  return {
    dialect,
    body,
    fields,
    json,
    model,
    bodyBytes: body.byteLength,
    textOnly: true,
    inputBytes: body.byteLength,
    searchesMax: 0,
    stream: false,
    wantsUsage: true,
    outputTokensMax: 0,
    uncapped: true,
    choices: 1,
    ...(endUser !== undefined && { endUser }),
    ...(serviceClass !== undefined && { serviceClass }),
    ...(services.length > 0 && { services }),
    ...(services.some(runsAtProvider) && { serverTools: true }),
  }
}

/** Fields that routing and billing of every call depend on. */
const COMMON_FIELDS = ['model', 'service_tier', ...deferringFields] as const

interface ReadRequest {
  readonly json: Json
  readonly fields: ReadonlyMap<string, FieldSpan>
  readonly model: string
  /** The values as an upstream may read them, if it may read them otherwise than `json`. */
  readonly values?: Json
}

/** `readFields` are the fields of this dialect that routing and billing depend on. A duplicate of one is refused. */
export function readJsonCall(dialect: string, body: Buffer, readFields: readonly string[]): Call {
  const { json, fields } = readJsonObject(body, [...COMMON_FIELDS, ...otherModelFields, ...readFields])
  refuseFields(json, otherModelFields)
  refuseDeferred(json, deferringFields)
  return buildPassthroughCall(dialect, body, { json, fields, model: requireModel(json) })
}

export function writeModel(call: Call, { model }: CallTarget): Uint8Array {
  return applySplices(call.body, [{ ...call.fields.get('model')!, text: JSON.stringify(model) }])
}

/** Replaces the model in a form, where values have no quotes. */
export function writeFormModel(call: Call, { model }: CallTarget): Uint8Array {
  return applySplices(call.body, [{ ...call.fields.get('model')!, text: model }])
}

/** The limit of all text fields together: each may be JSON, which is parsed on the thread that serves calls. */
const FORM_TEXT_BYTES_MAX = 1024 * 1024

export interface FormCall {
  readonly call: Call
  /** Parts that have a file name, or are too long for a text field. */
  readonly files: readonly FormPart[]
}

/** Reads a form. `json` of the call has its text fields. Each of `readFields` may occur only once. */
export function readFormCall(dialect: string, body: Buffer, { request, readFields }: FormReadOptions): FormCall {
  const contentType = request.header('content-type') ?? ''
  const boundary = /^[\x20-\x7e]{1,4096}$/.test(contentType) ? boundaryOf(contentType) : undefined
  if (boundary === undefined) throw new Refusal('form_invalid', 'no boundary', { hint: hintOf('call_form_boundary') })
  const parts = getFormParts(body, boundary)
  if (typeof parts === 'string')
    throw new Refusal('form_invalid', parts, { hint: hintOf('call_form', { problem: parts }) })
  const json: Record<string, string> = Object.create(null) as Record<string, string>
  const fields = new Map<string, FieldSpan>()
  const files: FormPart[] = []
  const once: readonly string[] = [...COMMON_FIELDS, ...readFields]
  let textBytes = 0
  for (const part of parts) {
    const lower = part.name.toLowerCase()
    if (once.includes(lower) && (lower !== part.name || fields.has(part.name))) {
      throw new Refusal('field_duplicate', lower, { param: lower, hint: hintOf('call_field_once', { name: lower }) })
    }
    fields.set(part.name, part)
    if (isFile(part)) {
      if (once.includes(part.name) || isNameOnly(part.name)) throw invalid(part.name, 'must be a text')
      files.push(part)
      continue
    }
    textBytes += part.end - part.start
    if (textBytes > FORM_TEXT_BYTES_MAX) {
      const hint = hintOf('call_form_text', { max: FORM_TEXT_BYTES_MAX })
      throw new Refusal('form_invalid', 'too much text', { hint })
    }
    const text = body.toString('utf8', part.start, part.end)
    // Of two fields with one name an upstream may read the first, and the gateway reads the last.
    if (part.name in json && [text, json[part.name]!].some(one => isSearchedName(part.name) || JSON_TEXT.test(one))) {
      const hint = hintOf('call_field_once', { name: part.name })
      throw new Refusal('field_duplicate', 'in a form', { param: part.name, hint })
    }
    json[part.name] = text
  }
  if (json.model === undefined) throw missing('model')
  // The model is written into the form without the name of its provider. The rest must not be a boundary.
  if (json.model.includes(boundary)) throw invalid('model', 'must not contain the boundary of the form')
  const values = parseFormValues(json)
  return { call: buildPassthroughCall(dialect, body, { json, fields, model: json.model, values }), files }
}

/** A list or an object in JSON. Some servers parse such a text field. */
const JSON_TEXT = /^\s*[[{]/
/** Fields that only the model reads. */
const PROMPT_FIELDS: ReadonlySet<string> = new Set(['prompt', 'negative_prompt', 'instructions', 'text', 'user'])

/** The fields of a form as some servers read them: texts that are JSON are parsed. */
export function parseFormValues(fields: Json): Json {
  const values = Object.create(null) as Record<string, unknown>
  for (const [name, text] of Object.entries(fields)) {
    const isJson = typeof text === 'string' && !PROMPT_FIELDS.has(name) && JSON_TEXT.test(text)
    values[name] = isJson ? valueOfText(name, text) : text
  }
  return values
}

function valueOfText(name: string, text: string): unknown {
  const found = parseBody(Buffer.from(`{"value":${text.trim()}}`))
  if ('json' in found && found.droppedField === undefined) return found.json.value
  // Some servers accept JSON that the gateway does not. Text that cannot hold an id or a URL does no harm.
  const isHarmless = 'code' in found && found.code === 'json_invalid' && !/id|ur[il]|:\/\//i.test(text)
  if (isHarmless) return text
  throw invalid(name, 'must be JSON without duplicate fields, or must not start with "[" or "{"')
}

/** Whether a field can only hold an id. `audio`, for example, can be an id or a file. */
const isNameOnly = (name: string): boolean => isReferenceName(name) && /ids?\]*$/i.test(name)

export interface FormReadOptions {
  readonly request: RequestHead
  readonly readFields: readonly string[]
}

/** Reads a form field that is a number from 1 to `max`. */
export function readFormCount(json: Json, field: string, max: number): number | undefined {
  const text = json[field]
  if (text === undefined || text === '') return undefined
  const value = typeof text === 'string' && /^[1-9]\d{0,8}$/.test(text) ? Number(text) : Number.NaN
  if (!(value <= max)) throw invalid(field, `must be an integer from 1 to ${max}`)
  return value
}

/** Reads a form field that is `true` or `false`. */
export function readFormFlag(json: Json, field: string): boolean {
  const text = json[field]
  if (text === undefined || text === '' || text === 'false') return false
  if (text === 'true') return true
  throw new Refusal('field_invalid', field, describeField(field, 'must be true or false'))
}

/** The object in a body, or an error that is wrapped in a list; else undefined. */
export function parseAnswerObject(body: Buffer | string): Json | undefined {
  try {
    const json = unwrapError(parseNestedJson(withoutBom(body.toString('utf8'))))
    return isObject(json) ? json : undefined
  } catch {
    return undefined
  }
}

/** Finds an error in an answer with a status of success: under `error`, or with its fields at the top level. */
export function findError(json: Json, status = 502): UpstreamError | undefined {
  const isBare = typeof json.message === 'string' && json.usage === undefined && json.data === undefined
  const error = json.error ?? (isBare ? json : undefined)
  return error ? readError(error, status) : undefined
}

/** Reads the size and usage of an answer. Undefined if `json` is no answer. */
type ReadJson = (json: Json) => Pick<AnswerReading, 'outputBytes' | 'usage' | 'uses'> | undefined

export function buildAnswerReader(read: ReadJson): (body: Buffer) => AnswerReading | undefined {
  return body => {
    const json = parseAnswerObject(body)
    if (json === undefined) return undefined
    const error = findError(json)
    if (error !== undefined) return { outputBytes: 0, error }
    const reading = read(json)
    return reading?.usage === 'nonsense' ? { ...reading, json } : reading
  }
}

export const garbageFrame: FrameReading = { kind: 'garbage', outputBytes: 0, finishes: 0 }
export const ignoredFrame: FrameReading = { kind: 'aside', outputBytes: 0, finishes: 0 }
/** `[DONE]`, which some upstreams send although their dialect does not need it. */
const doneFrame: FrameReading = { kind: 'terminal', outputBytes: 0, finishes: 0 }

/** For dialects without streams. */
export const rejectFrame = (): FrameReading => garbageFrame

/** Returns a reader of events that are distinguished by their `type`. */
export function buildFrameReader(read: ReadEvent): ReadFrame {
  return (data, earlier) => {
    if (data === undefined) return ignoredFrame
    if (data === '[DONE]') return doneFrame
    const json = parseAnswerObject(data)
    if (json === undefined) return garbageFrame
    // A known event may contain an error of its own: one image of several has failed, for example.
    const known = typeof json.type === 'string' ? read(json, json.type, earlier) : undefined
    if (known !== undefined) return known.usage === 'nonsense' ? { ...known, json } : known
    const error = findError(json)
    return error === undefined ? garbageFrame : { ...garbageFrame, kind: 'error', error }
  }
}

/** `earlier` is the usage that the stream has reported so far. */
type ReadEvent = (json: Json, type: string, earlier?: Usage) => FrameReading | undefined
type ReadFrame = (data: string | undefined, earlier?: Usage) => FrameReading
