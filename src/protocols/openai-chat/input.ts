// Estimates the input of a chat request, and finds the paid services that it uses.

import { jsonText } from '../../base/text/json-text.ts'
import { hasOnly, MediaList } from '../media/media-list.ts'
import { deferringFields } from '../request/checks.ts'
import type { InputSize } from '../request/input-size.ts'
import { inlineBytes, MEDIA_PART_BYTES } from '../request/input-size.ts'
import { isObject } from '../request/json-body.ts'
import type { CheckedFields, Service } from '../request/services.ts'
import {
  findPaidFields,
  findReasoningServices,
  isWebSearch,
  listTools,
  mergeServices,
  removeVersionDate,
  runsAtProvider,
} from '../request/services.ts'
import { estimateTextBytes } from '../usage/text-bytes.ts'
import { requestFields } from './fields.ts'

/** Fields that make the upstream add content which is not in the request. Not every upstream has all of them. */
export const externalInputFields = [
  'web_search_options',
  'search_parameters',
  'enable_search',
  'plugins',
  'tools',
] as const

/** Fields that may refer to content outside the request: a stored cache, or options of a proxy. */
export const opaqueFields = ['extra_body', 'cached_content'] as const

/** Fields that ask for a web search, which is billed. */
const SEARCH_FIELDS: readonly string[] = ['web_search_options', 'search_parameters', 'enable_search']

const { extra_body: _extra, ...known } = requestFields
const REQUEST_FIELDS: CheckedFields = {
  ownChecks: [...externalInputFields, ...deferringFields, 'service_tier', 'parallel_tool_calls'],
  known: new Set(Object.keys(known)),
}
/** Fields of the caller's own tools. Any other field of such a tool may be a paid service. */
const TOOL_FIELDS: CheckedFields = { ownChecks: [], known: new Set(['function', 'custom', 'parameters', 'format']) }

/** The limit of searches in one answer. No request field limits them, and the provider bills each one. */
const SEARCHES_MAX = 10

interface Part {
  readonly type?: unknown
}

type Json = Readonly<Record<string, unknown>>

interface Message {
  readonly content?: unknown
  /** Refers to an earlier audio answer by its id. */
  readonly audio?: unknown
}

export function measureInput(json: Json, bodyBytes: number): InputSize {
  const found = servicesOf(json)
  const searches = asksForSearch(json) || found.some(isSearchService)
  const services = found.length === 0 ? found : mergeServices(found.filter(service => !isSearchService(service)))
  let textOnly = !searches && services.length === 0 && !hasOpaqueField(json)
  let inputBytes = bodyBytes
  const media = new MediaList()
  if (!textOnly) media.drop()
  for (const { content, audio } of json.messages as readonly Message[]) {
    if (audio) {
      textOnly = false
      media.drop()
      inputBytes += MEDIA_PART_BYTES
    }
    if (!Array.isArray(content)) {
      if (isObject(content)) media.drop()
      textOnly &&= !isObject(content)
      continue
    }
    for (const part of content as readonly (Part | null)[]) {
      if (part?.type === 'text' || part?.type === 'refusal') continue
      textOnly = false
      addPart(media, part)
      inputBytes += MEDIA_PART_BYTES - inlineBytes(part)
    }
  }
  if (textOnly) return { textOnly, searchesMax: 0, inputBytes }
  const listed = media.end(json, bodyBytes)
  return {
    textOnly,
    ...(listed && { media: listed }),
    searchesMax: searches ? SEARCHES_MAX : 0,
    inputBytes,
    ...(services.length > 0 && { services }),
    ...((searches || services.some(runsAtProvider)) && { serverTools: true }),
  }
}

const PART_KINDS = { image_url: 'image', video_url: 'video', input_audio: 'audio', file: 'file' } as const
const PART_FIELDS: ReadonlySet<string> = new Set([
  'type',
  'cache_control',
  'prompt_cache_breakpoint',
  ...Object.keys(PART_KINDS),
])
/** The fields inside of a part; of those that name the medium, one may occur. */
const SOURCE_FIELDS = ['url', 'data', 'file_data', 'file_url', 'file_id'] as const
const INNER_FIELDS: ReadonlySet<string> = new Set([
  ...SOURCE_FIELDS,
  'detail',
  'format',
  'filename',
  'fps',
  'image_pixel_limit',
])

function addPart(media: MediaList, part: unknown): void {
  if (!isObject(part) || !hasOnly(part, PART_FIELDS)) return media.drop()
  const { type } = part
  const kind = Object.hasOwn(PART_KINDS, jsonText(type)) ? PART_KINDS[type as keyof typeof PART_KINDS] : undefined
  const others = Object.keys(PART_KINDS).filter(name => name !== type && (part[name] ?? undefined) !== undefined)
  if (kind === undefined || others.length > 0) return media.drop()
  const inner = part[type as string]
  // Some callers send the URL instead of an object with it.
  if (typeof inner === 'string') return media.add({ kind, holder: part, field: type as string })
  if (!isObject(inner) || !hasOnly(inner, INNER_FIELDS)) return media.drop()
  const { detail, fps, filename } = inner
  const [field, ...more] = SOURCE_FIELDS.filter(name => (inner[name] ?? undefined) !== undefined)
  if (field === undefined || more.length > 0) return media.drop()
  if (field === 'file_id') return media.addUnseen(kind, { detail })
  const frames = (fps ?? undefined) === undefined ? {} : { framesPerSecond: fps }
  media.add({ kind, holder: inner, field, detail, ...frames, ...mimeOfFile(filename) })
}

/** A translated request may call a file what its name says. */
export function mimeOfFile(filename: unknown): { readonly mime?: string } {
  if ((filename ?? undefined) === undefined) return {}
  return { mime: typeof filename === 'string' && /\.pdf$/i.test(filename) ? 'application/pdf' : 'unknown' }
}

/** The bytes of the text that a caller predicts, which is a text or a list of parts. */
export function measurePrediction(prediction: unknown): number {
  const content = isObject(prediction) ? prediction.content : undefined
  if (!Array.isArray(content)) return estimateTextBytes(content)
  let bytes = 0
  for (const part of content as readonly unknown[]) if (isObject(part)) bytes += estimateTextBytes(part.text)
  return bytes
}

const isSearchService = ({ name }: Service): boolean => isWebSearch(name)

function asksForSearch(json: Json): boolean {
  for (const field of SEARCH_FIELDS) if (isOn(json[field])) return true
  return false
}

function hasOpaqueField(json: Json): boolean {
  for (const field of opaqueFields) if (json[field]) return true
  return false
}

/** Search options can contain an explicit `off`. */
const isOn = (option: unknown): boolean => Boolean(option) && !(isObject(option) && option.mode === 'off')

/** Functions run at the caller. All other tools run at the provider and add their results to the input. */
function servicesOf(json: Json): readonly Service[] {
  const hasOnlyFields = !(json.tools || json.plugins || json.web_search_options || json.reasoning)
  if (hasOnlyFields) return findPaidFields(json, REQUEST_FIELDS)
  const tools = listTools(json.tools).flatMap(toolServices)
  const plugins = Array.isArray(json.plugins) ? json.plugins : json.plugins ? [json.plugins] : []
  return [
    ...tools,
    ...(plugins as readonly unknown[]).map(pluginService),
    ...findPaidFields(json, REQUEST_FIELDS),
    ...searchServices(json.web_search_options),
    ...findReasoningServices(json),
  ]
}

function toolServices(tool: Json): readonly Service[] {
  const { type, function: inner } = tool
  const isCallerTool =
    type === 'function' || type === 'custom' || ((type ?? undefined) === undefined && isObject(inner))
  if (isCallerTool) return findPaidFields(tool, TOOL_FIELDS)
  if (type === 'namespace') return []
  if (typeof type !== 'string') return [{ name: 'tools' }]
  const namedTool = isObject(inner) && typeof inner.name === 'string' ? `${type}:${inner.name}`.slice(0, 64) : undefined
  return [{ name: namedTool ?? removeVersionDate(type) }]
}

/** Search options that do not change the price. */
const SEARCH_OPTIONS: readonly string[] = ['search_context_size', 'user_location', 'filters']

function searchServices(options: unknown): readonly Service[] {
  const others = isObject(options) ? Object.keys(options).filter(name => !SEARCH_OPTIONS.includes(name)) : []
  return others.map(name => ({ name: `web_search_options.${name}`.slice(0, 64), param: 'web_search_options' }))
}

function pluginService(plugin: unknown): Service {
  const id = isObject(plugin) ? plugin.id : plugin
  const name = typeof id === 'string' && id !== '' ? `plugin:${id}`.slice(0, 64) : 'plugins'
  return { name, param: 'plugins' }
}
