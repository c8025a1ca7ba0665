// Writes tools, the choice of tools, and the format of the answer.

import { findOnlyNames } from '../neutral/allowed-tools.ts'
import { toArgumentsSchema } from '../neutral/arguments-schema.ts'
import type { Conversation, FunctionTool, OutputFormat, SearchTool, Tool, ToolChoice } from '../neutral/conversation.ts'
import { mayBeObject, toObjectSchema } from '../neutral/root-object.ts'
import { writeStrictness } from '../openai-chat/strict-schema.ts'
import type { Json } from '../request/json-type.ts'
import type { ResponsesWriteContext } from './write-messages.ts'

export function writeTools({ tools, toolChoice }: Conversation, writing: ResponsesWriteContext): Json {
  if (tools.length === 0) return {}
  const { flavour, target } = writing
  const allowedNames = flavour.hasAllowedTools ? undefined : findOnlyNames(toolChoice, target.traits)
  const offered =
    allowedNames === undefined ? tools : tools.filter(tool => !isNamed(tool) || allowedNames.has(tool.name))
  const written = offered.flatMap(tool => writeTool(tool, writing) ?? [])
  if (written.length === 0) {
    if (toolChoice?.mode === 'required') target.notes.losses.add('tool_choice')
    return {}
  }
  const choice = toolChoice && writeChoice(toolChoice, tools, writing)
  const uses = offered.flatMap(tool => (tool.kind === 'search' && tool.usesMax !== undefined ? [tool.usesMax] : []))
  const isOnlySearch = offered.every(tool => tool.kind !== 'native')
  if (uses.length > 0 && !isOnlySearch) target.notes.losses.add('tools.search.uses')
  return {
    tools: written,
    ...(choice !== undefined && { tool_choice: choice }),
    // The field limits all tools of the provider. It is exact only if the search is the only one.
    ...(uses.length > 0 && isOnlySearch && { max_tool_calls: Math.min(...uses) }),
  }
}

const isNamed = (tool: Tool): tool is Extract<Tool, { name: string }> =>
  tool.kind === 'function' || tool.kind === 'custom'

function writeTool(tool: Tool, writing: ResponsesWriteContext): Json | undefined {
  const { flavour, names, target } = writing
  const { losses } = target.notes
  if (tool.kind !== 'native' && tool.cache !== undefined) losses.add('cache')
  switch (tool.kind) {
    case 'function':
      return writeFunction(tool, writing)
    case 'search':
      return writeSearch(tool, writing)
    case 'native':
      if (tool.dialect === flavour.name) return tool.value as Json
      losses.add(`tools.${tool.what}`)
      return undefined
    case 'custom': {
      const name = names.write(tool.name)
      const described = tool.description === undefined ? undefined : { description: tool.description }
      if (flavour.hasCustomTools) {
        const format = tool.grammar && { type: 'grammar', ...tool.grammar }
        return { type: 'custom', name, ...described, ...(format && { format }) }
      }
      if (tool.grammar !== undefined) losses.add('tools.custom.format')
      target.notes.wrapped ??= new Set()
      target.notes.wrapped.add(name)
      const schema = { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] }
      return { type: 'function', name, ...described, parameters: schema, strict: false }
    }
  }
}

/** In this dialect a function is strict by default. */
function writeFunction(tool: FunctionTool, writing: ResponsesWriteContext): Json {
  const { names, target } = writing
  const { name, description, strict } = tool
  const { schema, isWeaker } = toArgumentsSchema(tool.schema ?? {})
  if (isWeaker) target.notes.losses.add('tools.schema')
  // A caller that knows OpenAI's rules has followed them in its own schema only.
  const followsStrictRules = writing.followsStrictRules && !isWeaker
  const written = writeStrictness({ schema, strict }, { followsStrictRules, knowsStrict: true })
  if (written.isWeaker) target.notes.losses.add('tools.strict')
  return {
    type: 'function',
    name: names.write(name),
    ...(description !== undefined && { description }),
    parameters: written.schema,
    strict: written.strict ?? false,
  }
}

function writeSearch(tool: SearchTool, { flavour, target }: ResponsesWriteContext): Json {
  const { domains, contextSize, location: place } = tool
  const location = place && { type: 'approximate', city: place.city, country: place.country, region: place.region }
  const locationFields = location && { user_location: { ...location, timezone: place.zone } }
  if (!flavour.hasSearchOptions) {
    if (domains !== undefined) target.notes.losses.add('tools.search.domains')
    if (contextSize !== undefined) target.notes.losses.add('tools.search.context_size')
    return { type: 'web_search', ...locationFields }
  }
  return {
    type: 'web_search',
    ...(domains !== undefined && { filters: { allowed_domains: domains } }),
    ...(contextSize !== undefined && { search_context_size: contextSize }),
    ...locationFields,
  }
}

function writeChoice({ mode, names }: ToolChoice, tools: readonly Tool[], writing: ResponsesWriteContext): unknown {
  const { flavour, target } = writing
  const cannotForce = mode === 'required' && target.traits.forcedTool === false
  if (cannotForce) target.notes.losses.add('tool_choice')
  const written = cannotForce ? 'auto' : mode
  if (names === undefined || names.length === 0 || written === 'none') return written
  const customNames = new Set(tools.flatMap(tool => (tool.kind === 'custom' ? [tool.name] : [])))
  const named = names.map(name => {
    const isCustom = flavour.hasCustomTools && customNames.has(name)
    return { type: isCustom ? 'custom' : 'function', name: writing.names.write(name) }
  })
  if (named.length === 1 && written === 'required') return named[0]
  if (!flavour.hasAllowedTools) return written
  // The names restrict the caller's own tools only.
  const search = tools.some(({ kind }) => kind === 'search') ? [{ type: 'web_search' }] : []
  return { type: 'allowed_tools', mode: written, tools: [...named, ...search] }
}

/**
 * Uses the JSON mode if the model has no support for schemas. OpenAI refuses a schema whose root is no object, as of a
 * list. Undefined: the answer cannot be an object.
 */
export function writeFormat(
  format: OutputFormat,
  { flavour, target, followsStrictRules }: ResponsesWriteContext,
  hasTools: boolean,
): Json | undefined {
  if (format.kind === 'json') return { type: 'json_object' }
  const { traits, notes } = target
  const takesSchema = traits.schema !== false && (traits.schemaWithTools !== false || !hasTools)
  const isChecked = followsStrictRules !== true && flavour.name === 'openai-responses'
  const wanted = isChecked ? toObjectSchema(format.schema) : format.schema
  if (!takesSchema || wanted === undefined) {
    notes.losses.add('response_format.json_schema')
    return mayBeObject(format.schema) ? { type: 'json_object' } : undefined
  }
  const options = { followsStrictRules, knowsStrict: true }
  const { schema, strict = false, isWeaker } = writeStrictness({ ...format, schema: wanted }, options)
  if (isWeaker) notes.losses.add('response_format.schema')
  return {
    type: 'json_schema',
    name: format.name?.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64) || 'answer',
    ...(format.description !== undefined && { description: format.description }),
    schema,
    strict,
  }
}
