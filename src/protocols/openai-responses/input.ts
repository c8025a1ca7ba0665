// What a request gives the model to read, as far as a bound and an estimate of it need to know.

import { isObject } from '../json-object.ts'
import type { Json } from '../checks.ts'

export interface ResponsesInput {
  /** All of its input is text in the body. */
  readonly textOnly: boolean
  readonly searchesMax: number
  /** The body's bytes, as if all of it were text. */
  readonly inputBytes: number
  /** A tool whose price no report tells. */
  readonly unpriced?: string
}

/** Add to the input what is not in the request. */
export const storedFields = ['previous_response_id', 'conversation', 'prompt', 'session'] as const

/** Where nobody says how often a model may search in one answer; the provider bills each. */
const SEARCHES_MAX = 10

/** An image or a minute of sound is about a thousand tokens, whatever its bytes; so many bytes of text are as many. */
const PART_BYTES = 4_000

/** Tools that run at the caller's, and so add nothing to what is read. Any other may. */
const CALLERS_TOOLS: ReadonlySet<unknown> = new Set([
  ...['function', 'custom', 'local_shell', 'apply_patch', 'namespace', 'computer', 'computer_use_preview'],
])

/** Tools of the provider that cost what is searched and read, and nothing else. Any other may have a price. */
const PRICED_TOOLS: ReadonlySet<string> = new Set([
  ...['web_search', 'web_search_2025_08_26', 'web_search_preview', 'web_search_preview_2025_03_11'],
  ...['mcp', 'tool_search', 'programmatic_tool_calling'],
])

const TEXT_PARTS: ReadonlySet<unknown> = new Set(['input_text', 'output_text', 'text', 'refusal', 'summary_text'])

/** Items that are what their text says. Any other may stand for something that is kept elsewhere. */
const TEXT_ITEMS: ReadonlySet<unknown> = new Set([
  ...['message', 'function_call', 'function_call_output', 'custom_tool_call', 'custom_tool_call_output'],
  ...['local_shell_call', 'local_shell_call_output', 'apply_patch_call', 'apply_patch_call_output'],
])

export function weighInput(json: Json, bodyBytes: number): ResponsesInput {
  const items = Array.isArray(json.input) ? (json.input as readonly unknown[]) : []
  const tools = [json, ...items].flatMap(toolsOf).filter(tool => !isCallers(tool))
  const adds = [...storedFields, 'context_management'].some(field => (json[field] ?? undefined) !== undefined)
  const weight = { textOnly: tools.length === 0 && !adds, inputBytes: bodyBytes }
  for (const item of items) weighItem(weight, item)
  const unpriced = tools.map(({ type }) => type).find(type => typeof type === 'string' && !PRICED_TOOLS.has(type))
  return {
    ...weight,
    searchesMax: tools.length > 0 ? searchesMax(json.max_tool_calls) : 0,
    ...(unpriced !== undefined && { unpriced: unpriced as string }),
  }
}

/** Those of a request, or those that an item adds to them. */
function toolsOf(holder: unknown): readonly Json[] {
  return isObject(holder) && Array.isArray(holder.tools) ? (holder.tools as readonly unknown[]).map(objectOf) : []
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

const searchesMax = (calls: unknown): number =>
  Number.isSafeInteger(calls) && (calls as number) >= 0 ? Math.min(calls as number, SEARCHES_MAX) : SEARCHES_MAX

/** The texts of a part, such as the image in its `image_url`. */
function inlineBytes(part: unknown, depth = 0): number {
  if (typeof part === 'string') return part.length
  if (!isObject(part) || depth > 2) return 0
  let bytes = 0
  for (const field in part) bytes += inlineBytes(part[field], depth + 1)
  return bytes
}
