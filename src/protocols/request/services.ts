// What a request asks of its provider besides the work of the model: tools that run at the provider's, and fields that
// switch on what may be billed apart. A price must know each of them by its name, or the call is refused: a tool or a
// field that nobody has heard of yet is unknown, and not free.

import type { Unit } from '../../base/money/usage.ts'
import { foldName } from '../../base/text/json-bytes.ts'
import { otherModels } from './checks.ts'
import { isObject } from './json-object.ts'
import type { Json } from './json-type.ts'

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

/** Those of them that vendors also write together with another word: `websearch`, `enableplugins`. */
const RUNNING_PARTS = /search|plugin|browser|retriev|connector|interpreter|grounding|data_?source/i

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
  name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)

export interface FieldsRead {
  /** Those that the dialect judges by itself. */
  readonly judged: readonly string[]
  /** Those that are documented and hold nothing that is billed apart, so that only their names are looked at. */
  readonly known: ReadonlySet<string>
}

/**
 * Fields of a request that may be billed apart. By its name a field counts wherever it stands. In what holds other
 * values and is not known, all that lies in it is looked at, for nobody knows which part of it an upstream reads.
 */
export function paidFields(json: Json, { judged, known }: FieldsRead): readonly Service[] {
  const found: Service[] = []
  for (const name in json) {
    const value = json[name]
    if (isOff(value) || name === 'model' || judged.includes(name)) continue
    const param = name.slice(0, 64)
    if (isPaid(name)) found.push({ name: param, param })
    else if (!known.has(name)) found.push(...paidWithin(value, param))
  }
  return found
}

const isPaid = (name: string): boolean => RUNNING_PARTS.test(name) || wordsOf(name).some(word => PAID_WORDS.has(word))
const runs = (name: string): boolean => RUNNING_PARTS.test(name) || wordsOf(name).some(word => RUNNING_WORDS.has(word))

/** Names of fields and texts that are looked at in one field; one that holds more of them is not known. */
const LOOKED_AT_MAX = 2_000

/** Below the top these count as well: tools in another place than theirs, and other models. */
const PAID_BELOW: ReadonlySet<string> = new Set(['tools', ...otherModels].map(foldName))

/** What the caller says to the model, or what its tokens must be: names and texts in them switch on nothing. */
const CALLERS_WORDS: ReadonlySet<string> = new Set(
  [
    ...['metadata', 'labels', 'tags', 'trace', 'documents', 'rank_fields', 'known_speaker_names', 'stop', 'bad_words'],
    ...['schema', 'json_schema', 'input_schema', 'output_schema', 'response_schema', 'response_json_schema'],
    ...['response_format', 'structured_outputs', 'guided_json', 'guided_choice', 'guided_grammar', 'guided_regex'],
    ...['arguments', 'logit_bias', 'chat_template_kwargs'],
    // What a vector is for: `RETRIEVAL_QUERY`, `search_document`.
    ...['task', 'task_type', 'input_type'],
  ].map(foldName),
)

/** A text that may be the name of something, and no sentence. */
const NAME_TEXT = /^[\w.:/-]{1,64}$/

function paidWithin(value: unknown, param: string): readonly Service[] {
  if (CALLERS_WORDS.has(foldName(param))) return []
  const found: Service[] = []
  const add = (path: string): void => void found.push({ name: path.slice(0, 64), param })
  let left = LOOKED_AT_MAX
  function look(one: unknown, path: string): void {
    if (left < 0) return
    if (typeof one === 'string') lookAtText(one, path)
    else if (Array.isArray(one)) for (const inner of one) look(inner, path)
    else if (isObject(one)) for (const name in one) lookAtField(name, one[name], `${path}.${name}`.slice(0, 64))
  }
  function lookAtField(name: string, inner: unknown, path: string): void {
    left--
    const plain = foldName(name.slice(0, 64))
    if (isOff(inner) || CALLERS_WORDS.has(plain)) return
    if (isPaid(name) || PAID_BELOW.has(plain)) add(path)
    else look(inner, path)
  }
  function lookAtText(text: string, path: string): void {
    left--
    if (NAME_TEXT.test(text) && runs(text)) add(`${path}.${text}`)
  }
  // A text at the top is a choice among those that the field's name allows, and its name says nothing of a service.
  if (typeof value === 'object') look(value, param)
  return left < 0 ? [{ name: param, param }] : found
}

/** Whether the provider runs something for the model by this service, and does not only serve it otherwise. */
export const runsAtProvider = ({ name, param }: Service): boolean =>
  param === undefined || param === 'prompt' || runs(name)

/** More than one try at an answer, or another way to think than the usual one, by the field `reasoning`. */
export function reasoningServices({ reasoning }: Json): readonly Service[] {
  const mode = isObject(reasoning) ? reasoning.mode : undefined
  if (isOff(mode) || mode === 'standard' || mode === 'auto') return []
  return [{ name: `reasoning.mode:${String(mode)}`.slice(0, 64), param: 'reasoning' }]
}

/** What these calls read, draw or speak, and how. */
const SIDE_FIELDS: FieldsRead = {
  judged: ['service_tier', 'tools'],
  known: new Set([
    ...['input', 'prompt', 'negative_prompt', 'query', 'text', 'instructions', 'messages', 'suffix', 'user', 'voice'],
    ...['content', 'contents', 'requests', 'image', 'images', 'mask', 'stream_options'],
  ]),
}

/** Of calls that are not chats: their fields, and tools that do not search the web. */
export function sideServices(json: Json): readonly Service[] {
  const names = allTools(json.tools).map(({ type }) => (typeof type === 'string' ? toolName(type) : 'tools'))
  const tools = names.filter(name => !isWebSearch(name) && name !== 'function').map(name => ({ name }))
  return distinct([...tools, ...paidFields(json, SIDE_FIELDS)])
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
