// Writes tools, and how the model may use them, for an upstream of this dialect.

import type { ModelTraits } from '../../base/money/model-traits.ts'
import type {
  Conversation,
  CustomTool,
  FunctionTool,
  NativeTool,
  SearchTool,
  ToolChoice,
} from '../neutral/conversation.ts'
import { describeSchema } from '../neutral/described-schema.ts'
import type { ConversationTarget } from '../protocol.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { CLIENT_TOOLS } from './input.ts'
import { toGoogleSchema } from './schema.ts'
import type { GeminiToolNames } from './tool-names.ts'

export interface WrittenGeminiTools {
  readonly tools?: readonly Json[]
  readonly toolConfig?: Json
}

/** For models that cannot follow a schema and have tools at once: the model gives its answer as this tool's arguments. */
const ANSWER_TOOL_NAME = 'give_answer'

export function writeTools(
  conversation: Conversation,
  names: GeminiToolNames,
  target: ConversationTarget,
): WrittenGeminiTools {
  const { traits, notes } = target
  const functions: Json[] = []
  const others: Json[] = []
  const serverTools: Json[] = []
  let isStrict = false
  // This dialect has no list of allowed functions that is empty.
  const allowsFunctions = conversation.toolChoice?.names?.length !== 0
  for (const tool of conversation.tools) {
    if (!allowsFunctions && 'name' in tool) continue
    if (tool.kind !== 'native' && tool.cache !== undefined) notes.losses.add('cache_control')
    if (tool.kind === 'function') {
      functions.push(writeFunction(tool, names, target))
      isStrict ||= tool.strict === true
    } else if (tool.kind === 'custom') functions.push(writeCustom(tool, names, target))
    else if (tool.kind === 'native' && CLIENT_TOOLS.has(tool.what)) others.push(...writeNative(tool, target))
    else serverTools.push(...writeServerTool(tool, conversation, target))
  }
  if (conversation.parallelCalls === false && functions.length > 0) notes.losses.add('parallel_tool_calls')
  const usesAnswerTool = needsAnswerTool(conversation, traits)
  if (usesAnswerTool) functions.push(writeAnswerTool(conversation, names, target))
  const choice = usesAnswerTool ? requireTool(conversation.toolChoice) : conversation.toolChoice
  // Only functions can be forced.
  if (functions.length === 0 && choice?.mode === 'required') notes.losses.add('tool_choice')
  const combines = functions.length > 0 && serverTools.length > 0
  // Where both kinds of tools are combined, Google has no mode AUTO.
  const config = functions.length === 0 ? undefined : writeChoice(choice, names, isStrict || combines, target)
  const tools = [...(functions.length > 0 ? [{ functionDeclarations: functions }] : []), ...others, ...serverTools]
  const toolConfig = {
    ...(config !== undefined && { functionCallingConfig: config }),
    ...(combines && { includeServerSideToolInvocations: true }),
  }
  return {
    ...(tools.length > 0 && { tools }),
    ...(Object.keys(toolConfig).length > 0 && { toolConfig }),
  }
}

/** Whether the request has a schema and functions, and the model cannot take both. */
export function needsAnswerTool({ format, tools, toolChoice }: Conversation, traits: ModelTraits): boolean {
  if (traits.schemaWithTools !== false || format?.kind !== 'schema' || format.schema.type !== 'object') return false
  return hasFunctions(tools) && toolChoice?.mode !== 'none'
}

export const hasFunctions = (tools: Conversation['tools']): boolean =>
  tools.some(tool => tool.kind === 'function' || tool.kind === 'custom')

function writeAnswerTool({ format }: Conversation, names: GeminiToolNames, target: ConversationTarget): Json {
  const name = names.reserve(ANSWER_TOOL_NAME)
  target.notes.schemaTool = name
  const { schema, isWeaker } = toGoogleSchema(format?.kind === 'schema' ? describeSchema(format) : {})
  if (isWeaker) target.notes.losses.add('response_format.schema')
  return { name, description: 'Gives the final answer.', parametersJsonSchema: schema }
}

/** The model must call a tool: one of the caller's tools, or the answer tool. */
const requireTool = (given: ToolChoice | undefined): ToolChoice | undefined =>
  given?.mode === 'required' ? given : { mode: 'required' }

function writeFunction(tool: FunctionTool, names: GeminiToolNames, { notes }: ConversationTarget): Json {
  const { name, description, schema, strict } = tool
  const parameters = schema === undefined || hasNoParameters(schema) ? undefined : toGoogleSchema(schema)
  // Without strictness a schema only describes the arguments.
  if (strict === true && parameters?.isWeaker) notes.losses.add('tools.schema')
  return {
    name: names.write(name),
    ...(description !== undefined && { description }),
    ...(parameters && { parametersJsonSchema: parameters.schema }),
  }
}

/** Schema fields without effect on an object that has no properties. */
const FIELDS_WITHOUT_MEANING = new Set(['$schema', 'additionalProperties', 'required', 'type', 'properties'])

/** Google takes no schema for a function without parameters. */
function hasNoParameters(schema: Json): boolean {
  const { type = 'object', properties } = schema
  const hasNoProperties = properties === undefined || (isObject(properties) && Object.keys(properties).length === 0)
  return type === 'object' && hasNoProperties && Object.keys(schema).every(name => FIELDS_WITHOUT_MEANING.has(name))
}

function writeCustom(tool: CustomTool, names: GeminiToolNames, { notes }: ConversationTarget): Json {
  const { name, description, grammar } = tool
  if (grammar !== undefined) notes.losses.add('tools.grammar')
  const written = names.write(name)
  ;(notes.wrapped ??= new Set()).add(written)
  const syntax = grammar === undefined ? '' : `The input follows this ${grammar.syntax} grammar:\n${grammar.definition}`
  const fullDescription = [description ?? '', syntax].filter(text => text !== '').join('\n\n')
  return {
    name: written,
    ...(fullDescription !== '' && { description: fullDescription }),
    parametersJsonSchema: { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] },
  }
}

function writeSearch(tool: SearchTool, { traits, notes: { losses } }: ConversationTarget): readonly Json[] {
  if (traits.searches === false) {
    losses.add('web_search')
    return []
  }
  const { domains, contextSize, usesMax, location } = tool
  const options = { domains, context_size: contextSize, max_uses: usesMax, location }
  for (const [name, value] of Object.entries(options)) if (value !== undefined) losses.add(`web_search.${name}`)
  return [{ googleSearch: {} }]
}

/** A tool that runs at the provider. Functions come first if the model cannot have both. */
function writeServerTool(
  tool: SearchTool | NativeTool,
  { tools }: Conversation,
  target: ConversationTarget,
): readonly Json[] {
  if (target.traits.serverToolsWithFunctions !== true && hasFunctions(tools)) {
    target.notes.losses.add(tool.kind === 'search' ? 'web_search' : tool.what)
    return []
  }
  return tool.kind === 'search' ? writeSearch(tool, target) : writeNative(tool, target)
}

function writeNative(tool: NativeTool, { notes }: ConversationTarget): readonly Json[] {
  if (tool.dialect === 'gemini') return [tool.value as Json]
  notes.losses.add(tool.what)
  return []
}

function writeChoice(
  choice: ToolChoice | undefined,
  names: GeminiToolNames,
  isValidated: boolean,
  target: ConversationTarget,
): Json | undefined {
  const allowedNames = choice?.names?.map(name => names.write(name)) ?? []
  const allowed = allowedNames.length === 0 ? {} : { allowedFunctionNames: allowedNames }
  if (choice?.mode === 'none') return { mode: 'NONE' }
  if (choice?.mode === 'required') {
    if (target.traits.forcedTool !== false) return { mode: 'ANY', ...allowed }
    target.notes.losses.add('tool_choice')
  }
  // VALIDATED restricts the tools, or holds arguments to their schemas, and does not force a call.
  if (allowedNames.length > 0 || isValidated) return { mode: 'VALIDATED', ...allowed }
  return choice === undefined ? undefined : { mode: 'AUTO' }
}
