// Reads tools, the choice of tools, and the format of the answer.

import type {
  CustomTool,
  FunctionTool,
  OutputFormat,
  SearchLocation,
  SearchTool,
  Tool,
  ToolChoice,
} from '../neutral/conversation.ts'
import { invalid } from '../request/checks.ts'
import { findLostFields } from '../request/fields.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { toolFields } from './fields.ts'
import type { ResponsesReadContext } from './read-parts.ts'
import { requireText } from './read-parts.ts'

const SEARCH = /^web_search(_preview)?(_\d{4}_\d\d_\d\d)?$/

export function readTools(tools: unknown, reading: ResponsesReadContext): readonly Tool[] {
  if (tools === undefined || tools === null) return []
  if (!Array.isArray(tools)) throw invalid('tools', 'must be a list')
  return tools.map((tool: unknown, index) => readTool(tool, `tools[${index}]`, reading))
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
  const domains = isObject(filters) ? filters.allowed_domains : undefined
  const place = readPlace(tool.user_location)
  return {
    kind: 'search',
    ...(Array.isArray(domains) && { domains: domains.filter(domain => typeof domain === 'string') }),
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
  const isSingleTool = type === 'function' || type === 'custom'
  if (isSingleTool) return { mode: 'required', names: [requireText(choice, 'name', 'tool_choice')] }
  if (type !== 'allowed_tools') {
    // A tool of the provider. Other providers do not have it.
    reading.lostFields.add(typeof type === 'string' ? `tool_choice.${type}` : 'tool_choice')
    return undefined
  }
  if (mode !== 'auto' && mode !== 'required') throw invalid('tool_choice.mode', 'must be auto or required')
  if (!Array.isArray(tools)) throw invalid('tool_choice.tools', 'must be a list')
  const names: string[] = []
  for (const tool of tools as readonly unknown[]) {
    if (isObject(tool) && typeof tool.name === 'string') names.push(tool.name)
    else reading.lostFields.add('tool_choice.tools')
  }
  return { mode, names }
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
