// Reads the blocks of messages into the parts of turns.

import { writeJson } from '../../base/text/long-integers.ts'
import type {
  CacheBreakpoint,
  CallPart,
  Citation,
  ConversationPart,
  MediaPart,
  MediaSource,
  ReasoningPart,
  ResultPart,
  Role,
  TextPart,
} from '../neutral/conversation.ts'
import type { ReasoningState } from '../neutral/reasoning-state.ts'
import { invalid } from '../request/checks.ts'
import type { FieldTable, LossPath } from '../request/fields.ts'
import { findLostFields, tableOf } from '../request/fields.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import type { LostFields } from './fields.ts'
import { blockFields, cacheFields, sourceFields } from './fields.ts'
import { isPacked, readPackedState } from './packed-state.ts'

/** Undefined for a block without a cache mark. */
export function readCacheBreakpoint(value: unknown, path: string, unread: LostFields): CacheBreakpoint | undefined {
  if (value === undefined || value === null) return undefined
  if (!isObject(value) || value.type !== 'ephemeral') throw invalid(path, 'must be of the type ephemeral')
  unread.addLost(value, cacheFields, 'cache_control')
  const ttl = value.ttl ?? undefined
  if (ttl === undefined) return {}
  if (ttl !== '5m' && ttl !== '1h') throw invalid(`${path}.ttl`, 'must be 5m or 1h')
  return { ttl }
}

type ContentPart = TextPart | MediaPart

/** The blocks in a result. What a search for tools found becomes text: other dialects offer all tools from the start. */
const INNER_TYPES: ReadonlySet<unknown> = new Set(['text', 'image', 'document', 'search_result', 'tool_reference'])

/**
 * Reads the content of all messages of one request. It adds the name of the tool to each result, and reasoning state to
 * each call that has some.
 */
export class AnthropicContentReader {
  readonly lostFields: LostFields
  readonly #toolNames = new Map<string, string>()

  constructor(unread: LostFields) {
    this.lostFields = unread
  }

  read(content: unknown, path: string, role: Role): readonly ConversationPart[] {
    if (typeof content === 'string') return content === '' ? [] : [{ kind: 'text', text: content }]
    if (!Array.isArray(content)) throw invalid(path, 'must be a text or a list of blocks')
    const parts: ConversationPart[] = []
    const states = new Map<string, ReasoningState>()
    for (const [index, block] of content.entries()) {
      const at = `${path}[${index}]`
      const object = isObject(block) && typeof block.type === 'string' ? block : undefined
      if (object === undefined) throw invalid(at, 'must be an object with a type')
      const state = object.type === 'redacted_thinking' ? readPackedState(object.data) : undefined
      if (state?.callId !== undefined) states.set(state.callId, state.sealed)
      else parts.push(...this.#readBlock(object, at, role))
    }
    return states.size === 0 ? parts : parts.map(part => addState(part, states))
  }

  #readBlock(block: Json, at: string, role: Role): readonly ConversationPart[] {
    const type = block.type as string
    const table = Object.hasOwn(blockFields, type) ? blockFields[type] : undefined
    if (table === undefined) return [{ kind: 'native', dialect: 'anthropic-messages', what: type, value: block }]
    this.lostFields.addLost(block, table, `messages.${type}`)
    if (role === 'system' && type !== 'text') throw invalid(at, 'must be text')
    switch (type) {
      case 'thinking':
        return readThinking(block, at)
      case 'redacted_thinking':
        return readRedacted(block, at)
      case 'tool_use':
        return [this.#readCall(block, at)]
      case 'tool_result':
        if (role !== 'user') throw invalid(at, 'must be in a message of the user')
        return [this.#readResult(block, at)]
      case 'compaction': {
        const text = block.content ?? ''
        return text === ''
          ? []
          : [{ kind: 'text', text: requireText(block, 'content', at), ...this.#readMark(block, at) }]
      }
      default:
        return this.#readContentPart(block, at)
    }
  }

  /** Reads a block of a type that is also allowed in the result of a tool. */
  #readContentPart(block: Json, at: string): readonly ContentPart[] {
    switch (block.type) {
      case 'text': {
        const text = requireText(block, 'text', at)
        const citations = readCitations(block.citations, this.lostFields)
        return text === ''
          ? []
          : [{ kind: 'text', text, ...(citations && { citations }), ...this.#readMark(block, at) }]
      }
      case 'image':
        return [
          {
            kind: 'image',
            source: readSource(block.source, `${at}.source`, this.lostFields),
            ...this.#readMark(block, at),
          },
        ]
      case 'document':
        return this.#readDocument(block, at)
      case 'tool_reference': {
        const text = `The tool ${requireText(block, 'tool_name', at)} is available.`
        return [{ kind: 'text', text, ...this.#readMark(block, at) }]
      }
      default:
        return [this.#readSearchResult(block, at)]
    }
  }

  /** Texts inside of a block become one text, so that their last mark is the mark of the block. */
  #readMark(block: Json, at: string, inner: readonly ContentPart[] = []): { readonly cache?: CacheBreakpoint } {
    const own = readCacheBreakpoint(block.cache_control, `${at}.cache_control`, this.lostFields)
    const cache = own ?? inner.findLast(part => part.kind === 'text' && part.cache !== undefined)?.cache
    return cache === undefined ? {} : { cache }
  }

  /** Reads a document. One that consists of blocks becomes one document of all texts, followed by its images. */
  #readDocument(block: Json, at: string): readonly ContentPart[] {
    const name = typeof block.title === 'string' && block.title !== '' ? { name: block.title } : {}
    const { source } = block
    const buildFile = (from: MediaSource, inner: readonly ContentPart[] = []): MediaPart => ({
      kind: 'file',
      source: from,
      ...name,
      ...this.#readMark(block, at, inner),
    })
    if (!isObject(source) || source.type !== 'content')
      return [buildFile(readSource(source, `${at}.source`, this.lostFields))]
    const inner = this.#readInner(source.content, `${at}.source.content`)
    const text = inner.flatMap(part => (part.kind === 'text' ? [part.text] : [])).join('\n')
    const images = inner.filter(part => part.kind !== 'text')
    return text === '' ? images : [buildFile({ at: 'text', text, mime: 'text/plain' }, inner), ...images]
  }

  /** No other dialect has search results, so one becomes a text document that begins with its source. */
  #readSearchResult(block: Json, at: string): MediaPart {
    const inner = this.#readInner(block.content, `${at}.content`)
    const texts = inner.flatMap(part => (part.kind === 'text' ? [part.text] : []))
    const text = `${requireText(block, 'source', at)}\n\n${texts.join('\n')}`
    const name = typeof block.title === 'string' && block.title !== '' ? { name: block.title } : {}
    const source = { at: 'text', text, mime: 'text/plain' } as const
    return { kind: 'file', source, ...name, ...this.#readMark(block, at, inner) }
  }

  /** Reads the blocks inside a block. Those that no other dialect has are lost. */
  #readInner(content: unknown, at: string): readonly ContentPart[] {
    if (content === undefined || content === null || content === '') return []
    if (typeof content === 'string') return [{ kind: 'text', text: content }]
    if (!Array.isArray(content)) throw invalid(at, 'must be a text or a list of blocks')
    return content.flatMap((block: unknown, index): readonly ContentPart[] => {
      if (!isObject(block)) throw invalid(`${at}[${index}]`, 'must be an object with a type')
      const { type } = block
      if (!INNER_TYPES.has(type)) {
        this.lostFields.add(`messages.${typeof type === 'string' ? type : 'block'}`)
        return []
      }
      this.lostFields.addLost(block, blockFields[type as string]!, `messages.${type as string}`)
      return this.#readContentPart(block, `${at}[${index}]`)
    })
  }

  #readCall(block: Json, at: string): CallPart {
    const [id, name] = [requireText(block, 'id', at), requireText(block, 'name', at)]
    const input = block.input ?? {}
    if (!isObject(input)) throw invalid(`${at}.input`, 'must be an object')
    if (isObject(block.caller) && block.caller.type !== 'direct') this.lostFields.add('messages.tool_use.caller')
    this.#toolNames.set(id, name)
    return { kind: 'call', id, name, arguments: writeJson(input), ...this.#readMark(block, at) }
  }

  #readResult(block: Json, at: string): ResultPart {
    const callId = requireText(block, 'tool_use_id', at)
    const name = this.#toolNames.get(callId)
    return {
      kind: 'result',
      callId,
      ...(name !== undefined && { name }),
      parts: this.#readInner(block.content, `${at}.content`),
      ...(block.is_error === true && { failed: true }),
      ...this.#readMark(block, at),
    }
  }
}

function addState(part: ConversationPart, states: ReadonlyMap<string, ReasoningState>): ConversationPart {
  const sealed = part.kind === 'call' ? states.get(part.id) : undefined
  return sealed === undefined ? part : { ...(part as CallPart), sealed }
}

function requireText(block: Json, field: string, at: string): string {
  const text = block[field]
  if (typeof text !== 'string') throw invalid(`${at}.${field}`, 'must be a text')
  return text
}

/** State that is not packed came unchanged from an upstream of this dialect, so its origin is not known. */
function readThinking(block: Json, at: string): readonly ReasoningPart[] {
  const text = requireText(block, 'thinking', at)
  const signature = block.signature ?? ''
  if (typeof signature !== 'string') throw invalid(`${at}.signature`, 'must be a text')
  const ownState: ReasoningState | undefined = signature === '' ? undefined : { form: 'signature', value: signature }
  const sealed = isPacked(signature) ? readPackedState(signature)?.sealed : ownState
  if (text === '' && sealed === undefined) return []
  return [{ kind: 'reasoning', text, ...(sealed && { sealed }) }]
}

function readRedacted(block: Json, at: string): readonly ReasoningPart[] {
  const data = requireText(block, 'data', at)
  const sealed = isPacked(data) ? readPackedState(data)?.sealed : ({ form: 'redacted', value: data } as const)
  return sealed === undefined ? [] : [{ kind: 'reasoning', text: '', sealed }]
}

function readSource(source: unknown, at: string, unread: LostFields): MediaSource {
  if (!isObject(source)) throw invalid(at, 'must be an object')
  unread.addLost(source, sourceFields, 'messages.source')
  switch (source.type) {
    case 'base64':
      return { at: 'inline', base64: requireText(source, 'data', at), mime: requireText(source, 'media_type', at) }
    case 'text':
      return { at: 'text', text: requireText(source, 'data', at), mime: 'text/plain' }
    case 'url':
      return { at: 'url', url: requireText(source, 'url', at) }
    case 'file':
      return { at: 'provider', id: requireText(source, 'file_id', at) }
    default:
      throw invalid(`${at}.type`, 'must be base64, url, file, text or content')
  }
}

/** The place in the source (characters, pages, blocks) is lost, because no other dialect has it. */
const citationFields: FieldTable = {
  ...tableOf('read', 'type url source title document_title cited_text'),
  ...tableOf('moot', 'document_index search_result_index file_id encrypted_index'),
}

/** Citations of this dialect have no positions in the text: they belong to the whole text. */
export function readCitations(citations: unknown, lost: LossPath['losses']): readonly Citation[] | undefined {
  if (!Array.isArray(citations)) return undefined
  const readable = citations.map(one => readCitation(one, lost)).filter(citation => citation !== undefined)
  if (readable.length < citations.length) lost.add('citations')
  return readable.length === 0 ? undefined : readable
}

export function readCitation(value: unknown, lost: LossPath['losses']): Citation | undefined {
  if (!isObject(value)) return undefined
  for (const path of findLostFields(value, citationFields, 'citations')) lost.add(path)
  const text = (...names: readonly string[]): string | undefined => {
    const found = names.map(name => value[name]).find(value => typeof value === 'string' && value !== '')
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
