// Writes the tools of a neutral conversation, and which of them the model may call.

import { findOnlyNames } from '../neutral/allowed-tools.ts'
import { toArgumentsSchema } from '../neutral/arguments-schema.ts'
import type { Conversation, CustomTool, FunctionTool, SearchTool, Tool, ToolChoice } from '../neutral/conversation.ts'
import type { ChatCallIds } from './call-ids.ts'
import type { SentSchema, WantedSchema } from './strict-schema.ts'
import { writeStrictness } from './strict-schema.ts'
import type { ChatToolNames } from './tool-names.ts'
import type { ChatWriteContext } from './write-parts.ts'
import { acceptsField } from './write-parts.ts'

export interface WrittenChatTools {
  readonly tools?: readonly object[]
  readonly tool_choice?: unknown
  readonly web_search_options?: object
}

/** If several tools are allowed, the others are left out: not every upstream has lists of allowed tools. */
export function writeTools(
  tools: readonly Tool[],
  choice: ToolChoice | undefined,
  writing: ChatToolWriteContext,
): WrittenChatTools {
  const allowed = findOnlyNames(choice, writing.target.traits)
  const offered = tools.filter(tool => allowed === undefined || !('name' in tool) || allowed.has(tool.name))
  const written = offered.flatMap(tool => writeTool(tool, writing))
  const search = tools.find(tool => tool.kind === 'search')
  return {
    ...(written.length > 0 && { tools: written, ...writeChoice(choice, offered, writing) }),
    ...(search !== undefined && writeSearch(search, writing)),
  }
}

export interface ChatToolWriteContext extends ChatWriteContext {
  readonly names: ChatToolNames
  readonly ids: ChatCallIds
  readonly followsStrictRules: Conversation['followsStrictRules']
}

/** The schema of a function or of the answer, as strict as the upstream can be asked to be. */
export function writeSchema(wanted: WantedSchema, writing: ChatToolWriteContext): SentSchema {
  const { followsStrictRules } = writing
  return writeStrictness(wanted, { followsStrictRules, knowsStrict: acceptsField(writing, 'strict') })
}

function writeTool(tool: Tool, writing: ChatToolWriteContext): object[] {
  const { flavour, target } = writing
  // Chat has cache breakpoints only on parts of messages, which come after the tools.
  if (tool.kind !== 'native' && tool.cache !== undefined) target.notes.losses.add('cache_control')
  switch (tool.kind) {
    case 'function':
      return [{ type: 'function', function: writeFunction(tool, writing) }]
    case 'custom':
      return [acceptsField(writing, 'custom_tools') ? writeCustom(tool, writing) : wrapCustom(tool, writing)]
    case 'search':
      return []
    case 'native':
      if (tool.dialect === flavour.dialect) return [tool.value as object]
      target.notes.losses.add(tool.what)
      return []
  }
}

function writeFunction({ name, description, schema, strict }: FunctionTool, writing: ChatToolWriteContext): object {
  const definition = { name: writing.names.write(name), description }
  if (schema === undefined) return { ...definition, strict }
  const { losses } = writing.target.notes
  const ofArguments = toArgumentsSchema(schema)
  if (ofArguments.isWeaker) losses.add('tools.schema')
  // A caller that knows OpenAI's rules has followed them in its own schema only.
  const followsStrictRules = writing.followsStrictRules && !ofArguments.isWeaker
  const written = writeSchema({ schema: ofArguments.schema, strict }, { ...writing, followsStrictRules })
  if (written.isWeaker) losses.add('tools.strict')
  return { ...definition, parameters: written.schema, strict: written.strict }
}

function writeCustom({ name, description, grammar }: CustomTool, writing: ChatToolWriteContext): object {
  const format = grammar === undefined ? undefined : { type: 'grammar', grammar }
  return { type: 'custom', custom: { name: writing.names.write(name), description, format } }
}

/** Writes a custom tool as a function with one text argument. The reader of the answer converts its calls back. */
function wrapCustom({ name, description, grammar }: CustomTool, writing: ChatToolWriteContext): object {
  const written = writing.names.write(name)
  const { notes } = writing.target
  ;(notes.wrapped ??= new Set()).add(written)
  if (grammar !== undefined) notes.losses.add('tools.custom.grammar')
  const parameters = { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] }
  return { type: 'function', function: { name: written, description, parameters } }
}

function writeChoice(choice: ToolChoice | undefined, offered: readonly Tool[], writing: ChatToolWriteContext): object {
  if (choice === undefined) return {}
  const { target, names } = writing
  if (choice.mode === 'required' && target.traits.forcedTool === false) {
    target.notes.losses.add('tool_choice')
    return { tool_choice: 'auto' }
  }
  const [name, ...others] = choice.names ?? []
  if (choice.mode !== 'required' || name === undefined || others.length > 0) return { tool_choice: choice.mode }
  const isCustom =
    acceptsField(writing, 'custom_tools') && offered.some(tool => tool.kind === 'custom' && tool.name === name)
  const reference = { name: names.write(name) }
  return { tool_choice: isCustom ? { type: 'custom', custom: reference } : { type: 'function', function: reference } }
}

/** Chat has an own field for the provider's web search. It is a loss if the model has no web search. */
function writeSearch(
  { contextSize, location, domains, usesMax }: SearchTool,
  { flavour, target }: ChatToolWriteContext,
): object {
  const { losses } = target.notes
  if (!flavour.hasOpenaiAdditions || target.traits.searches !== true) {
    losses.add('web_search')
    return {}
  }
  if (domains !== undefined) losses.add('web_search.domains')
  if (usesMax !== undefined) losses.add('web_search.max_uses')
  const { zone: timezone, ...rest } = location ?? {}
  const approximate = { ...rest, ...(timezone !== undefined && { timezone }) }
  return {
    web_search_options: {
      ...(contextSize && { search_context_size: contextSize }),
      ...(location && { user_location: { type: 'approximate', approximate } }),
    },
  }
}
