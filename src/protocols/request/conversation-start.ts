// Identifies a conversation by how it starts: all turns of a conversation start the same. Affinity sends them to the channel
// whose provider has their prompt in a cache, and records name the conversation. Also reads for how long a prompt should be
// cached.

import { MINUTE_MS } from '../../base/time.ts'
import { isObject } from './json-body.ts'
import type { Json } from './json-type.ts'

export interface ConversationStart {
  /** The caller's own cache key. If present, nothing else matters. */
  readonly key?: unknown
  /** The end user. Conversations of different users may start with the same text. */
  readonly user?: unknown
  readonly tools?: readonly unknown[] | undefined
  readonly system: unknown
  /** The content of the first user message. */
  readonly first: unknown
}

const KEY_CHARS_MAX = 256
const USER_CHARS_MAX = 128
const TOOLS_MAX = 32
const TOOL_CHARS_MAX = 64
const VALUES_MAX = 64

interface Sample {
  readonly textsMax: number
  readonly charsMax: number
  /** How many characters of the end of a long text to use, with its length. Some texts differ only after a preamble. */
  readonly tailChars: number
}

/** Without the end: system prompts often end with the time, and the text before it is cached all the same. */
const systemSample: Sample = { textsMax: 3, charsMax: 256, tailChars: 0 }
const firstSample: Sample = { textsMax: 4, charsMax: 192, tailChars: 64 }

export function formatConversationStart({ key, user, tools, system, first }: ConversationStart): string {
  if (typeof key === 'string' && key !== '') return `key\n${key.slice(0, KEY_CHARS_MAX)}`
  const userText = typeof user === 'string' ? user.slice(0, USER_CHARS_MAX) : ''
  return `${userText}\n${toolsText(tools)}\n${textsOf(system, systemSample)}\n${textsOf(first, firstSample)}`
}

function toolsText(tools: readonly unknown[] | undefined): string {
  if (tools === undefined || tools.length === 0) return ''
  let text = String(tools.length)
  for (let index = 0; index < tools.length && index < TOOLS_MAX; index++) text += `,${toolName(tools[index])}`
  return text
}

function toolName(tool: unknown): string {
  if (!isObject(tool)) return ''
  const inner = isObject(tool.function) ? tool.function : isObject(tool.custom) ? tool.custom : tool
  const name = inner.name ?? tool.type
  return typeof name === 'string' ? name.slice(0, TOOL_CHARS_MAX) : ''
}

/** Collects the texts in a value at any depth. A text alone gives the same result as a list with one text part. */
function textsOf(value: unknown, sample: Sample): string {
  const found = { text: '', texts: 0, values: 0 }
  collectTexts(value, sample, found)
  return found.text
}

function collectTexts(value: unknown, sample: Sample, found: { text: string; texts: number; values: number }): void {
  if (found.texts >= sample.textsMax || ++found.values > VALUES_MAX) return
  if (typeof value === 'string') {
    found.texts++
    found.text += `${sampled(value, sample)}\n`
  } else if (Array.isArray(value)) {
    for (let index = 0; index < value.length && found.values <= VALUES_MAX; index++)
      collectTexts(value[index], sample, found)
  } else if (isObject(value)) {
    for (const name in value) if (!isIgnoredField(name)) collectTexts(value[name], sample, found)
  }
}

/** Fields that are the same in all parts, or that change from turn to turn. */
const isIgnoredField = (name: string): boolean =>
  name === 'type' || name === 'role' || name === 'cache_control' || name === 'prompt_cache_breakpoint'

function sampled(text: string, { charsMax, tailChars }: Sample): string {
  const head = text.slice(0, charsMax)
  if (tailChars === 0 || text.length <= charsMax) return head
  return `${head}${text.length}${text.slice(Math.max(charsMax, text.length - tailChars))}`
}

/** Returns the content of the first user message, and of the system messages before it. */
export function findFirstMessages(
  messages: unknown,
  systemRoles: readonly string[],
): Pick<ConversationStart, 'system' | 'first'> {
  const system: unknown[] = []
  for (const message of Array.isArray(messages) ? (messages as readonly unknown[]) : []) {
    if (!isObject(message)) continue
    if (message.role === 'user') return { system, first: message.content }
    if (systemRoles.includes(message.role as string)) system.push(message.content)
  }
  return { system, first: undefined }
}

export const asList = (value: unknown): readonly unknown[] | undefined => (Array.isArray(value) ? value : undefined)

const ttlMs: ReadonlyMap<unknown, number> = new Map([
  ['5m', 5 * MINUTE_MS],
  ['30m', 30 * MINUTE_MS],
  ['1h', 60 * MINUTE_MS],
  ['12h', 12 * 60 * MINUTE_MS],
  ['24h', 24 * 60 * MINUTE_MS],
])

/**
 * How many elements at each end of a list are searched: breakpoints are on stable content at the start, or at the end.
 */
const ENDS_SEARCHED = 8

/** Converts a TTL such as `5m` to milliseconds. Undefined: it is no known TTL. */
export const parseTtlMs = (word: unknown): number | undefined => ttlMs.get(word)

export const longerMs = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || (other !== undefined && other > one) ? other : one

/** The longest TTL of the cache breakpoints on the objects of a list. */
export function readBreakpointsMs(list: unknown): number | undefined {
  let longest: number | undefined
  if (!Array.isArray(list)) return longest
  for (let index = 0; index < list.length; index = nextPosition(index, list.length))
    longest = longerMs(longest, readBreakpointMs(list[index]))
  return longest
}

/** The longest TTL of the cache breakpoints on messages and their parts. */
export function readMessageBreakpointsMs(messages: unknown): number | undefined {
  let longest: number | undefined
  if (!Array.isArray(messages)) return longest
  for (let index = 0; index < messages.length; index = nextPosition(index, messages.length)) {
    const message: unknown = messages[index]
    if (isObject(message))
      longest = longerMs(longerMs(longest, readBreakpointMs(message)), readBreakpointsMs(message.content))
  }
  return longest
}

const nextPosition = (index: number, length: number): number =>
  index + 1 === ENDS_SEARCHED ? Math.max(ENDS_SEARCHED, length - ENDS_SEARCHED) : index + 1

export function readBreakpointMs(value: unknown): number | undefined {
  if (!isObject(value)) return undefined
  const mark = value.cache_control ?? value.prompt_cache_breakpoint
  return isObject(mark) ? parseTtlMs(mark.ttl) : undefined
}

/** The TTL in the cache options of a request in one of OpenAI's dialects. */
export function readCacheOptionsMs(json: Json): number | undefined {
  const { prompt_cache_retention: retention, prompt_cache_options: options } = json
  return longerMs(parseTtlMs(retention), isObject(options) ? parseTtlMs(options.ttl) : undefined)
}
