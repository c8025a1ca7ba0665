// What calls have in common that are only ever passed on, in one dialect: the model is replaced, and the rest is
// metered as it passes.

import type { UpstreamWords } from '../base/errors.ts'
import { Refusal } from '../base/errors.ts'
import type { Usage } from '../base/money/usage.ts'
import type { FieldSpan } from '../base/text/json-bytes.ts'
import type { FormPart } from '../http/server/multipart.ts'
import { boundaryOf } from '../http/server/multipart.ts'
import type { AnswerReading, Call, CallTarget, FrameReading } from './neutral/call.ts'
import { readError } from './openai-chat/response.ts'
import type { Asked } from './protocol.ts'
import {
  at,
  invalid,
  missing,
  optional,
  otherModels,
  postponingFields,
  refuseFields,
  refusePostponed,
  requireModel,
} from './request/checks.ts'
import { findObject, isObject, parseText, readJsonObject } from './request/json-object.ts'
import type { Json } from './request/json-type.ts'
import { isFile, partsOf } from './request/large-form.ts'
import { isLookedAt, isReferenceName } from './request/references.ts'
import { runsAtProvider, sideServices } from './request/services.ts'
import { spliced } from './request/splice.ts'
import { readEndUser } from './request/tags.ts'

/** A call that reads text and writes none, unless it says otherwise. */
export function sideCall(dialect: string, body: Buffer, { json, fields, model, values = json }: Said): Call {
  const endUser = readEndUser(json.user, json.safety_identifier)
  const serviceClass = optional(json, 'service_tier', 'word')
  const services = sideServices(values)
  return {
    ...{ dialect, body, fields, json, model },
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

/** Fields of every call that billing rests on. */
const COMMON_FIELDS = ['model', 'service_tier', ...postponingFields] as const

interface Said {
  readonly json: Json
  readonly fields: ReadonlyMap<string, FieldSpan>
  readonly model: string
  /** Where an upstream may read more out of the fields than stands in `json`. */
  readonly values?: Json
}

/** `readFields` are those besides the model that routing and billing rest on. */
export function readJsonCall(dialect: string, body: Buffer, readFields: readonly string[]): Call {
  const { json, fields } = readJsonObject(body, [...COMMON_FIELDS, ...otherModels, ...readFields])
  refuseFields(json, otherModels)
  refusePostponed(json, postponingFields)
  return sideCall(dialect, body, { json, fields, model: requireModel(json) })
}

export function writeModel(call: Call, { model }: CallTarget): Uint8Array {
  return spliced(call.body, [{ ...call.fields.get('model')!, text: JSON.stringify(model) }])
}

/** The same in a form, where values are bare. */
export function writeFormModel(call: Call, { model }: CallTarget): Uint8Array {
  return spliced(call.body, [{ ...call.fields.get('model')!, text: model }])
}

/** Each text may be JSON, which is parsed on the thread that serves calls. */
const FORM_TEXT_BYTES_MAX = 1024 * 1024

export interface FormCall {
  readonly call: Call
  /** Those with a file's name, or too long for a field. */
  readonly files: readonly FormPart[]
}

/** A form whose fields are `json`, as texts. `readFields` may stand once each. */
export function readFormCall(dialect: string, body: Buffer, { asked, readFields }: FormReading): FormCall {
  const contentType = asked.header('content-type') ?? ''
  const boundary = /^[\x20-\x7e]{1,4096}$/.test(contentType) ? boundaryOf(contentType) : undefined
  if (boundary === undefined) throw new Refusal('form_invalid', 'no boundary', { hint: 'Its boundary is not usable.' })
  const parts = partsOf(body, boundary)
  if (typeof parts === 'string') throw new Refusal('form_invalid', parts, { hint: `In short: ${parts}.` })
  const json: Record<string, string> = Object.create(null) as Record<string, string>
  const fields = new Map<string, FieldSpan>()
  const files: FormPart[] = []
  const once: readonly string[] = [...COMMON_FIELDS, ...readFields]
  let textBytes = 0
  for (const part of parts) {
    const lower = part.name.toLowerCase()
    if (once.includes(lower) && (lower !== part.name || fields.has(part.name))) {
      throw new Refusal('field_duplicate', lower, { param: lower, hint: `"${lower}" may stand once.` })
    }
    fields.set(part.name, part)
    if (isFile(part)) {
      if (once.includes(part.name) || isNameOnly(part.name)) throw invalid(part.name, 'must be a text')
      files.push(part)
      continue
    }
    textBytes += part.end - part.start
    if (textBytes > FORM_TEXT_BYTES_MAX) {
      const hint = `Its fields may have ${FORM_TEXT_BYTES_MAX} bytes together, without its files.`
      throw new Refusal('form_invalid', 'too much text', { hint })
    }
    const text = body.toString('utf8', part.start, part.end)
    // An upstream may read the first of two where we read the last.
    if (part.name in json && [text, json[part.name]!].some(one => isLookedAt(part.name) || JSON_TEXT.test(one))) {
      throw new Refusal('field_duplicate', 'of a form', { param: part.name, hint: `"${part.name}" may stand once.` })
    }
    json[part.name] = text
  }
  if (json.model === undefined) throw missing('model')
  // Without its provider's name before it, it could become a boundary.
  if (json.model.includes(boundary)) throw invalid('model', 'must not hold the boundary of the form')
  const values = formValues(json)
  return { call: sideCall(dialect, body, { json, fields, model: json.model, values }), files }
}

/** A list or an object in a text, which some servers read as if it were the field's value. */
const JSON_TEXT = /^\s*[[{]/
/** What only a model reads. */
const WORDS: ReadonlySet<string> = new Set(['prompt', 'negative_prompt', 'instructions', 'text', 'user'])

/** The fields of a form as some servers read them: what is JSON in a text as that value. */
export function formValues(fields: Json): Json {
  const values = Object.create(null) as Record<string, unknown>
  for (const [name, text] of Object.entries(fields)) {
    const isJson = typeof text === 'string' && !WORDS.has(name) && JSON_TEXT.test(text)
    values[name] = isJson ? valueOfText(name, text) : text
  }
  return values
}

function valueOfText(name: string, text: string): unknown {
  const found = findObject(Buffer.from(`{"value":${text.trim()}}`))
  if ('json' in found && found.dropped === undefined) return found.json.value
  // Not all servers are as strict as we are.
  const isHarmless = 'code' in found && found.code === 'json_invalid' && !/id|ur[il]|:\/\//i.test(text)
  if (isHarmless) return text
  throw invalid(name, 'must be JSON with no field twice, or must not begin with a bracket')
}

/** Names something that is kept, and never holds it: unlike `audio`, which may be a file. */
const isNameOnly = (name: string): boolean => isReferenceName(name) && /ids?\]*$/i.test(name)

export interface FormReading {
  readonly asked: Asked
  readonly readFields: readonly string[]
}

/** Text of a form that says a number. */
export function formCount(json: Json, field: string, most: number): number | undefined {
  const text = json[field]
  if (text === undefined || text === '') return undefined
  const value = typeof text === 'string' && /^[1-9]\d{0,8}$/.test(text) ? Number(text) : Number.NaN
  if (!(value <= most)) throw invalid(field, `must be an integer from 1 to ${most}`)
  return value
}

/** Text of a form that says yes or no. */
export function formFlag(json: Json, field: string): boolean {
  const text = json[field]
  if (text === undefined || text === '' || text === 'false') return false
  if (text === 'true') return true
  throw new Refusal('field_invalid', field, at(field, 'must be true or false'))
}

/** Undefined for what is no JSON object. */
export function parseAnswer(body: Buffer | string): Json | undefined {
  try {
    const json: unknown = parseText(body.toString('utf8'))
    return isObject(json) ? json : undefined
  } catch {
    return undefined
  }
}

/** An error in the clothes of an answer: under `error`, or with its fields at the top. */
export function saidError(json: Json, status = 502): UpstreamWords | undefined {
  const isBare = typeof json.message === 'string' && json.usage === undefined && json.data === undefined
  const error = json.error ?? (isBare ? json : undefined)
  return error ? readError(error, status) : undefined
}

/** What an answer holds and what it says of usage; undefined for what is none. */
type ReadJson = (json: Json) => Pick<AnswerReading, 'outputBytes' | 'usage'> | undefined

export function answerReader(read: ReadJson): (body: Buffer) => AnswerReading | undefined {
  return body => {
    const json = parseAnswer(body)
    if (json === undefined) return undefined
    const error = saidError(json)
    if (error !== undefined) return { outputBytes: 0, error }
    const reading = read(json)
    return reading?.usage === 'nonsense' ? { ...reading, json } : reading
  }
}

export const garbage: FrameReading = { kind: 'garbage', outputBytes: 0, finishes: 0 }
export const aside: FrameReading = { kind: 'aside', outputBytes: 0, finishes: 0 }
/** The last words of a stream that needs none. */
const over: FrameReading = { kind: 'terminal', outputBytes: 0, finishes: 0 }

/** For calls that are never streamed. */
export const noFrames = (): FrameReading => garbage

/** The events of a stream by their `type`, each with what it holds. */
export function frameReader(read: ReadEvent): ReadFrame {
  return (data, earlier) => {
    if (data === undefined) return aside
    if (data === '[DONE]') return over
    const json = parseAnswer(data)
    if (json === undefined) return garbage
    // What is known may hold an error of its own, as one picture of several that was not drawn.
    const known = typeof json.type === 'string' ? read(json, json.type, earlier) : undefined
    if (known !== undefined) return known.usage === 'nonsense' ? { ...known, json } : known
    const error = saidError(json)
    return error === undefined ? garbage : { ...garbage, kind: 'error', error }
  }
}

/** `earlier` is what its stream has reported before. */
type ReadEvent = (json: Json, type: string, earlier?: Usage) => FrameReading | undefined
type ReadFrame = (data: string | undefined, earlier?: Usage) => FrameReading
