// Finds the paid services that a request uses besides the model: tools that run at the provider, and fields that may be
// billed separately. A call is refused if its price does not name each of its services. An unknown tool or field
// therefore never counts as free.

import type { Unit } from '../../base/money/usage.ts'
import { foldName } from '../../base/text/json-bytes.ts'
import { jsonText } from '../../base/text/json-text.ts'
import { otherModelFields } from './checks.ts'
import { isObject } from './json-body.ts'
import type { Json } from './json-type.ts'

export interface Service {
  /** The name in prices and provider files: the type of a tool without its version date, or the name of a field. */
  readonly name: string
  /** The request field that asks for the service. Absent: it is in `tools`. */
  readonly param?: string
  /** The unit that the provider bills, if it bills uses by number. */
  readonly unit?: Unit
  /** How many units one use counts as. Default: 1. */
  readonly unitsPerUse?: number
  /** How often the service may be used in one call. */
  readonly usesMax?: number
  /** The duration of one use. A longer call counts as several uses. */
  readonly sessionSeconds?: number
  /** Billed if the request asks for it, even if the model does not use it. */
  readonly isBilledUnused?: boolean
}

/** How often a model may use a tool in one answer, if the request does not say. */
export const USES_MAX = 10
/** The upper limit of a number that the request gives. No answer has more uses of a tool. */
const USES_REQUESTED_MAX = 1_000

/**
 * How often a model may use a tool, by the number that the request gives. At least once, because a request that offers a
 * tool must be priced like one: a bound of zero may be ignored by the upstream, or lost in a translation.
 */
export function usesMaxOf(bound: unknown): number {
  if (!Number.isSafeInteger(bound) || (bound as number) < 0) return USES_MAX
  return Math.min(Math.max(1, bound as number), USES_REQUESTED_MAX)
}

const DEPTH_MAX = 4

const splitNames = (names: string): readonly string[] => names.split(' ')

/** Removes the version date from the type of a tool: `code_execution_20250825` becomes `code_execution`. */
export const removeVersionDate = (type: string): string =>
  type.replace(/[_-]20\d\d[_-]?\d\d[_-]?\d\d$/, '').slice(0, 64)

/** Whether a tool is a web search, in any version. */
export const isWebSearch = (name: string): boolean => name === 'web_search' || name === 'web_search_preview'

/** Returns the tools of a list, including tools inside tools (as in a namespace). */
export function listTools(tools: unknown): readonly Json[] {
  const found: Json[] = []
  function collect(list: unknown, depth: number): void {
    if (!Array.isArray(list)) return
    for (const tool of list as readonly unknown[]) {
      const json = isObject(tool) ? tool : {}
      found.push(json)
      if (!Array.isArray(json.tools)) continue
      // Deeper levels are not searched, and so count as an unknown service.
      if (depth === DEPTH_MAX) found.push({ type: 'nested_tools' })
      else collect(json.tools, depth + 1)
    }
  }
  collect(tools, 0)
  return found
}

/** Words in the names of fields that make the provider run something for the model. */
const TOOL_WORDS: ReadonlySet<string> = new Set(
  splitNames(
    'search searches web internet online browse browser browsing crawl fetch scrape ground grounding retrieval ' +
      'retriever rag knowledge datasource datasources connector connectors plugin plugins addon addons extension ' +
      'extensions mcp agent agents interpreter sandbox container executor',
  ),
)

/** Some of these words, which vendors also join with other words: `websearch`, `enableplugins`. */
const TOOL_WORD_PARTS = /search|plugin|browser|retriev|connector|interpreter|grounding|data_?source/i

/** Words in the names of all fields that may be billed: those above, and those that change how the model is served. */
const PAID_WORDS: ReadonlySet<string> = new Set([
  ...TOOL_WORDS,
  ...splitNames('ocr armor guardrail guardrails'),
  ...splitNames('deferred background batch priority fast turbo boost tier speed latency'),
  ...splitNames('geo residency region dedicated reserved'),
  // A second model besides the one of the call, such as a guard model.
  'model',
])

const OFF: ReadonlySet<unknown> = new Set([undefined, null, false, 0, '', 'false', '0', 'none', 'off', 'disabled'])

const isOff = (value: unknown): boolean => OFF.has(value) || (Array.isArray(value) && value.length === 0)

const wordsOf = (name: string): readonly string[] =>
  name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)

export interface CheckedFields {
  /** Fields that the dialect checks itself. */
  readonly ownChecks: readonly string[]
  /** Documented fields whose values contain no paid service. Only their names are checked. */
  readonly known: ReadonlySet<string>
}

/**
 * Finds the fields of a request that may be billed separately. A field with such a name counts at any level. Unknown
 * objects and lists are searched completely, because an upstream may read any part of them.
 */
export function findPaidFields(json: Json, { ownChecks, known }: CheckedFields): readonly Service[] {
  let found: Service[] | undefined
  for (const name in json) {
    const value = json[name]
    if (isOff(value) || name === 'model' || ownChecks.includes(name)) continue
    const param = name.slice(0, 64)
    const isPaid = isPaidName(name)
    if (!isPaid && known.has(name)) continue
    found ??= []
    found.push(...(isPaid ? [{ name: param, param }] : paidInside(value, param)))
  }
  return found ?? noServices
}

const noServices: readonly Service[] = []

const PAID_NAMES_MAX = 1_000
const paidNames = new Map<string, boolean>()

/** Cached, because most requests have the same few fields. */
function isPaidName(name: string): boolean {
  const known = paidNames.get(name)
  if (known !== undefined) return known
  const isPaid = TOOL_WORD_PARTS.test(name) || wordsOf(name).some(word => PAID_WORDS.has(word))
  if (paidNames.size >= PAID_NAMES_MAX) paidNames.clear()
  if (name.length <= 64) paidNames.set(name, isPaid)
  return isPaid
}

const isToolName = (name: string): boolean =>
  TOOL_WORD_PARTS.test(name) || wordsOf(name).some(word => TOOL_WORDS.has(word))

/** How many names and texts of one field are searched. A field that has more counts as an unknown service. */
const NAMES_SEARCHED_MAX = 2_000

/** Names that also count below the top level: tools outside `tools`, and other models. */
const PAID_NESTED: ReadonlySet<string> = new Set(['tools', ...otherModelFields].map(foldName))

/** Fields with the caller's own data, or with a format for the output. Names and texts in them switch nothing on. */
const CALLER_DATA: ReadonlySet<string> = new Set(
  [
    ...splitNames('metadata labels tags trace documents rank_fields known_speaker_names stop bad_words'),
    ...splitNames('schema json_schema input_schema output_schema response_schema response_json_schema response_format'),
    ...splitNames('structured_outputs guided_json guided_choice guided_grammar guided_regex'),
    ...splitNames('arguments logit_bias chat_template_kwargs'),
    // The purpose of an embedding: `RETRIEVAL_QUERY`, `search_document`.
    ...splitNames('task task_type input_type'),
  ].map(foldName),
)

/** A text that may be a name, and no sentence. */
const NAME_TEXT = /^[\w.:/-]{1,64}$/

function paidInside(value: unknown, param: string): readonly Service[] {
  if (CALLER_DATA.has(foldName(param))) return []
  const found: Service[] = []
  const add = (path: string): void => void found.push({ name: path.slice(0, 64), param })
  let left = NAMES_SEARCHED_MAX
  function searchValue(one: unknown, path: string): void {
    if (left < 0) return
    if (typeof one === 'string') searchText(one, path)
    else if (Array.isArray(one)) for (const inner of one) searchValue(inner, path)
    else if (isObject(one)) for (const name in one) searchField(name, one[name], `${path}.${name}`.slice(0, 64))
  }
  function searchField(name: string, inner: unknown, path: string): void {
    left--
    const plain = foldName(name.slice(0, 64))
    if (isOff(inner) || CALLER_DATA.has(plain)) return
    if (isPaidName(name) || PAID_NESTED.has(plain)) add(path)
    else searchValue(inner, path)
  }
  function searchText(text: string, path: string): void {
    left--
    if (NAME_TEXT.test(text) && isToolName(text)) add(`${path}.${text}`)
  }
  // A text at the top level only selects a value of its field, and the name of the field is no service.
  if (typeof value === 'object') searchValue(value, param)
  return left < 0 ? [{ name: param, param }] : found
}

/** Whether the provider runs something for the model. Other services only change how the model is served. */
export const runsAtProvider = ({ name, param }: Service): boolean =>
  param === undefined || param === 'prompt' || isToolName(name)

/** Finds an unusual mode of thinking in the field `reasoning`, such as several tries at an answer. */
export function findReasoningServices({ reasoning }: Json): readonly Service[] {
  const mode = isObject(reasoning) ? reasoning.mode : undefined
  if (isOff(mode) || mode === 'standard' || mode === 'auto') return []
  return [{ name: `reasoning.mode:${jsonText(mode)}`.slice(0, 64), param: 'reasoning' }]
}

/** The input fields of passthrough calls. */
const PASSTHROUGH_FIELDS: CheckedFields = {
  ownChecks: ['service_tier', 'tools'],
  known: new Set(
    splitNames(
      'input prompt negative_prompt query text instructions messages suffix user voice content contents requests ' +
        'image images mask stream_options',
    ),
  ),
}

/** Finds the services of a passthrough call: paid fields, and tools other than a web search. */
export function findPassthroughServices(json: Json): readonly Service[] {
  const names = listTools(json.tools).map(({ type }) => (typeof type === 'string' ? removeVersionDate(type) : 'tools'))
  const tools = names.filter(name => !isWebSearch(name) && name !== 'function').map(name => ({ name }))
  return mergeServices([...tools, ...findPaidFields(json, PASSTHROUGH_FIELDS)])
}

/** Keeps one service of each name: the one with more units per use. */
export function mergeServices(services: readonly Service[]): readonly Service[] {
  if (services.length < 2) return services
  const byName = new Map<string, Service>()
  for (const service of services) {
    const other = byName.get(service.name)
    if (other === undefined || (other.unitsPerUse ?? 1) < (service.unitsPerUse ?? 1)) byName.set(service.name, service)
  }
  return [...byName.values()]
}
