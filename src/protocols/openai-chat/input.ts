// What a chat request gives the model to read, as far as a bound and an estimate of it need to know.

import { isObject } from '../json-object.ts'

export interface ChatInput {
  /** All of its input is text in the body. */
  readonly textOnly: boolean
  readonly searchesMax: number
  /** The body's bytes, as if all of it were text. */
  readonly inputBytes: number
}

/** Ask the upstream to fetch what is not in the request. Not every upstream knows each of them. */
export const fetchingFields = ['web_search_options', 'search_parameters', 'enable_search', 'plugins', 'tools'] as const

/** May name what lies elsewhere: a kept cache, or whatever a proxy makes of it. */
export const hidingFields = ['extra_body', 'cached_content'] as const

/** Nobody says how often a model may search in one answer; the provider bills each. */
const SEARCHES_MAX = 10

/** An image or a minute of sound is about a thousand tokens, whatever its bytes; so many bytes of text are as many. */
const PART_BYTES = 4_000

interface Part {
  readonly type?: unknown
}

interface Message {
  readonly content?: unknown
  /** An earlier answer that was spoken, by its id. */
  readonly audio?: unknown
}

export function weighInput(json: Readonly<Record<string, unknown>>, bodyBytes: number): ChatInput {
  const searches = fetchingFields.some(field => (field === 'tools' ? hasServerTool(json.tools) : Boolean(json[field])))
  let textOnly = !searches && !hidingFields.some(field => Boolean(json[field]))
  let inputBytes = bodyBytes
  for (const { content, audio } of json.messages as readonly Message[]) {
    if (audio) {
      textOnly = false
      inputBytes += PART_BYTES
    }
    if (!Array.isArray(content)) {
      textOnly &&= !isObject(content)
      continue
    }
    for (const part of content as readonly (Part | null)[]) {
      if (part?.type === 'text' || part?.type === 'refusal') continue
      textOnly = false
      inputBytes += PART_BYTES - inlineBytes(part)
    }
  }
  return { textOnly, searchesMax: searches ? SEARCHES_MAX : 0, inputBytes }
}

/** Functions run at the caller's. Whatever else is a tool runs at the provider's, and adds what it finds. */
function hasServerTool(tools: unknown): boolean {
  if (!Array.isArray(tools)) return false
  return tools.some((tool: Part | null) => tool?.type !== 'function' && tool?.type !== 'custom')
}

/** The texts of a part, such as the image in its `image_url.url`. */
function inlineBytes(part: unknown, depth = 0): number {
  if (typeof part === 'string') return part.length
  if (!isObject(part) || depth > 2) return 0
  let bytes = 0
  for (const field in part) bytes += inlineBytes(part[field], depth + 1)
  return bytes
}
