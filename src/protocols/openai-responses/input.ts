// What a request gives the model to read, as far as a bound and an estimate of it need to know.

import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import type { FieldsRead, Service } from '../request/services.ts'
import {
  allTools,
  distinct,
  isWebSearch,
  paidFields,
  reasoningServices,
  runsAtProvider,
  toolName,
  USES_MAX,
  USES_SAID_MAX,
} from '../request/services.ts'
import { arkFields, openaiFields } from './fields.ts'

export interface ResponsesInput {
  /** All of its input is text in the body. */
  readonly textOnly: boolean
  readonly searchesMax: number
  /** The body's bytes, as if all of it were text. */
  readonly inputBytes: number
  readonly services?: readonly Service[]
  /** The provider runs tools for it. */
  readonly serverTools?: boolean
}

/** Add to the input what is not in the request. */
export const storedFields = ['previous_response_id', 'conversation', 'prompt', 'session'] as const

/** An image or a minute of sound is about a thousand tokens, whatever its bytes; so many bytes of text are as many. */
const PART_BYTES = 4_000

/** Tools that run at the caller's, and so add nothing to what is read. Any other may. */
const CALLERS_TOOLS: ReadonlySet<unknown> = new Set([
  ...['function', 'custom', 'local_shell', 'apply_patch', 'namespace', 'computer', 'computer_use_preview'],
])

const READ: FieldsRead = {
  judged: ['service_tier', 'background'],
  known: new Set(Object.keys({ ...openaiFields, ...arkFields })),
}

/** A machine of the provider's is billed by twenty minutes, and by the gigabytes of memory that it has. */
const SESSION_SECONDS = 1_200
const GIGABYTES: Readonly<Record<string, number>> = { '1g': 1, '4g': 4, '16g': 16, '64g': 64 }

const TEXT_PARTS: ReadonlySet<unknown> = new Set(['input_text', 'output_text', 'text', 'refusal', 'summary_text'])

/** Items that are what their text says. Any other may stand for something that is kept elsewhere. */
const TEXT_ITEMS: ReadonlySet<unknown> = new Set([
  ...['message', 'function_call', 'function_call_output', 'custom_tool_call', 'custom_tool_call_output'],
  ...['local_shell_call', 'local_shell_call_output', 'apply_patch_call', 'apply_patch_call_output'],
])

/** What an earlier turn did. `additional_tools` and `tool_search_output` are not among them: these add tools. */
const PAST_ITEMS: ReadonlySet<unknown> = new Set([
  ...['mcp_list_tools', 'mcp_call', 'mcp_approval_request', 'mcp_approval_response', 'tool_search_call', 'reasoning'],
  ...['function_call', 'function_call_output', 'custom_tool_call', 'custom_tool_call_output', 'item_reference'],
  ...['file_search_call', 'web_search_call', 'code_interpreter_call', 'image_generation_call', 'computer_call'],
  ...['computer_call_output', 'local_shell_call', 'local_shell_call_output', 'shell_call', 'shell_call_output'],
  ...['apply_patch_call', 'apply_patch_call_output', 'compaction', 'program', 'program_output'],
])

export function weighInput(json: Json, bodyBytes: number): ResponsesInput {
  const items = Array.isArray(json.input) ? (json.input as readonly unknown[]) : []
  const tools = [json, ...items].flatMap(toolsOf).filter(tool => !isCallers(tool))
  const usesMax = usesMaxOf(json.max_tool_calls)
  const ofTools = tools.flatMap(tool => toolService(tool, usesMax))
  const ofFields = [...storedServices(json), ...reasoningServices(json), ...paidFields(json, READ)]
  const services = distinct([...ofTools, ...ofFields])
  const adds = [...storedFields, 'context_management'].some(field => (json[field] ?? undefined) !== undefined)
  const weight = { textOnly: tools.length === 0 && !adds, inputBytes: bodyBytes }
  for (const item of items) weighItem(weight, item)
  return {
    ...weight,
    searchesMax: tools.some(searches) ? usesMax : 0,
    ...(services.length > 0 && { services }),
    ...((tools.length > 0 || ofFields.some(runsAtProvider)) && { serverTools: true }),
  }
}

/**
 * Those of a request, or those that an item adds to them. An item of a kind that is not known may add tools; one of
 * these kinds tells what happened in an earlier turn, such as which tools a server had listed.
 */
function toolsOf(holder: unknown): readonly Json[] {
  return isObject(holder) && !PAST_ITEMS.has(holder.type) ? allTools(holder.tools) : []
}

const nameOf = ({ type }: Json): string => (typeof type === 'string' ? toolName(type) : 'tools')

const searches = (tool: Json): boolean => isWebSearch(nameOf(tool))

/** A prompt that is kept at the provider may bring tools that nothing here shows. */
const storedServices = ({ prompt }: Json): readonly Service[] =>
  (prompt ?? undefined) === undefined ? [] : [{ name: 'prompt', param: 'prompt' }]

function toolService(tool: Json, usesMax: number): readonly Service[] {
  const name = nameOf(tool)
  // Some models have another price for the older of the two.
  if (isWebSearch(name)) return name === 'web_search' ? [] : [{ name }]
  if (name === 'file_search') return [{ name, unit: 'fileSearches', usesMax }]
  if (name === 'image_generation') return [{ name, unit: 'images', usesMax }]
  if (name === 'code_interpreter') return [machineService(name, tool.container)]
  return [name === 'shell' ? machineService(name, tool.environment) : { name }]
}

/** Only a machine that the provider makes for the call is known: of one that is named, nobody says how large it is. */
function machineService(name: string, machine: unknown): Service {
  const { type, memory_limit: memory } = objectOf(machine)
  const gigabytes = GIGABYTES[typeof memory === 'string' ? memory : '1g']
  const isFresh = type === 'auto' || type === 'container_auto'
  if (!isFresh || gigabytes === undefined) return { name: `${name}:container` }
  return { name, unit: 'codeSessions', each: gigabytes, usesMax: 1, sessionSeconds: SESSION_SECONDS }
}

const objectOf = (value: unknown): Json => (isObject(value) ? value : {})

/** A shell is the caller's only where it says so. */
function isCallers({ type, environment }: Json): boolean {
  return CALLERS_TOOLS.has(type) || (type === 'shell' && objectOf(environment).type === 'local')
}

interface Weight {
  textOnly: boolean
  inputBytes: number
}

function weighItem(weight: Weight, item: unknown): void {
  if (!isObject(item)) return
  if (!TEXT_ITEMS.has(item.type ?? 'message')) {
    // What is sealed in it is read as tokens of its own number, about as many as its bytes say.
    weight.textOnly = false
  }
  const parts = item.content ?? item.output
  if (!Array.isArray(parts)) return
  for (const part of parts as readonly unknown[]) {
    if (isObject(part) && (TEXT_PARTS.has(part.type) || part.type === 'reasoning_text')) continue
    weight.textOnly = false
    weight.inputBytes += PART_BYTES - inlineBytes(part)
  }
}

const usesMaxOf = (calls: unknown): number =>
  Number.isSafeInteger(calls) && (calls as number) >= 0 ? Math.min(calls as number, USES_SAID_MAX) : USES_MAX

/** The texts of a part, such as the image in its `image_url`. */
function inlineBytes(part: unknown, depth = 0): number {
  if (typeof part === 'string') return part.length
  if (!isObject(part) || depth > 2) return 0
  let bytes = 0
  for (const field in part) bytes += inlineBytes(part[field], depth + 1)
  return bytes
}
