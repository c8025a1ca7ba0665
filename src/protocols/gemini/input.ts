// What a request gives the model to read, as far as a bound and an estimate of it need to know.
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import type { FieldsRead, Service } from '../request/services.ts'
import { distinct, paidFields, runsAtProvider } from '../request/services.ts'
import { camel, camelFields } from './spelling.ts'
import { configTable, requestTable } from './tables.ts'

export interface GeminiInput {
  /** All of its input is text in the body. */
  readonly textOnly: boolean
  readonly searchesMax: number
  /** The body's bytes, as if all of it were text. */
  readonly inputBytes: number
  readonly services?: readonly Service[]
  /** The provider runs tools for it. */
  readonly serverTools?: boolean
}

/** Nobody says how often a model may search in one answer; the provider bills each. */
const SEARCHES_MAX = 10

/** An image or a minute of sound is about a thousand tokens, whatever its bytes; so many bytes of text are as many. */
const PART_BYTES = 4_000

/** Fields of a part whose texts are all that the model reads of it. */
const textFields = new Set([
  ...['text', 'thought', 'thoughtSignature', 'functionCall', 'executableCode', 'codeExecutionResult'],
  ...['toolCall', 'partMetadata', 'speechMetadata'],
])

/** One or a list of them: where Google takes a list it takes a single one, too. */
export const asList = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? value : value === undefined || value === null ? [] : [value]

/** `json` is in camelCase at its top. */
export function weighInput(json: Json, bodyBytes: number): GeminiInput {
  const tools = asList(json.tools).flatMap(toolNames)
  const config = isObject(json.generationConfig) ? camelFields(json.generationConfig) : {}
  const fields = [...paidFields(json, READ), ...paidFields(config, CONFIG_READ)]
  const services = distinct([
    ...tools.filter(name => !SEARCHES.has(name) && !CALLERS_TOOLS.has(name)).map(name => ({ name })),
    ...fields,
  ])
  const serves = tools.some(name => !CALLERS_TOOLS.has(name))
  const weight = { media: 0, inline: 0 }
  for (const content of [...asList(json.contents), json.systemInstruction]) {
    if (isObject(content)) for (const part of asList(content.parts)) weighPart(part, weight)
  }
  return {
    textOnly: !serves && weight.media === 0 && !json.cachedContent && !json.continuationToken,
    searchesMax: tools.some(name => SEARCHES.has(name)) ? SEARCHES_MAX : 0,
    inputBytes: bodyBytes + weight.media * PART_BYTES - weight.inline,
    ...(services.length > 0 && { services }),
    ...((serves || fields.some(runsAtProvider)) && { serverTools: true }),
  }
}

interface Weight {
  media: number
  inline: number
}

function weighPart(part: unknown, weight: Weight): void {
  if (!isObject(part)) return
  for (const name in part) {
    const field = camel(name)
    if (field === 'functionResponse') weighResponse(part[name], weight)
    else if (!textFields.has(field)) weighMedia(part[name], weight)
  }
}

/** A result is text, but for what may lie beside it. */
function weighResponse(response: unknown, weight: Weight): void {
  if (isObject(response)) for (const part of asList(response.parts)) weighPart(part, weight)
}

function weighMedia(media: unknown, weight: Weight): void {
  weight.media++
  if (isObject(media) && typeof media.data === 'string') weight.inline += media.data.length
}

/** Functions run at the caller's. Whatever else is a tool runs at the provider's, and adds what it finds. */
const CALLERS_TOOLS: ReadonlySet<string> = new Set(['functionDeclarations', 'computerUse'])

/** Tools that search the web at the price of a search. */
const SEARCHES: ReadonlySet<string> = new Set(['googleSearch', 'googleSearchRetrieval'])

const READ: FieldsRead = { judged: ['serviceTier'], known: new Set(Object.keys(requestTable)) }
const CONFIG_READ: FieldsRead = { judged: [], known: new Set(Object.keys(configTable)) }

/** Of an object that is a tool, or several. */
function toolNames(tool: unknown): readonly string[] {
  if (!isObject(tool)) return ['tools']
  const fields = camelFields(tool)
  return Object.keys(fields)
    .filter(name => (fields[name] ?? undefined) !== undefined)
    .map(name => name.slice(0, 64))
}
