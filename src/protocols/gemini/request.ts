// POST /v1beta/models/…:generateContent and :streamGenerateContent. Reads the call from path and body, and replaces
// the few values in the body that an upstream must see differently.

import { Refusal } from '../../base/errors.ts'
import type { Call, CallTarget } from '../neutral/call.ts'
import { PACKED_PREFIX } from '../neutral/reasoning-state.ts'
import type { RequestHead } from '../protocol.ts'
import { replaceChanged } from '../request/changed-field.ts'
import { invalid, missing, readOptional, refuseFields } from '../request/checks.ts'
import { insertField } from '../request/field-splice.ts'
import { isObject, readJsonObject, scanField } from '../request/json-body.ts'
import type { Splice } from '../request/splices.ts'
import { applySplices } from '../request/splices.ts'
import { readTags } from '../request/tags.ts'
import type { FieldSpans } from './field-names.ts'
import { findFieldSpans, toCamelCaseFields } from './field-names.ts'
import { asList, measureInput } from './input.ts'
import { removePackedState } from './packed-state.ts'
import type { GeminiMethod } from './path.ts'
import { readPath } from './path.ts'

/**
 * Fields that routing and billing depend on. They may occur once only: of two, the gateway might read one and the
 * upstream the other.
 */
export const uniqueFields = [
  'model',
  'contents',
  'systemInstruction',
  'tools',
  'generationConfig',
  'serviceTier',
  'cachedContent',
  'continuationToken',
]
export const uniqueConfigFields = ['candidateCount', 'maxOutputTokens']

/** With these fields another model than the one in the path would answer, at the price of the model in the path. */
const MODEL_CHOICE_FIELDS = ['routingConfig', 'modelConfig', 'modelSelectionConfig'] as const

const GENERATE_METHODS: readonly GeminiMethod[] = ['generateContent', 'streamGenerateContent']

export function readCall(body: Buffer, request: RequestHead): Call {
  const { model, method: verb } = requirePath(request, GENERATE_METHODS)
  const stream = verb === 'streamGenerateContent'
  const isArray = stream && (request.query('alt') ?? request.query('$alt')) !== 'sse'
  const call = { ...readBody(body), model, stream }
  if (isArray) return { ...call, framing: 'array' }
  return stream && failsOnComments(request) ? { ...call, framing: 'bare' } : call
}

/**
 * Most of Google's SDKs fail on a stream that contains a comment: the deprecated SDKs, the Go SDKs, and the JavaScript
 * SDK before 1.34, which Gemini CLI uses. Only the JavaScript SDK from 1.34 on is known to skip comments. A client that
 * names no SDK is taken to have a complete reader of server-sent events.
 */
function failsOnComments(request: RequestHead): boolean {
  const client = request.header('x-goog-api-client')
  if (client === undefined) return false
  const [, major = 0, minor = 0] = /\bgoogle-genai-sdk\/(\d+)\.(\d+)\S* gl-node\//.exec(client)?.map(Number) ?? []
  return major < 1 || (major === 1 && minor < 34)
}

/** Reads model and method from the path. Throws a Refusal if the method is not among `allowed`. */
export function requirePath(
  request: RequestHead,
  allowed: readonly GeminiMethod[],
): { readonly model: string; readonly method: GeminiMethod } {
  const path = readPath(request.path)
  if (path === undefined || !allowed.includes(path.method))
    throw new Refusal('path_unknown', 'no such method of a model')
  return path
}

/** Reads the body of a call; model and method are in the path. */
export function readBody(body: Buffer): Omit<Call, 'model' | 'stream'> {
  const { json, fields } = readJsonObject(body, uniqueFields)
  const spans = findFieldSpans(fields, uniqueFields)
  const own = toCamelCaseFields(json)
  checkContents(own.contents)
  asList(own.tools).forEach((tool, index) => {
    if (!isObject(tool)) throw invalid(`tools[${index}]`, 'must be an object')
  })
  const config = toCamelCaseFields(readOptional(own, 'generationConfig', 'object') ?? {}, 'generationConfig')
  refuseFields(own, MODEL_CHOICE_FIELDS)
  refuseFields(config, MODEL_CHOICE_FIELDS, 'generationConfig')
  checkConfigOnce(body, spans)
  const choices = readOptional(config, 'candidateCount', 'choices')
  const cap = readOptional(config, 'maxOutputTokens', 'count')
  const serviceClass = readOptional(own, 'serviceTier', 'word')
  const tags = readTags(own.labels)
  return {
    dialect: 'gemini',
    body,
    fields,
    json,
    bodyBytes: body.byteLength,
    ...measureInput(own, body.byteLength, json),
    wantsUsage: true,
    choices: choices ?? 1,
    ...(cap !== undefined && { outputTokensMax: cap }),
    ...(serviceClass !== undefined && { serviceClass }),
    ...(tags !== undefined && { tags }),
  }
}

function checkContents(contents: unknown): void {
  if (contents === undefined || contents === null) throw missing('contents')
  const list = asList(contents)
  if (list.length === 0) throw invalid('contents', 'must be a list with at least one content')
  list.forEach((content, index) => {
    if (!isObject(content)) throw invalid(`contents[${index}]`, 'must be an object with parts')
  })
}

/** Refuses fields of `generationConfig` that billing depends on if they are there in another spelling, too. */
function checkConfigOnce(body: Buffer, { generationConfig: span }: FieldSpans): void {
  const scan = span === undefined ? 'malformed' : scanField(body, span)
  if (typeof scan === 'string') return
  findFieldSpans(scan.fields, uniqueConfigFields, 'generationConfig')
}

/**
 * The caller's bytes. Replaced are only a model name in the body, a cap that the gateway imposes, and reasoning state
 * that Google did not make.
 */
export function writeCall(call: Call, target: CallTarget): Uint8Array {
  const spans = findFieldSpans(call.fields, ['model', 'contents', 'generationConfig'])
  const splices: Splice[] = []
  if (spans.model !== undefined) splices.push({ ...spans.model, text: JSON.stringify(`models/${target.model}`) })
  if (target.cap !== undefined) splices.push(...capSplices(call, spans, target.cap))
  const { contents } = call.json
  const cleaned = call.body.includes(PACKED_PREFIX) ? removePackedState(contents, target) : undefined
  if (cleaned !== undefined) splices.push(replaceChanged(call.body, spans.contents!, contents, cleaned))
  return splices.length === 0 ? call.body : applySplices(call.body, splices)
}

function capSplices(call: Call, { generationConfig: given }: FieldSpans, cap: number): readonly Splice[] {
  if (call.outputTokensMax !== undefined && call.outputTokensMax <= cap) return []
  const text = `"maxOutputTokens":${cap}`
  if (given === undefined) return [insertField(call, 'generationConfig', `{${text}}`)]
  const scan = scanField(call.body, given)
  if (typeof scan === 'string') return [{ ...given, text: `{${text}}` }] // generationConfig is null
  const own = findFieldSpans(scan.fields, uniqueConfigFields).maxOutputTokens
  if (own !== undefined) return [{ start: given.start + own.start, end: given.start + own.end, text: String(cap) }]
  const open = given.start + 1
  return [{ start: open, end: open, text: scan.fields.size === 0 ? text : `${text},` }]
}
