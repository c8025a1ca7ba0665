// What a request asks of its provider besides the work of the model: tools that run at the provider's, and fields that
// switch on what may be billed apart. A price must know each of them by its name, or the call is refused: a tool or a
// field that nobody has heard of yet is unknown, and not free.

import type { Unit } from '../base/usage.ts'
import type { Json } from './checks.ts'
import { isObject } from './json-object.ts'

export interface Service {
  /** As prices and provider files name it: a tool's type without the date of its version, or the name of a field. */
  readonly name: string
  /** Where it stands in the request; among its tools if absent. */
  readonly param?: string
  /** What is counted of it, where its provider bills it by number. */
  readonly unit?: Unit
  /** How many of these one use of it is; one if absent. */
  readonly each?: number
  /** How many times it may be used in one call. */
  readonly usesMax?: number
  /** A use lasts so long; a call that takes longer is several. */
  readonly sessionSeconds?: number
  /** It is billed by being asked for, whether or not the model uses it. */
  readonly always?: boolean
}

/** How often a model may use a tool in one answer, where nobody says. */
export const USES_MAX = 10
/** The most that is held for where the caller says how often: no answer has more uses of a tool in it. */
export const USES_SAID_MAX = 1_000

const DEPTH_MAX = 4

/** The type of a tool without the date of its version: `code_execution_20250825` is `code_execution`. */
export const toolName = (type: string): string => type.replace(/[_-]20\d\d[_-]?\d\d[_-]?\d\d$/, '').slice(0, 64)

/** Tools that search the web, whatever the version. */
export const isWebSearch = (name: string): boolean => name === 'web_search' || name === 'web_search_preview'

/** A list of tools together with those that stand in one of them, as in a namespace. */
export function allTools(tools: unknown): readonly Json[] {
  const found: Json[] = []
  function collect(list: unknown, depth: number): void {
    if (!Array.isArray(list)) return
    for (const tool of list as readonly unknown[]) {
      const json = isObject(tool) ? tool : {}
      found.push(json)
      if (!Array.isArray(json.tools)) continue
      // What lies deeper is not looked at, and so not known.
      if (depth === DEPTH_MAX) found.push({ type: 'nested_tools' })
      else collect(json.tools, depth + 1)
    }
  }
  collect(tools, 0)
  return found
}

/** Words in the names of fields by which vendors let a provider run something for the model. */
const RUNNING_WORDS: ReadonlySet<string> = new Set([
  ...['search', 'searches', 'web', 'internet', 'online', 'browse', 'browser', 'browsing', 'crawl', 'fetch', 'scrape'],
  ...['ground', 'grounding', 'retrieval', 'retriever', 'rag', 'knowledge', 'datasource', 'datasources', 'connector'],
  ...['connectors', 'plugin', 'plugins', 'addon', 'addons', 'extension', 'extensions', 'mcp', 'agent', 'agents'],
  ...['interpreter', 'sandbox', 'container', 'executor'],
])

/** The same, with those by which it does more in any other way, or serves the model otherwise. */
const PAID_WORDS: ReadonlySet<string> = new Set([
  ...RUNNING_WORDS,
  ...['ocr', 'armor', 'guardrail', 'guardrails'],
  ...['deferred', 'background', 'batch', 'priority', 'fast', 'turbo', 'boost', 'tier', 'speed', 'latency'],
  ...['geo', 'residency', 'region', 'dedicated', 'reserved'],
  // Another one beside the one that is called, as a guard is.
  'model',
])

const OFF: ReadonlySet<unknown> = new Set([
  ...[undefined, null, false, 0, ''],
  ...['false', '0', 'none', 'off', 'disabled'],
])

const isOff = (value: unknown): boolean => OFF.has(value) || (Array.isArray(value) && value.length === 0)

const wordsOf = (name: string): readonly string[] =>
  name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase().split(/[^a-z0-9]+/)

/** Fields of a request that may be billed apart. `read` are those that its dialect judges by itself. */
export function paidFields(json: Json, read: readonly string[]): readonly Service[] {
  const found: Service[] = []
  for (const name in json) {
    if (isOff(json[name]) || name === 'model' || read.includes(name)) continue
    if (!wordsOf(name).some(word => PAID_WORDS.has(word))) continue
    found.push({ name: name.slice(0, 64), param: name.slice(0, 64) })
  }
  return found
}

/** Whether the provider runs something for the model by this service, and does not only serve it otherwise. */
export const runsAtProvider = ({ name, param }: Service): boolean =>
  param === undefined || param === 'prompt' || wordsOf(name).some(word => RUNNING_WORDS.has(word))

/** More than one try at an answer, or another way to think than the usual one, by the field `reasoning`. */
export function reasoningServices({ reasoning }: Json): readonly Service[] {
  const mode = isObject(reasoning) ? reasoning.mode : undefined
  if (isOff(mode) || mode === 'standard' || mode === 'auto') return []
  return [{ name: `reasoning.mode:${String(mode)}`.slice(0, 64), param: 'reasoning' }]
}

/** Of calls that are not chats: their fields, and tools that do not search the web. */
export function sideServices(json: Json): readonly Service[] {
  const names = allTools(json.tools).map(({ type }) => (typeof type === 'string' ? toolName(type) : 'tools'))
  const tools = names.filter(name => !isWebSearch(name) && name !== 'function').map(name => ({ name }))
  return distinct([...tools, ...paidFields(json, ['service_tier'])])
}

/** Each once: of the same name the one of which more may be used. */
export function distinct(services: readonly Service[]): readonly Service[] {
  if (services.length < 2) return services
  const byName = new Map<string, Service>()
  for (const service of services) {
    const other = byName.get(service.name)
    if (other === undefined || (other.each ?? 1) < (service.each ?? 1)) byName.set(service.name, service)
  }
  return [...byName.values()]
}
