// Tools and how they are to be used, as Google is told.

import type { Traits } from '../../base/money/model-traits.ts'
import type { Conversation, CustomTool, FunctionTool, SearchTool, ToolChoice } from '../neutral/conversation.ts'
import type { ConversationTarget } from '../protocol.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import type { ToolNames } from './names.ts'
import { forGoogle } from './schema.ts'

export interface WrittenTools {
  readonly tools?: readonly Json[]
  readonly toolConfig?: Json
}

/** The answer as the arguments of this tool, for models that cannot be held to a schema while they have tools. */
const ANSWER_TOOL = 'give_answer'

export function writeTools(asked: Conversation, names: ToolNames, target: ConversationTarget): WrittenTools {
  const { losses } = target.notes
  const functions: Json[] = []
  const others: Json[] = []
  let isStrict = false
  for (const tool of asked.tools) {
    if (tool.kind !== 'native' && tool.cache !== undefined) losses.add('cache_control')
    if (tool.kind === 'function') {
      functions.push(writeFunction(tool, names))
      isStrict ||= tool.strict === true
    } else if (tool.kind === 'custom') functions.push(writeCustom(tool, names, target))
    else if (tool.kind === 'search') others.push(...writeSearch(tool, target))
    else if (tool.dialect === 'gemini') others.push(tool.value as Json)
    else losses.add(tool.what)
  }
  if (asked.parallelCalls === false && functions.length > 0) losses.add('parallel_tool_calls')
  const byTool = answersByTool(asked, target.traits)
  if (byTool) functions.push(writeAnswerTool(asked, names, target))
  if (functions.length > 0) others.unshift({ functionDeclarations: functions })
  const choice = byTool ? answerChoice(asked.toolChoice) : asked.toolChoice
  const config = functions.length === 0 ? undefined : writeChoice(choice, { names, isStrict, target })
  return {
    ...(others.length > 0 && { tools: others }),
    ...(config !== undefined && { toolConfig: { functionCallingConfig: config } }),
  }
}

/** Whether a schema and functions are asked of a model that cannot have both. */
export function answersByTool({ format, tools, toolChoice }: Conversation, traits: Traits): boolean {
  if (traits.schemaWithTools !== false || format?.kind !== 'schema' || format.schema.type !== 'object') return false
  return hasFunctions(tools) && toolChoice?.mode !== 'none'
}

export const hasFunctions = (tools: Conversation['tools']): boolean =>
  tools.some(tool => tool.kind === 'function' || tool.kind === 'custom')

function writeAnswerTool({ format }: Conversation, names: ToolNames, target: ConversationTarget): Json {
  const name = names.free(ANSWER_TOOL)
  target.notes.schemaTool = name
  const schema = format?.kind === 'schema' ? format.schema : {}
  return { name, description: 'Gives the final answer.', parametersJsonSchema: forGoogle(schema) }
}

/** It has to call something: another tool, or the one that answers. */
const answerChoice = (given: ToolChoice | undefined): ToolChoice | undefined =>
  given?.mode === 'required' ? given : { mode: 'required' }

function writeFunction({ name, description, schema }: FunctionTool, names: ToolNames): Json {
  return {
    name: names.write(name),
    ...(description !== undefined && { description }),
    ...(schema !== undefined && !isEmpty(schema) && { parametersJsonSchema: forGoogle(schema) }),
  }
}

/** These say nothing of an object that has no properties. */
const idle = new Set(['$schema', 'additionalProperties', 'required', 'type', 'properties'])

/** A function without parameters has no schema. */
function isEmpty(schema: Json): boolean {
  const { type = 'object', properties } = schema
  const hasNone = properties === undefined || (isObject(properties) && Object.keys(properties).length === 0)
  return type === 'object' && hasNone && Object.keys(schema).every(name => idle.has(name))
}

function writeCustom(tool: CustomTool, names: ToolNames, { notes }: ConversationTarget): Json {
  const { name, description, grammar } = tool
  if (grammar !== undefined) notes.losses.add('tools.grammar')
  const written = names.write(name)
  ;(notes.wrapped ??= new Set()).add(written)
  const syntax = grammar === undefined ? '' : `The input follows this ${grammar.syntax} grammar:\n${grammar.definition}`
  const told = [description ?? '', syntax].filter(text => text !== '').join('\n\n')
  return {
    name: written,
    ...(told !== '' && { description: told }),
    parametersJsonSchema: { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] },
  }
}

function writeSearch(tool: SearchTool, { traits, notes: { losses } }: ConversationTarget): readonly Json[] {
  if (traits.searches === false) {
    losses.add('web_search')
    return []
  }
  const { domains, contextSize, usesMax, place } = tool
  const wishes = { domains, context_size: contextSize, max_uses: usesMax, location: place }
  for (const [name, wish] of Object.entries(wishes)) if (wish !== undefined) losses.add(`web_search.${name}`)
  return [{ googleSearch: {} }]
}

interface ChoiceTarget {
  readonly names: ToolNames
  readonly isStrict: boolean
  readonly target: ConversationTarget
}

function writeChoice(choice: ToolChoice | undefined, { names, isStrict, target }: ChoiceTarget): Json | undefined {
  const only = choice?.names?.map(name => names.write(name)) ?? []
  const allowed = only.length === 0 ? {} : { allowedFunctionNames: only }
  if (choice?.mode === 'none') return { mode: 'NONE' }
  if (choice?.mode === 'required') {
    if (target.traits.forcedTool !== false) return { mode: 'ANY', ...allowed }
    target.notes.losses.add('tool_choice')
  }
  // Some tools only, or arguments that fit their schemas, and still no must.
  if (only.length > 0 || isStrict) return { mode: 'VALIDATED', ...allowed }
  return choice === undefined ? undefined : { mode: 'AUTO' }
}
