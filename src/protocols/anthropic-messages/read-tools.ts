// Reads the tools of a request and how the model may use them.

import type { Conversation, SearchLocation, Tool, ToolChoice } from '../neutral/conversation.ts'
import { invalid, readOptional } from '../request/checks.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import type { LostFields } from './fields.ts'
import { choiceFields, locationFields, searchFields, toolFields } from './fields.ts'
import { readCacheBreakpoint } from './read-messages.ts'

export function readTools(json: Json, unread: LostFields): readonly Tool[] {
  const tools = readOptional(json, 'tools', 'list') ?? []
  return tools.map((tool, index): Tool => {
    const at = `tools[${index}]`
    if (!isObject(tool)) throw invalid(at, 'must be an object')
    const type = tool.type ?? 'custom'
    if (typeof type !== 'string') throw invalid(`${at}.type`, 'must be a text')
    if (type === 'custom') return readFunction(tool, at, unread)
    if (isSearch(type)) return readSearch(tool, at, unread)
    return { kind: 'native', dialect: 'anthropic-messages', what: `tools.${type}`, value: tool }
  })
}

const isSearch = (type: unknown): boolean => typeof type === 'string' && type.startsWith('web_search_')

function readFunction(tool: Json, at: string, unread: LostFields): Tool {
  unread.addLost(tool, toolFields, 'tools')
  const { name, description, input_schema: schema, strict } = tool
  if (typeof name !== 'string' || name === '') throw invalid(`${at}.name`, 'must be a text')
  if (!isObject(schema)) throw invalid(`${at}.input_schema`, 'must be an object')
  const cache = readCacheBreakpoint(tool.cache_control, `${at}.cache_control`, unread)
  return {
    kind: 'function',
    name,
    ...(typeof description === 'string' && { description }),
    schema,
    ...(typeof strict === 'boolean' && { strict }),
    ...(cache !== undefined && { cache }),
  }
}

function readSearch(tool: Json, at: string, unread: LostFields): Tool {
  unread.addLost(tool, searchFields, 'tools.web_search')
  const { allowed_domains: domains, max_uses: uses } = tool
  const place = readPlace(tool.user_location, unread)
  const cache = readCacheBreakpoint(tool.cache_control, `${at}.cache_control`, unread)
  const allowedDomains = Array.isArray(domains) ? domains.filter(domain => typeof domain === 'string') : []
  return {
    kind: 'search',
    ...(allowedDomains.length > 0 && { domains: allowedDomains }),
    ...(Number.isSafeInteger(uses) && { usesMax: uses as number }),
    ...(place !== undefined && { location: place }),
    ...(cache !== undefined && { cache }),
  }
}

function readPlace(location: unknown, unread: LostFields): SearchLocation | undefined {
  if (!isObject(location)) return undefined
  unread.addLost(location, locationFields, 'tools.web_search.user_location')
  const { city, country, region, timezone: zone } = location
  const present = Object.entries({ city, country, region, zone }).filter(([, value]) => typeof value === 'string')
  return present.length === 0 ? undefined : Object.fromEntries(present)
}

export function readToolChoice(json: Json, unread: LostFields): Pick<Conversation, 'toolChoice' | 'parallelCalls'> {
  const choice = readOptional(json, 'tool_choice', 'object')
  if (choice === undefined) return {}
  unread.addLost(choice, choiceFields, 'tool_choice')
  const toolChoice = readChoice(choice, json, unread)
  return {
    ...(toolChoice !== undefined && { toolChoice }),
    ...(choice.disable_parallel_tool_use === true && { parallelCalls: false }),
  }
}

function readChoice({ type, name }: Json, { tools }: Json, unread: LostFields): ToolChoice | undefined {
  switch (type) {
    case 'auto':
    case 'none':
      return { mode: type }
    case 'any':
      return { mode: 'required' }
    case 'tool':
      if (typeof name !== 'string') throw invalid('tool_choice.name', 'must be a text')
      return readNamed(name, Array.isArray(tools) ? tools.filter(isObject) : [], unread)
    default:
      throw invalid('tool_choice.type', 'must be auto, any, tool or none')
  }
}

/** Only in this dialect do tools of the provider have names. A search that is the only tool can be forced without one. */
function readNamed(name: string, tools: readonly Json[], unread: LostFields): ToolChoice | undefined {
  const type = tools.find(tool => tool.name === name)?.type ?? 'custom'
  if (type === 'custom') return { mode: 'required', names: [name] }
  if (isSearch(type) && tools.length === 1) return { mode: 'required' }
  unread.add('tool_choice')
  return undefined
}
