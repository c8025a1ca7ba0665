// How a conversation begins, as a short text: every turn of it begins the same, and others begin otherwise. It is only
// ever compared, so that turns which share a prompt cache can go where that cache is.
import { isObject } from './json-object.ts'
import type { Json } from './json-type.ts'

export interface Beginning {
  /** The caller's own name for what is cached, which says more than any text. */
  readonly key?: unknown
  /** Whom the call is for: many conversations of one user begin alike. */
  readonly user?: unknown
  readonly tools?: readonly unknown[] | undefined
  readonly system: unknown
  /** What the user said first. */
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
  /** Of a long text its end and length as well: what differs often comes after a preamble. */
  readonly tailChars: number
}

/** Often tells the time at its end, which is cached up to there all the same. */
const systemSample: Sample = { textsMax: 3, charsMax: 256, tailChars: 0 }
const firstSample: Sample = { textsMax: 4, charsMax: 192, tailChars: 64 }

export function beginningText({ key, user, tools, system, first }: Beginning): string {
  if (typeof key === 'string' && key !== '') return `key\n${key.slice(0, KEY_CHARS_MAX)}`
  const whom = typeof user === 'string' ? user.slice(0, USER_CHARS_MAX) : ''
  return `${whom}\n${toolsText(tools)}\n${textsOf(system, systemSample)}\n${textsOf(first, firstSample)}`
}

function toolsText(tools: readonly unknown[] | undefined): string {
  if (tools === undefined || tools.length === 0) return ''
  let text = String(tools.length)
  for (let at = 0; at < tools.length && at < TOOLS_MAX; at++) text += `,${nameOf(tools[at])}`
  return text
}

function nameOf(tool: unknown): string {
  if (!isObject(tool)) return ''
  const inner = isObject(tool.function) ? tool.function : isObject(tool.custom) ? tool.custom : tool
  const name = inner.name ?? tool.type
  return typeof name === 'string' ? name.slice(0, TOOL_CHARS_MAX) : ''
}

/** The texts in a value, wherever they are: a text by itself is the same as a list of one part with it. */
function textsOf(value: unknown, sample: Sample): string {
  const found = { text: '', texts: 0, values: 0 }
  gather(value, sample, found)
  return found.text
}

function gather(value: unknown, sample: Sample, found: { text: string; texts: number; values: number }): void {
  if (found.texts >= sample.textsMax || ++found.values > VALUES_MAX) return
  if (typeof value === 'string') {
    found.texts++
    found.text += `${sampled(value, sample)}\n`
  } else if (Array.isArray(value)) {
    for (let at = 0; at < value.length && found.values <= VALUES_MAX; at++) gather(value[at], sample, found)
  } else if (isObject(value)) {
    for (const name in value) if (!isAside(name)) gather(value[name], sample, found)
  }
}

/** The same in all parts, or set anew in each turn. */
const isAside = (name: string): boolean =>
  name === 'type' || name === 'role' || name === 'cache_control' || name === 'prompt_cache_breakpoint'

function sampled(text: string, { charsMax, tailChars }: Sample): string {
  const head = text.slice(0, charsMax)
  if (tailChars === 0 || text.length <= charsMax) return head
  return `${head}${text.length}${text.slice(Math.max(charsMax, text.length - tailChars))}`
}

/** Of messages with roles: what stands before the user's first one, and that one. */
export function firstMessages(messages: unknown, systemRoles: readonly string[]): Pick<Beginning, 'system' | 'first'> {
  const system: unknown[] = []
  for (const message of Array.isArray(messages) ? (messages as readonly unknown[]) : []) {
    if (!isObject(message)) continue
    if (message.role === 'user') return { system, first: message.content }
    if (systemRoles.includes(message.role as string)) system.push(message.content)
  }
  return { system, first: undefined }
}

export const listOf = (value: unknown): readonly unknown[] | undefined => (Array.isArray(value) ? value : undefined)

const MINUTE_MS = 60_000
const keptMs: ReadonlyMap<unknown, number> = new Map([
  ['5m', 5 * MINUTE_MS],
  ['30m', 30 * MINUTE_MS],
  ['1h', 60 * MINUTE_MS],
  ['12h', 12 * 60 * MINUTE_MS],
  ['24h', 24 * 60 * MINUTE_MS],
])

/** Marks stand on what is long and stays, which is first, and on what was said last. */
const EDGE = 8

/** How long such a word asks for; undefined where it says nothing. */
export const spanMs = (word: unknown): number | undefined => keptMs.get(word)

export const longer = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || (other !== undefined && other > one) ? other : one

/** The longest that a mark on one of these objects asks for. */
export function markedMs(list: unknown): number | undefined {
  let longest: number | undefined
  if (!Array.isArray(list)) return longest
  for (let at = 0; at < list.length; at = nextEdge(at, list.length)) longest = longer(longest, markMs(list[at]))
  return longest
}

/** The same of messages and their parts. */
export function markedMessagesMs(messages: unknown): number | undefined {
  let longest: number | undefined
  if (!Array.isArray(messages)) return longest
  for (let at = 0; at < messages.length; at = nextEdge(at, messages.length)) {
    const message: unknown = messages[at]
    if (isObject(message)) longest = longer(longer(longest, markMs(message)), markedMs(message.content))
  }
  return longest
}

const nextEdge = (at: number, length: number): number => (at + 1 === EDGE ? Math.max(EDGE, length - EDGE) : at + 1)

export function markMs(value: unknown): number | undefined {
  if (!isObject(value)) return undefined
  const mark = value.cache_control ?? value.prompt_cache_breakpoint
  return isObject(mark) ? spanMs(mark.ttl) : undefined
}

/** What OpenAI's dialects ask for beside their messages. */
export function askedMs(json: Json): number | undefined {
  const { prompt_cache_retention: retention, prompt_cache_options: options } = json
  return longer(spanMs(retention), isObject(options) ? spanMs(options.ttl) : undefined)
}
