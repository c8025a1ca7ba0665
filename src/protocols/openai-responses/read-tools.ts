// Reads tools, the choice of tools, and the format of the answer.

import { jsonText } from '../../base/text/json-text.ts'
import type {
  CustomTool,
  FunctionTool,
  OutputFormat,
  SearchLocation,
  SearchTool,
  Tool,
  ToolChoice,
} from '../neutral/conversation.ts'
import { dropRepeatedTools } from '../neutral/repeated-tools.ts'
import { invalid, requireText } from '../request/checks.ts'
import { findLostFields } from '../request/fields.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { namespaceFields, toolFields } from './fields.ts'
import { isOffered, NAMESPACE } from './namespaces.ts'
import type { ResponsesReadContext } from './read-parts.ts'

const SEARCH = /^web_search(_preview)?(_\d{4}_\d\d_\d\d)?$/
const isSearch = (tool: unknown): boolean => isObject(tool) && typeof tool.type === 'string' && SEARCH.test(tool.type)

export function readTools({ tools, tool_choice: choice }: Json, reading: ResponsesReadContext): readonly Tool[] {
  if (tools === undefined || tools === null) return []
  if (!Array.isArray(tools)) throw invalid('tools', 'must be a list')
  const allowsSearch = !isObject(choice) || !Array.isArray(choice.tools) || choice.tools.some(isSearch)
  const read = tools.flatMap((tool: unknown, index) => {
    const at = `tools[${index}]`
    if (isSearch(tool) && !allowsSearch) return []
    return isObject(tool) && tool.type === NAMESPACE ? readNamespace(tool, at, reading) : [readTool(tool, at, reading)]
  })
  return dropRepeatedTools(read, reading.lostFields)
}

/** No other dialect has namespaces, so their tools get names of their own. */
function readNamespace(group: Json, at: string, reading: ResponsesReadContext): readonly Tool[] {
  for (const path of findLostFields(group, namespaceFields, 'tools.namespace')) reading.lostFields.add(path)
  const namespace = requireText(group, 'name', at)
  if (!Array.isArray(group.tools)) throw invalid(`${at}.tools`, 'must be a list')
  const tools = group.tools.flatMap((tool: unknown, index): readonly NamedTool[] => {
    const memberAt = `${at}.tools[${index}]`
    if (!isObject(tool) || typeof tool.type !== 'string') throw invalid(memberAt, 'must be an object with a type')
    if (!isOffered(tool)) {
      const isDeferred = tool.type === 'function' || tool.type === 'custom'
      reading.lostFields.add(`tools.namespace.${isDeferred ? 'defer_loading' : tool.type}`)
      return []
    }
    const read = readTool(tool, memberAt, reading) as NamedTool
    return [{ ...read, name: reading.names.write({ namespace, name: read.name }) }]
  })
  return withGroupDescription(tools, group, reading)
}

type NamedTool = FunctionTool | CustomTool

/** OpenAI's limit for the description of a function. */
const DESCRIPTION_CHARS_MAX = 1024

/** The first tool describes the namespace. With each tool, the request would be much longer and tell no more. */
function withGroupDescription(
  tools: readonly NamedTool[],
  { name, description }: Json,
  { lostFields }: ResponsesReadContext,
): readonly NamedTool[] {
  const [first, ...rest] = tools
  if (first === undefined || typeof description !== 'string' || description === '') return tools
  const about = `All tools of ${jsonText(name)}: ${description}`
  const joined = first.description ? `${first.description}\n\n${about}` : about
  if (joined.length <= DESCRIPTION_CHARS_MAX) return [{ ...first, description: joined }, ...rest]
  lostFields.add('tools.namespace.description')
  return tools
}

function readTool(tool: unknown, at: string, reading: ResponsesReadContext): Tool {
  if (!isObject(tool) || typeof tool.type !== 'string') throw invalid(at, 'must be an object with a type')
  const kind = SEARCH.test(tool.type) ? 'search' : tool.type
  const table = Object.hasOwn(toolFields, kind) ? toolFields[kind] : undefined
  if (table === undefined) return { kind: 'native', dialect: reading.flavour.name, what: tool.type, value: tool }
  for (const path of findLostFields(tool, table, `tools.${kind}`)) reading.lostFields.add(path)
  if (kind === 'search') return readSearch(tool, reading)
  return kind === 'function' ? readFunction(tool, at) : readCustom(tool, at)
}

function readFunction(tool: Json, at: string): FunctionTool {
  const { parameters, strict } = tool
  const schema = parameters ?? undefined
  if (schema !== undefined && !isObject(schema)) throw invalid(`${at}.parameters`, 'must be a JSON schema')
  return {
    kind: 'function',
    name: requireText(tool, 'name', at),
    ...described(tool),
    ...(schema !== undefined && { schema }),
    ...(typeof strict === 'boolean' && { strict }),
  }
}

const described = ({ description }: Json): { description?: string } =>
  typeof description === 'string' ? { description } : {}

function readCustom(tool: Json, at: string): CustomTool {
  const { format } = tool
  const isGrammar = isObject(format) && format.type === 'grammar'
  const grammar = isGrammar && {
    syntax: requireText(format, 'syntax', `${at}.format`),
    definition: requireText(format, 'definition', `${at}.format`),
  }
  return { kind: 'custom', name: requireText(tool, 'name', at), ...described(tool), ...(grammar && { grammar }) }
}

const sizes: readonly unknown[] = ['low', 'medium', 'high']

function readSearch(tool: Json, reading: ResponsesReadContext): SearchTool {
  const { filters, search_context_size: size } = tool
  if (isObject(filters)) {
    for (const path of findLostFields(filters, { allowed_domains: 'read' }, 'tools.search'))
      reading.lostFields.add(path)
  }
  const listed = isObject(filters) && Array.isArray(filters.allowed_domains) ? filters.allowed_domains : []
  const domains = listed.filter(domain => typeof domain === 'string')
  const place = readPlace(tool.user_location)
  return {
    kind: 'search',
    ...(domains.length > 0 && { domains }),
    ...(sizes.includes(size) && { contextSize: size as 'low' }),
    ...(place !== undefined && { location: place }),
  }
}

function readPlace(location: unknown): SearchLocation | undefined {
  if (!isObject(location)) return undefined
  const { city, country, region, timezone: zone } = location
  const texts = Object.entries({ city, country, region, zone }).filter(([, value]) => typeof value === 'string')
  return Object.fromEntries(texts) as SearchLocation
}

const modes: readonly unknown[] = ['auto', 'none', 'required']

export function readToolChoice(choice: unknown, reading: ResponsesReadContext): ToolChoice | undefined {
  if (choice === undefined || choice === null) return undefined
  if (modes.includes(choice)) return { mode: choice as 'auto' }
  if (!isObject(choice)) throw invalid('tool_choice', 'must be auto, none, required or an object')
  const { type, mode, tools } = choice
  if (type === 'function' || type === 'custom' || type === NAMESPACE) {
    requireText(choice, 'name', 'tool_choice')
    const names = readChosen([choice], 'tool_choice', reading)
    return names.length > 0 ? { mode: 'required', names } : undefined
  }
  if (type !== 'allowed_tools') {
    // A tool of the provider. Other providers do not have it.
    reading.lostFields.add(typeof type === 'string' ? `tool_choice.${type}` : 'tool_choice')
    return undefined
  }
  if (mode !== 'auto' && mode !== 'required') throw invalid('tool_choice.mode', 'must be auto or required')
  if (!Array.isArray(tools)) throw invalid('tool_choice.tools', 'must be a list')
  return { mode, names: readChosen(tools, 'tool_choice.tools', reading) }
}

/** Reads the names of the chosen tools. A namespace, or a name that several namespaces have, means several tools. */
function readChosen(
  tools: readonly unknown[],
  at: string,
  { names, lostFields }: ResponsesReadContext,
): readonly string[] {
  const chosen = new Set<string>()
  // A repetition is skipped, so that the work does not grow with the repetitions of a large namespace.
  const seen = new Set<string>()
  for (const tool of tools) {
    // Names restrict the caller's own tools only.
    if (isSearch(tool)) continue
    if (!isObject(tool) || typeof tool.name !== 'string') {
      lostFields.add(at)
      continue
    }
    const { name, namespace = null } = tool
    const isGroup = tool.type === NAMESPACE
    const key = JSON.stringify([isGroup, namespace, name])
    if (seen.has(key)) continue
    seen.add(key)
    const found = isGroup ? names.namesIn(name) : namespace === null ? names.namesLike(name) : [names.read(tool, at)]
    if (found.length === 0) lostFields.add(at)
    for (const each of found) chosen.add(each)
  }
  return [...chosen]
}

const formatFields = { type: 'read', name: 'read', description: 'read', schema: 'read', strict: 'read' } as const

export function readFormat(format: unknown, { lostFields }: ResponsesReadContext): OutputFormat | undefined {
  if (format === undefined || format === null) return undefined
  if (!isObject(format)) throw invalid('text.format', 'must be an object')
  for (const path of findLostFields(format, formatFields, 'text.format')) lostFields.add(path)
  const { type, name, schema, strict } = format
  if (type === 'text') return undefined
  if (type === 'json_object') return { kind: 'json' }
  if (type !== 'json_schema') throw invalid('text.format.type', 'must be text, json_object or json_schema')
  if (!isObject(schema)) throw invalid('text.format.schema', 'must be a JSON schema')
  return {
    kind: 'schema',
    schema,
    ...(typeof name === 'string' && { name }),
    ...described(format),
    ...(typeof strict === 'boolean' && { strict }),
  }
}
