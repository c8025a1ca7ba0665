// The blocks of a message, as the parts of a turn.

import type {
  CacheMark,
  CallPart,
  Citation,
  MediaPart,
  Part,
  ReasoningPart,
  ResultPart,
  Role,
  Source,
  TextPart,
} from '../neutral/conversation.ts'
import type { Sealed } from '../neutral/reasoning-state.ts'
import { invalid } from '../request/checks.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import type { Unread } from './fields.ts'
import { blockFields, cacheFields, sourceFields } from './fields.ts'
import { isPacked, readState } from './foreign-state.ts'

/** Undefined for a mark that is none. */
export function readCacheMark(value: unknown, path: string, unread: Unread): CacheMark | undefined {
  if (value === undefined || value === null) return undefined
  if (!isObject(value) || value.type !== 'ephemeral') throw invalid(path, 'must be of the type ephemeral')
  unread.note(value, cacheFields, 'cache_control')
  const ttl = value.ttl ?? undefined
  if (ttl === undefined) return {}
  if (ttl !== '5m' && ttl !== '1h') throw invalid(`${path}.ttl`, 'must be 5m or 1h')
  return { ttl }
}

type Shown = TextPart | MediaPart

/** Reads all messages of one request: a result is told the name of its tool, a call its state. */
export class ContentReader {
  readonly unread: Unread
  readonly #toolNames = new Map<string, string>()

  constructor(unread: Unread) {
    this.unread = unread
  }

  read(content: unknown, path: string, role: Role): readonly Part[] {
    if (typeof content === 'string') return content === '' ? [] : [{ kind: 'text', text: content }]
    if (!Array.isArray(content)) throw invalid(path, 'must be a text or a list of blocks')
    const parts: Part[] = []
    const states = new Map<string, Sealed>()
    for (const [index, block] of content.entries()) {
      const at = `${path}[${index}]`
      const typed = isObject(block) && typeof block.type === 'string' ? block : undefined
      if (typed === undefined) throw invalid(at, 'must be an object with a type')
      const state = typed.type === 'redacted_thinking' ? readState(typed.data) : undefined
      if (state?.callId !== undefined) states.set(state.callId, state.sealed)
      else parts.push(...this.#block(typed, at, role))
    }
    return states.size === 0 ? parts : parts.map(part => withState(part, states))
  }

  #block(block: Json, at: string, role: Role): readonly Part[] {
    const type = block.type as string
    const table = Object.hasOwn(blockFields, type) ? blockFields[type] : undefined
    if (table === undefined) return [{ kind: 'native', dialect: 'anthropic-messages', what: type, value: block }]
    this.unread.note(block, table, `messages.${type}`)
    if (role === 'system' && type !== 'text') throw invalid(at, 'must be text')
    switch (type) {
      case 'thinking':
        return readThinking(block, at)
      case 'redacted_thinking':
        return readRedacted(block, at)
      case 'tool_use':
        return [this.#call(block, at)]
      case 'tool_result':
        if (role !== 'user') throw invalid(at, 'must be in a message of the user')
        return [this.#result(block, at)]
      case 'compaction': {
        const text = block.content ?? ''
        return text === '' ? [] : [{ kind: 'text', text: textOf(block, 'content', at), ...this.#mark(block, at) }]
      }
      default:
        return this.#shown(block, at)
    }
  }

  /** What may also stand in the result of a tool. */
  #shown(block: Json, at: string): readonly Shown[] {
    switch (block.type) {
      case 'text': {
        const text = textOf(block, 'text', at)
        const citations = readCitations(block.citations, this.unread)
        return text === '' ? [] : [{ kind: 'text', text, ...(citations && { citations }), ...this.#mark(block, at) }]
      }
      case 'image':
        return [
          {
            kind: 'image',
            source: readSource(block.source, `${at}.source`, this.unread),
            ...this.#mark(block, at),
          },
        ]
      case 'document':
        return this.#document(block, at)
      default:
        return [this.#searchResult(block, at)]
    }
  }

  #mark(block: Json, at: string): { readonly cache?: CacheMark } {
    const cache = readCacheMark(block.cache_control, `${at}.cache_control`, this.unread)
    return cache === undefined ? {} : { cache }
  }

  /** A document that is made of blocks: its texts as one document, and its images behind it. */
  #document(block: Json, at: string): readonly Shown[] {
    const name = typeof block.title === 'string' && block.title !== '' ? { name: block.title } : {}
    const { source } = block
    const file = (from: Source): MediaPart => ({ kind: 'file', source: from, ...name, ...this.#mark(block, at) })
    if (!isObject(source) || source.type !== 'content') return [file(readSource(source, `${at}.source`, this.unread))]
    const inner = this.#inner(source.content, `${at}.source.content`)
    const text = inner.flatMap(part => (part.kind === 'text' ? [part.text] : [])).join('\n')
    const images = inner.filter(part => part.kind !== 'text')
    return text === '' ? images : [file({ at: 'text', text, mime: 'text/plain' }), ...images]
  }

  /** Nobody else has a block for what was found: it is a document that names where it was. */
  #searchResult(block: Json, at: string): MediaPart {
    const texts = this.#inner(block.content, `${at}.content`).flatMap(part => (part.kind === 'text' ? [part.text] : []))
    const text = `${textOf(block, 'source', at)}\n\n${texts.join('\n')}`
    const name = typeof block.title === 'string' && block.title !== '' ? { name: block.title } : {}
    return { kind: 'file', source: { at: 'text', text, mime: 'text/plain' }, ...name, ...this.#mark(block, at) }
  }

  /** Blocks inside a block, of which some are of no other dialect. */
  #inner(content: unknown, at: string): readonly Shown[] {
    if (content === undefined || content === null || content === '') return []
    if (typeof content === 'string') return [{ kind: 'text', text: content }]
    if (!Array.isArray(content)) throw invalid(at, 'must be a text or a list of blocks')
    return content.flatMap((block: unknown, index): readonly Shown[] => {
      if (!isObject(block)) throw invalid(`${at}[${index}]`, 'must be an object with a type')
      const { type } = block
      const shown = type === 'text' || type === 'image' || type === 'document' || type === 'search_result'
      if (!shown) {
        this.unread.add(`messages.${typeof type === 'string' ? type : 'block'}`)
        return []
      }
      this.unread.note(block, blockFields[type]!, `messages.${type}`)
      return this.#shown(block, `${at}[${index}]`)
    })
  }

  #call(block: Json, at: string): CallPart {
    const [id, name] = [textOf(block, 'id', at), textOf(block, 'name', at)]
    const input = block.input ?? {}
    if (!isObject(input)) throw invalid(`${at}.input`, 'must be an object')
    if (isObject(block.caller) && block.caller.type !== 'direct') this.unread.add('messages.tool_use.caller')
    this.#toolNames.set(id, name)
    return { kind: 'call', id, name, arguments: JSON.stringify(input), ...this.#mark(block, at) }
  }

  #result(block: Json, at: string): ResultPart {
    const callId = textOf(block, 'tool_use_id', at)
    const name = this.#toolNames.get(callId)
    return {
      kind: 'result',
      callId,
      ...(name !== undefined && { name }),
      parts: this.#inner(block.content, `${at}.content`),
      ...(block.is_error === true && { failed: true }),
      ...this.#mark(block, at),
    }
  }
}

function withState(part: Part, states: ReadonlyMap<string, Sealed>): Part {
  const sealed = part.kind === 'call' ? states.get(part.id) : undefined
  return sealed === undefined ? part : { ...(part as CallPart), sealed }
}

function textOf(block: Json, field: string, at: string): string {
  const text = block[field]
  if (typeof text !== 'string') throw invalid(`${at}.${field}`, 'must be a text')
  return text
}

/** State without a name is the provider's own, as it came to a caller of this dialect from an upstream of it. */
function readThinking(block: Json, at: string): readonly ReasoningPart[] {
  const text = textOf(block, 'thinking', at)
  const signature = block.signature ?? ''
  if (typeof signature !== 'string') throw invalid(`${at}.signature`, 'must be a text')
  const own: Sealed | undefined = signature === '' ? undefined : { form: 'signature', value: signature }
  const sealed = isPacked(signature) ? readState(signature)?.sealed : own
  if (text === '' && sealed === undefined) return []
  return [{ kind: 'reasoning', text, ...(sealed && { sealed }) }]
}

function readRedacted(block: Json, at: string): readonly ReasoningPart[] {
  const data = textOf(block, 'data', at)
  const sealed = isPacked(data) ? readState(data)?.sealed : ({ form: 'redacted', value: data } as const)
  return sealed === undefined ? [] : [{ kind: 'reasoning', text: '', sealed }]
}

function readSource(source: unknown, at: string, unread: Unread): Source {
  if (!isObject(source)) throw invalid(at, 'must be an object')
  unread.note(source, sourceFields, 'messages.source')
  switch (source.type) {
    case 'base64':
      return { at: 'inline', base64: textOf(source, 'data', at), mime: textOf(source, 'media_type', at) }
    case 'text':
      return { at: 'text', text: textOf(source, 'data', at), mime: 'text/plain' }
    case 'url':
      return { at: 'url', url: textOf(source, 'url', at) }
    case 'file':
      return { at: 'provider', id: textOf(source, 'file_id', at) }
    default:
      throw invalid(`${at}.type`, 'must be base64, url, file, text or content')
  }
}

interface Lost {
  add(code: string): void
}

/** Where they stand in the text nobody says: they are of all of it. */
export function readCitations(citations: unknown, lost: Lost): readonly Citation[] | undefined {
  if (!Array.isArray(citations)) return undefined
  const read = citations.map(readCitation).filter(citation => citation !== undefined)
  if (read.length < citations.length) lost.add('citations')
  return read.length === 0 ? undefined : read
}

export function readCitation(value: unknown): Citation | undefined {
  if (!isObject(value)) return undefined
  const text = (...names: readonly string[]): string | undefined => {
    const found = names.map(name => value[name]).find(one => typeof one === 'string' && one !== '')
    return found as string | undefined
  }
  const [url, title, citedText] = [text('url', 'source'), text('title', 'document_title'), text('cited_text')]
  if (url === undefined && title === undefined && citedText === undefined) return undefined
  return {
    ...(url !== undefined && { url }),
    ...(title !== undefined && { title }),
    ...(citedText !== undefined && { citedText }),
  }
}
