// What a chat request gives the model to read, as far as a bound and an estimate of it need to know.

import { postponingFields } from '../request/checks.ts'
import { isObject } from '../request/json-object.ts'
import type { FieldsRead, Service } from '../request/services.ts'
import {
  allTools,
  distinct,
  isWebSearch,
  paidFields,
  reasoningServices,
  runsAtProvider,
  toolName,
} from '../request/services.ts'
import { requestFields } from './fields.ts'

export interface ChatInput {
  /** All of its input is text in the body. */
  readonly textOnly: boolean
  readonly searchesMax: number
  /** The body's bytes, as if all of it were text. */
  readonly inputBytes: number
  readonly services?: readonly Service[]
  /** The provider runs tools for it. */
  readonly serverTools?: boolean
}

/** Ask the upstream to fetch what is not in the request. Not every upstream knows each of them. */
export const fetchingFields = ['web_search_options', 'search_parameters', 'enable_search', 'plugins', 'tools'] as const

/** May name what lies elsewhere: a kept cache, or whatever a proxy makes of it. */
export const hidingFields = ['extra_body', 'cached_content'] as const

/** Ask for a search, at the price of one. */
const SEARCHING: readonly string[] = ['web_search_options', 'search_parameters', 'enable_search']

const { extra_body: _hides, ...known } = requestFields
const READ: FieldsRead = {
  judged: [...fetchingFields, ...postponingFields, 'service_tier', 'parallel_tool_calls'],
  known: new Set(Object.keys(known)),
}
/** Of the caller's own tools: what else stands beside them may be a service. */
const TOOL_READ: FieldsRead = { judged: [], known: new Set(['function', 'custom', 'parameters', 'format']) }

/** Nobody says how often a model may search in one answer; the provider bills each. */
const SEARCHES_MAX = 10

/** An image or a minute of sound is about a thousand tokens, whatever its bytes; so many bytes of text are as many. */
const PART_BYTES = 4_000

interface Part {
  readonly type?: unknown
}

type Json = Readonly<Record<string, unknown>>

interface Message {
  readonly content?: unknown
  /** An earlier answer that was spoken, by its id. */
  readonly audio?: unknown
}

export function weighInput(json: Json, bodyBytes: number): ChatInput {
  const found = servicesOf(json)
  const searches = SEARCHING.some(field => isOn(json[field])) || found.some(({ name }) => isWebSearch(name))
  const services = distinct(found.filter(({ name }) => !isWebSearch(name)))
  let textOnly = !searches && services.length === 0 && !hidingFields.some(field => Boolean(json[field]))
  let inputBytes = bodyBytes
  for (const { content, audio } of json.messages as readonly Message[]) {
    if (audio) {
      textOnly = false
      inputBytes += PART_BYTES
    }
    if (!Array.isArray(content)) {
      textOnly &&= !isObject(content)
      continue
    }
    for (const part of content as readonly (Part | null)[]) {
      if (part?.type === 'text' || part?.type === 'refusal') continue
      textOnly = false
      inputBytes += PART_BYTES - inlineBytes(part)
    }
  }
  return {
    textOnly,
    searchesMax: searches ? SEARCHES_MAX : 0,
    inputBytes,
    ...(services.length > 0 && { services }),
    ...((searches || services.some(runsAtProvider)) && { serverTools: true }),
  }
}

/** A search may be switched off where it is spoken of. */
const isOn = (wish: unknown): boolean => Boolean(wish) && !(isObject(wish) && wish.mode === 'off')

/** Functions run at the caller's. Whatever else is a tool runs at the provider's, and adds what it finds. */
function servicesOf(json: Json): readonly Service[] {
  const tools = allTools(json.tools).flatMap(toolServices)
  const plugins = Array.isArray(json.plugins) ? json.plugins : json.plugins ? [json.plugins] : []
  return [
    ...tools,
    ...(plugins as readonly unknown[]).map(pluginService),
    ...paidFields(json, READ),
    ...searchServices(json.web_search_options),
    ...reasoningServices(json),
  ]
}

function toolServices(tool: Json): readonly Service[] {
  const { type, function: called } = tool
  const isCallers = type === 'function' || type === 'custom' || ((type ?? undefined) === undefined && isObject(called))
  if (isCallers) return paidFields(tool, TOOL_READ)
  if (type === 'namespace') return []
  if (typeof type !== 'string') return [{ name: 'tools' }]
  const own = isObject(called) && typeof called.name === 'string' ? `${type}:${called.name}`.slice(0, 64) : undefined
  return [{ name: own ?? toolName(type) }]
}

/** Of a search these change what it finds, and not what it costs. */
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

/** The texts of a part, such as the image in its `image_url.url`. */
function inlineBytes(part: unknown, depth = 0): number {
  if (typeof part === 'string') return part.length
  if (!isObject(part) || depth > 2) return 0
  let bytes = 0
  for (const field in part) bytes += inlineBytes(part[field], depth + 1)
  return bytes
}
