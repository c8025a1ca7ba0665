// Reads the tools of a chat request, including legacy `functions`, and which of them the model may call.

import type { CustomTool, FunctionTool, SearchLocation, SearchTool, Tool, ToolChoice } from '../neutral/conversation.ts'
import { dropRepeatedTools } from '../neutral/repeated-tools.ts'
import { invalid, readOptional } from '../request/checks.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { customFields, functionFields, searchFields, toolFields } from './fields.ts'
import type { ChatReadContext } from './read-parts.ts'
import { addLostFields, readCacheBreakpoint, requireName } from './read-parts.ts'

export interface ChatToolContext extends ChatReadContext {
  readonly dialect: string
}

export function readTools(json: Json, reading: ChatToolContext): readonly Tool[] {
  const tools = (readOptional(json, 'tools', 'list') ?? []).map((tool, index) =>
    readTool(tool, `tools[${index}]`, reading),
  )
  const functions = (readOptional(json, 'functions', 'list') ?? []).map((tool, index) =>
    readFunction(tool, `functions[${index}]`, reading),
  )
  const search = readOptional(json, 'web_search_options', 'object')
  const all = [...tools, ...functions, ...(search === undefined ? [] : [readSearch(search, reading)])]
  return dropRepeatedTools(all, reading.lostFields)
}

function readTool(tool: unknown, at: string, reading: ChatToolContext): Tool {
  if (!isObject(tool)) throw invalid(at, 'must be an object')
  const { type } = tool
  if (type === 'function' || type === 'custom') {
    addLostFields(reading, tool, [toolFields, 'tools'])
    const inner = isObject(tool[type]) ? tool[type] : {}
    const cache = readCacheBreakpoint(tool, reading) ?? readCacheBreakpoint(inner, reading)
    const read = type === 'function' ? readFunction : readCustom
    return { ...read(tool[type], `${at}.${type}`, reading), ...(cache && { cache }) }
  }
  if (typeof type !== 'string') throw invalid(`${at}.type`, 'must be a text')
  return { kind: 'native', dialect: reading.dialect, what: `tools.${type}`, value: tool }
}

function readFunction(tool: unknown, at: string, reading: ChatReadContext): FunctionTool {
  if (!isObject(tool)) throw invalid(at, 'must be an object')
  addLostFields(reading, tool, [functionFields, 'tools.function'])
  const description = text(tool.description, `${at}.description`)
  const { parameters, strict } = tool
  if (parameters !== undefined && parameters !== null && !isObject(parameters)) {
    throw invalid(`${at}.parameters`, 'must be an object')
  }
  return {
    kind: 'function',
    name: requireName(tool.name, `${at}.name`),
    ...(description !== undefined && { description }),
    ...(isObject(parameters) && { schema: parameters }),
    ...(typeof strict === 'boolean' && { strict }),
  }
}

function readCustom(tool: unknown, at: string, reading: ChatReadContext): CustomTool {
  if (!isObject(tool)) throw invalid(at, 'must be an object')
  addLostFields(reading, tool, [customFields, 'tools.custom'])
  const description = text(tool.description, `${at}.description`)
  const inner = isObject(tool.format) ? tool.format.grammar : undefined
  const grammar = isObject(inner) ? inner : undefined
  const { syntax, definition } = grammar ?? {}
  return {
    kind: 'custom',
    name: requireName(tool.name, `${at}.name`),
    ...(description !== undefined && { description }),
    ...(typeof syntax === 'string' && typeof definition === 'string' && { grammar: { syntax, definition } }),
  }
}

function text(value: unknown, at: string): string | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'string') throw invalid(at, 'must be a text')
  return value
}

const contextSizes = ['low', 'medium', 'high'] as const

function readSearch(search: Json, reading: ChatReadContext): SearchTool {
  addLostFields(reading, search, [searchFields, 'web_search_options'])
  const contextSize = contextSizes.find(size => size === search.search_context_size)
  const location = isObject(search.user_location) ? search.user_location.approximate : undefined
  const place = isObject(location) ? readPlace(location) : undefined
  return { kind: 'search', ...(contextSize && { contextSize }), ...(place && { location: place }) }
}

const readPlace = ({ city, country, region, timezone }: Json): SearchLocation => ({
  ...(typeof city === 'string' && { city }),
  ...(typeof country === 'string' && { country }),
  ...(typeof region === 'string' && { region }),
  ...(typeof timezone === 'string' && { zone: timezone }),
})

export function readToolChoice(json: Json): ToolChoice | undefined {
  const choice = json.tool_choice ?? undefined
  const legacy = json.function_call ?? undefined
  if (choice === undefined && legacy === undefined) return undefined
  if (choice === undefined) return readLegacyChoice(legacy)
  if (choice === 'auto' || choice === 'none' || choice === 'required') return { mode: choice }
  if (!isObject(choice)) throw invalid('tool_choice', 'must be "auto", "none", "required" or an object')
  if (choice.type === 'allowed_tools') return readAllowed(choice.allowed_tools)
  return { mode: 'required', names: [readNamed(choice, 'tool_choice')] }
}

function readLegacyChoice(choice: unknown): ToolChoice {
  if (choice === 'auto' || choice === 'none') return { mode: choice }
  if (!isObject(choice)) throw invalid('function_call', 'must be "auto", "none" or an object')
  return { mode: 'required', names: [requireName(choice.name, 'function_call.name')] }
}

function readAllowed(allowed: unknown): ToolChoice {
  const at = 'tool_choice.allowed_tools'
  if (!isObject(allowed) || !Array.isArray(allowed.tools)) throw invalid(at, 'must hold a list of tools')
  const { mode } = allowed
  if (mode !== 'auto' && mode !== 'required') throw invalid(`${at}.mode`, 'must be "auto" or "required"')
  return { mode, names: allowed.tools.map((tool: unknown, index) => readNamed(tool, `${at}.tools[${index}]`)) }
}

/** `{type, function: {name}}` or `{type, custom: {name}}`. */
function readNamed(tool: unknown, at: string): string {
  const inner = isObject(tool) ? (tool.type === 'custom' ? tool.custom : tool.function) : undefined
  if (!isObject(inner)) throw invalid(at, 'must name a tool')
  return requireName(inner.name, `${at}.name`)
}
