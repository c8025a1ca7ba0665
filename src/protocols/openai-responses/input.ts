// What a request gives the model to read, as far as a bound and an estimate of it need to know.

import { isObject } from '../json-object.ts'
import type { Json } from '../checks.ts'

export interface ResponsesInput {
  /** All of its input is text in the body. */
  readonly textOnly: boolean
  readonly searchesMax: number
  /** The body's bytes, as if all of it were text. */
  readonly inputBytes: number
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

const TEXT_PARTS: ReadonlySet<unknown> = new Set(['input_text', 'output_text', 'text', 'refusal', 'summary_text'])

/** Items that are what their text says. Any other may stand for something that is kept elsewhere. */
const TEXT_ITEMS: ReadonlySet<unknown> = new Set([
  ...['message', 'function_call', 'function_call_output', 'custom_tool_call', 'custom_tool_call_output'],
  ...['local_shell_call', 'local_shell_call_output', 'apply_patch_call', 'apply_patch_call_output'],
])

export function weighInput(json: Json, bodyBytes: number): ResponsesInput {
  const served = Array.isArray(json.tools) && json.tools.some(tool => !CALLERS_TOOLS.has(isObject(tool) && tool.type))
  const stored = storedFields.some(field => (json[field] ?? undefined) !== undefined)
  const weight = { textOnly: !served && !stored, inputBytes: bodyBytes }
  if (Array.isArray(json.input)) for (const item of json.input as readonly unknown[]) weighItem(weight, item)
  return { ...weight, searchesMax: served ? searchesMax(json.max_tool_calls) : 0 }
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
