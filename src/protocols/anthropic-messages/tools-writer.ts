// Tools for an upstream of this dialect, under names that it takes.
import type {
  CacheMark,
  Conversation,
  CustomTool,
  FunctionTool,
  SearchTool,
  Tool,
  ToolChoice,
} from '../neutral/conversation.ts'
import type { TranslationNotes } from '../neutral/translation-notes.ts'
import type { ConversationTarget } from '../protocol.ts'
import type { Json } from '../request/json-type.ts'
import { FreeNames } from './free-names.ts'
import { heldSchema } from './schema.ts'

const NAME_CHARS_MAX = 128
const SCHEMA_TOOL = 'json_answer'

/** Other dialects keep it for half an hour or half a day. */
export function writeCacheMark({ ttl }: CacheMark): Json {
  return ttl === '1h' || ttl === '12h' ? { type: 'ephemeral', ttl: '1h' } : { type: 'ephemeral' }
}

export const markOf = ({ cache }: { readonly cache?: CacheMark }): Json =>
  cache === undefined ? {} : { cache_control: writeCacheMark(cache) }

/** The names of one request: each is as the caller has it where it can be, and is known by the same name throughout. */
export class ToolNames {
  readonly #notes: TranslationNotes
  readonly #written = new Map<string, string>()
  readonly #free = new FreeNames()

  /** Clean names keep theirs whatever comes before them, so all of a request are told first. */
  constructor(notes: TranslationNotes, names: readonly string[]) {
    this.#notes = notes
    for (const name of new Set(names)) if (cleanName(name) === name) this.#written.set(name, this.#free.take(name))
  }

  write(name: string): string {
    const known = this.#written.get(name)
    if (known !== undefined) return known
    const written = this.own(cleanName(name))
    if (written !== name) this.#notes.renamed.set(written, name)
    this.#written.set(name, written)
    return written
  }

  /** For a tool of ours. */
  own(name: string): string {
    return this.#free.take(name)
  }
}

/** Leaves room for a number. */
const cleanName = (name: string): string => {
  const clean = name.replace(/[^a-zA-Z0-9_-]/g, '_')
  return clean.length > NAME_CHARS_MAX ? clean.slice(0, NAME_CHARS_MAX - 8) : clean || 'tool'
}

export interface WrittenTools {
  readonly tools: readonly Json[]
  readonly choice?: Json
}

interface ToolsAsk {
  readonly names: ToolNames
  /** The schema that the answer must fit, where only a tool can hold it to that. */
  readonly schema: Json | undefined
  /** Tools that were called before. */
  readonly called: readonly string[]
}

export function writeTools(conversation: Conversation, target: ConversationTarget, ask: ToolsAsk): WrittenTools {
  const { names, schema, called } = ask
  const { toolChoice } = conversation
  const offered = conversation.tools.filter(tool => isAllowed(tool, toolChoice))
  const tools = offered.flatMap(tool => writeTool(tool, target, names))
  if (schema !== undefined) {
    const name = names.own(SCHEMA_TOOL)
    target.notes.schemaTool = name
    const description = 'Give the answer by calling this tool.'
    const wanted = tools.length === 0 || toolChoice?.mode === 'none' ? { type: 'tool', name } : { type: 'any' }
    const choice = { ...wanted, disable_parallel_tool_use: true }
    return { tools: [...tools, { name, description, input_schema: objectSchema(schema) }], choice }
  }
  if (tools.length === 0) {
    if (conversation.tools.length === 0 && called.length === 0) return { tools: [] }
    // What was called must be declared; it is not to be called again.
    const declared = called.map(name => ({ name: names.write(name), input_schema: objectSchema({}) }))
    return declared.length === 0 ? { tools: [] } : { tools: declared, choice: { type: 'none' } }
  }
  const choice = writeChoice(conversation, target, names)
  return { tools, ...(choice !== undefined && { choice }) }
}

/** Whether the model is made to call a tool; without any there is nothing to call. */
export function isForced({ toolChoice, tools }: Conversation, { traits }: ConversationTarget): boolean {
  return toolChoice?.mode === 'required' && traits.forcedTool !== false && tools.length > 0
}

function isAllowed(tool: Tool, choice: ToolChoice | undefined): boolean {
  if (choice?.names === undefined) return true
  return (tool.kind === 'function' || tool.kind === 'custom') && choice.names.includes(tool.name)
}

function writeChoice(conversation: Conversation, target: ConversationTarget, names: ToolNames): Json | undefined {
  const { toolChoice: choice, parallelCalls } = conversation
  const alone = parallelCalls === false ? { disable_parallel_tool_use: true } : {}
  if (choice === undefined) return parallelCalls === false ? { type: 'auto', ...alone } : undefined
  if (choice.mode === 'none') return { type: 'none' }
  if (choice.mode === 'auto') return { type: 'auto', ...alone }
  if (target.traits.forcedTool === false) {
    target.notes.losses.add('tool_choice')
    return { type: 'auto', ...alone }
  }
  const [only, ...more] = choice.names ?? []
  if (only === undefined || more.length > 0) return { type: 'any', ...alone }
  return { type: 'tool', name: names.write(only), ...alone }
}

function writeTool(tool: Tool, target: ConversationTarget, names: ToolNames): readonly Json[] {
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

function writeFunction(tool: FunctionTool, { traits, notes }: ConversationTarget, names: ToolNames): Json {
  const { name, description, schema = {} } = tool
  const strict = tool.strict === true && traits.schema !== false
  if (tool.strict === true && !strict) notes.losses.add('tools.strict')
  const held = strict ? heldSchema(objectSchema(schema)) : undefined
  if (held?.weaker) notes.losses.add('tools.schema')
  return {
    name: names.write(name),
    ...(description !== undefined && { description }),
    input_schema: held?.schema ?? objectSchema(schema),
    ...(strict && { strict }),
    ...markOf(tool),
  }
}

/** Arguments are an object here, always. */
function objectSchema(schema: Json): Json {
  return schema.type === 'object' ? schema : { ...schema, type: 'object', properties: schema.properties ?? {} }
}

/** Free text travels as the one argument of a function. */
function writeCustom(tool: CustomTool, { notes }: ConversationTarget, names: ToolNames): Json {
  const { name, description, grammar } = tool
  const written = names.write(name)
  notes.wrapped ??= new Set()
  notes.wrapped.add(written)
  if (grammar !== undefined) notes.losses.add('tools.grammar')
  const words = grammar && `The input must fit this grammar (${grammar.syntax}):\n${grammar.definition}`
  return {
    name: written,
    description: [description, words].filter(Boolean).join('\n\n'),
    input_schema: { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] },
    ...markOf(tool),
  }
}

/** The version of it that every model that searches has. */
function writeSearch(tool: SearchTool, { notes }: ConversationTarget): Json {
  const { domains, usesMax, place, contextSize } = tool
  if (contextSize !== undefined) notes.losses.add('tools.web_search.context_size')
  const { zone, ...rest } = place ?? {}
  return {
    type: 'web_search_20250305',
    name: 'web_search',
    ...(domains !== undefined && { allowed_domains: domains }),
    ...(usesMax !== undefined && { max_uses: usesMax }),
    ...(place && { user_location: { type: 'approximate', ...rest, ...(zone !== undefined && { timezone: zone }) } }),
    ...markOf(tool),
  }
}
