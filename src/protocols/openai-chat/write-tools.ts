// The tools of a conversation, and which may be called, as chat has them.

import type { CustomTool, SearchTool, Tool, ToolChoice } from '../neutral/conversation.ts'
import type { ToolNames } from './tool-names.ts'
import type { Writing } from './write-parts.ts'

export interface WrittenTools {
  readonly tools?: readonly object[]
  readonly tool_choice?: unknown
  readonly web_search_options?: object
}

/** Where only some may be called, the others are not told of: not every upstream knows lists of allowed tools. */
export function writeTools(tools: readonly Tool[], choice: ToolChoice | undefined, made: ToolWriting): WrittenTools {
  const allowed = choice?.names === undefined ? undefined : new Set(choice.names)
  const told = tools.filter(tool => allowed === undefined || !('name' in tool) || allowed.has(tool.name))
  const written = told.flatMap(tool => writeTool(tool, made))
  const search = tools.find(tool => tool.kind === 'search')
  return {
    ...(written.length > 0 && { tools: written, ...writeChoice(choice, told, made) }),
    ...(search !== undefined && writeSearch(search, made)),
  }
}

export interface ToolWriting extends Writing {
  readonly names: ToolNames
}

function writeTool(tool: Tool, made: ToolWriting): object[] {
  const { flavour, target, names } = made
  // Tools stand before all parts, and only parts can be marked.
  if (tool.kind !== 'native' && tool.cache !== undefined) target.notes.losses.add('cache_control')
  switch (tool.kind) {
    case 'function': {
      const { description, schema, strict } = tool
      const name = names.write(tool.name)
      const said = { name, description, parameters: schema, strict }
      return [{ type: 'function', function: said }]
    }
    case 'custom':
      return [flavour.isFull ? writeCustom(tool, made) : wrapCustom(tool, made)]
    case 'search':
      return []
    case 'native':
      if (tool.dialect === flavour.dialect) return [tool.value as object]
      target.notes.losses.add(tool.what)
      return []
  }
}

function writeCustom({ name, description, grammar }: CustomTool, made: ToolWriting): object {
  const format = grammar === undefined ? undefined : { type: 'grammar', grammar }
  return { type: 'custom', custom: { name: made.names.write(name), description, format } }
}

/** A function of one text, which the reader of the answer takes out again. */
function wrapCustom({ name, description, grammar }: CustomTool, made: ToolWriting): object {
  const written = made.names.write(name)
  const { notes } = made.target
  ;(notes.wrapped ??= new Set()).add(written)
  if (grammar !== undefined) notes.losses.add('tools.custom.grammar')
  const parameters = { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] }
  return { type: 'function', function: { name: written, description, parameters } }
}

function writeChoice(choice: ToolChoice | undefined, told: readonly Tool[], made: ToolWriting): object {
  if (choice === undefined) return {}
  const { target, names, flavour } = made
  if (choice.mode === 'required' && target.traits.forcedTool === false) {
    target.notes.losses.add('tool_choice')
    return { tool_choice: 'auto' }
  }
  const [name, ...others] = choice.names ?? []
  if (choice.mode !== 'required' || name === undefined || others.length > 0) return { tool_choice: choice.mode }
  const isCustom = flavour.isFull && told.some(tool => tool.kind === 'custom' && tool.name === name)
  const named = { name: names.write(name) }
  return { tool_choice: isCustom ? { type: 'custom', custom: named } : { type: 'function', function: named } }
}

/** The provider's own search is asked for beside the tools, of models that can; nobody can be asked in its place. */
function writeSearch({ contextSize, place, domains, usesMax }: SearchTool, { flavour, target }: ToolWriting): object {
  const { losses } = target.notes
  if (!flavour.isFull || target.traits.searches !== true) {
    losses.add('web_search')
    return {}
  }
  if (domains !== undefined) losses.add('web_search.domains')
  if (usesMax !== undefined) losses.add('web_search.max_uses')
  const { zone: timezone, ...rest } = place ?? {}
  const approximate = { ...rest, ...(timezone !== undefined && { timezone }) }
  return {
    web_search_options: {
      ...(contextSize && { search_context_size: contextSize }),
      ...(place && { user_location: { type: 'approximate', approximate } }),
    },
  }
}
