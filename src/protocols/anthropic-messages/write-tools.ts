// Writes tools for an upstream of this dialect, under names that the upstream accepts.

import { findOnlyNames } from '../neutral/allowed-tools.ts'
import { toArgumentsSchema } from '../neutral/arguments-schema.ts'
import type {
  CacheBreakpoint,
  Conversation,
  CustomTool,
  FunctionTool,
  SearchTool,
  Tool,
} from '../neutral/conversation.ts'
import type { TranslationNotes } from '../neutral/translation-notes.ts'
import { UniqueNames } from '../neutral/unique-names.ts'
import type { ConversationTarget } from '../protocol.ts'
import type { Json } from '../request/json-type.ts'
import { toSupportedSchema } from './schema.ts'

const NAME_CHARS_MAX = 128
const SCHEMA_TOOL_NAME = 'json_answer'
const SEARCH_NAME = 'web_search'

/** This dialect knows five minutes and one hour; longer times of other dialects become one hour. */
export function writeCacheBreakpoint({ ttl }: CacheBreakpoint): Json {
  return ttl === '1h' || ttl === '12h' ? { type: 'ephemeral', ttl: '1h' } : { type: 'ephemeral' }
}

export const writeCacheControl = ({ cache }: { readonly cache?: CacheBreakpoint }): Json =>
  cache === undefined ? {} : { cache_control: writeCacheBreakpoint(cache) }

/** The tool names of one request. A valid name stays as it is; any other gets one replacement for the whole request. */
export class AnthropicToolNames {
  readonly #notes: TranslationNotes
  readonly #written = new Map<string, string>()
  readonly #uniqueNames = new UniqueNames()

  /**
   * Takes all names of the request at once, so that no replacement takes a valid name. The provider refuses two tools of
   * one name, and a search has a name of its own.
   */
  constructor(notes: TranslationNotes, names: readonly string[], hasSearch = false) {
    this.#notes = notes
    if (hasSearch) this.#uniqueNames.add(SEARCH_NAME)
    for (const name of new Set(names))
      if (cleanName(name) === name && !(hasSearch && name === SEARCH_NAME))
        this.#written.set(name, this.#uniqueNames.take(name))
  }

  write(name: string): string {
    const existing = this.#written.get(name)
    if (existing !== undefined) return existing
    const written = this.reserve(cleanName(name))
    if (written !== name) this.#notes.renamed.set(written, name)
    this.#written.set(name, written)
    return written
  }

  /** A name for a tool of the gateway itself. */
  reserve(name: string): string {
    return this.#uniqueNames.take(name)
  }
}

/** Replaces invalid characters, and shortens a long name so that a number can be appended. */
const cleanName = (name: string): string => {
  const clean = name.replace(/[^a-zA-Z0-9_-]/g, '_')
  return clean.length > NAME_CHARS_MAX ? clean.slice(0, NAME_CHARS_MAX - 8) : clean || 'tool'
}

export interface WrittenAnthropicTools {
  readonly tools: readonly Json[]
  readonly choice?: Json
}

interface ToolOptions {
  readonly names: AnthropicToolNames
  /** The schema of the answer, if only a tool call can make the model follow it. */
  readonly schema: Json | undefined
  /** Tools that were called in earlier turns. */
  readonly called: readonly string[]
}

export function writeTools(
  conversation: Conversation,
  target: ConversationTarget,
  options: ToolOptions,
): WrittenAnthropicTools {
  const { names, schema, called } = options
  const { toolChoice } = conversation
  // A tool for the answer is one that the model may call instead, so that no single tool can be forced.
  const traits = schema === undefined ? target.traits : { ...target.traits, forcedTool: false }
  const allowedNames = findOnlyNames(toolChoice, traits)
  const allowed = conversation.tools.filter(
    tool => allowedNames === undefined || !('name' in tool) || allowedNames.has(tool.name),
  )
  const tools = allowed.flatMap(tool => writeTool(tool, target, names))
  if (schema !== undefined) {
    const name = names.reserve(SCHEMA_TOOL_NAME)
    target.notes.schemaTool = name
    const description = 'Give the answer by calling this tool.'
    const forcedChoice = tools.length === 0 || toolChoice?.mode === 'none' ? { type: 'tool', name } : { type: 'any' }
    const choice = { ...forcedChoice, disable_parallel_tool_use: true }
    return { tools: [...tools, { name, description, input_schema: { ...schema, type: 'object' } }], choice }
  }
  if (tools.length === 0) {
    if (toolChoice?.mode === 'required') target.notes.losses.add('tool_choice')
    if (conversation.tools.length === 0 && called.length === 0) return { tools: [] }
    // The provider requires declarations of tools that were called before; the model must not call them again.
    const declarations = called.map(name => ({
      name: names.write(name),
      input_schema: { type: 'object', properties: {} },
    }))
    return declarations.length === 0 ? { tools: [] } : { tools: declarations, choice: { type: 'none' } }
  }
  const choice = writeChoice(conversation, target, names)
  return { tools, ...(choice !== undefined && { choice }) }
}

/** Whether the model is forced to call a tool. */
export function isToolForced({ toolChoice, tools }: Conversation, { traits }: ConversationTarget): boolean {
  return toolChoice?.mode === 'required' && traits.forcedTool !== false && tools.length > 0
}

function writeChoice(
  conversation: Conversation,
  target: ConversationTarget,
  names: AnthropicToolNames,
): Json | undefined {
  const { toolChoice: choice, parallelCalls } = conversation
  const parallelism = parallelCalls === false ? { disable_parallel_tool_use: true } : {}
  if (choice === undefined) return parallelCalls === false ? { type: 'auto', ...parallelism } : undefined
  if (choice.mode === 'none') return { type: 'none' }
  if (choice.mode === 'auto') return { type: 'auto', ...parallelism }
  if (target.traits.forcedTool === false) {
    target.notes.losses.add('tool_choice')
    return { type: 'auto', ...parallelism }
  }
  const [firstName, ...otherNames] = choice.names ?? []
  if (firstName === undefined || otherNames.length > 0) return { type: 'any', ...parallelism }
  return { type: 'tool', name: names.write(firstName), ...parallelism }
}

function writeTool(tool: Tool, target: ConversationTarget, names: AnthropicToolNames): readonly Json[] {
  switch (tool.kind) {
    case 'function':
      return [writeFunction(tool, target, names)]
    case 'custom':
      return [writeCustom(tool, target, names)]
    case 'search':
      return [writeSearch(tool, target)]
    case 'native':
      if (tool.dialect === 'anthropic-messages') return [{ ...(tool.value as Json) }]
      target.notes.losses.add(tool.what)
      return []
  }
}

function writeFunction(tool: FunctionTool, { traits, notes }: ConversationTarget, names: AnthropicToolNames): Json {
  const { name, description } = tool
  const { schema, isWeaker } = toArgumentsSchema(tool.schema ?? {})
  const isRequested = tool.strict === true
  const converted = isRequested && traits.schema !== false ? toSupportedSchema(schema) : undefined
  const strict = converted?.schema.type === 'object'
  if (isRequested && !strict) notes.losses.add('tools.strict')
  if (isWeaker || (strict && converted.isWeaker)) notes.losses.add('tools.schema')
  return {
    name: names.write(name),
    ...(description !== undefined && { description }),
    input_schema: strict ? converted.schema : schema,
    ...(strict && { strict }),
    ...writeCacheControl(tool),
  }
}

/** A custom tool, which takes free text, becomes a function with one argument. */
function writeCustom(tool: CustomTool, { notes }: ConversationTarget, names: AnthropicToolNames): Json {
  const { name, description, grammar } = tool
  const written = names.write(name)
  notes.wrapped ??= new Set()
  notes.wrapped.add(written)
  if (grammar !== undefined) notes.losses.add('tools.grammar')
  const grammarText = grammar && `The input must fit this grammar (${grammar.syntax}):\n${grammar.definition}`
  return {
    name: written,
    description: [description, grammarText].filter(Boolean).join('\n\n'),
    input_schema: { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] },
    ...writeCacheControl(tool),
  }
}

/** Uses the version of the search tool that all models with search support. */
function writeSearch(tool: SearchTool, { notes }: ConversationTarget): Json {
  const { domains, usesMax, location, contextSize } = tool
  if (contextSize !== undefined) notes.losses.add('tools.web_search.context_size')
  const { zone, ...rest } = location ?? {}
  return {
    type: 'web_search_20250305',
    name: SEARCH_NAME,
    ...(domains !== undefined && { allowed_domains: domains }),
    ...(usesMax !== undefined && { max_uses: usesMax }),
    ...(location && { user_location: { type: 'approximate', ...rest, ...(zone !== undefined && { timezone: zone }) } }),
    ...writeCacheControl(tool),
  }
}
