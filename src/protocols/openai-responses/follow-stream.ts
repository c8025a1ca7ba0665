// Follows a Responses stream for a caller of the same dialect: collects it into a plain response, or ends it in the
// middle. Clients are strict: the end must close each open part and item, at its own index and with the next sequence
// number, and repeat the whole output.

import { answerTooLarge } from '../../base/answer-too-large.ts'
import { bounds } from '../../base/bounds.ts'
import type { Usage } from '../../base/money/usage.ts'
import { CUT_ARGUMENTS } from '../neutral/cut-call.ts'
import type { MutableJson } from '../neutral/merge-pieces.ts'
import { mergePiece } from '../neutral/merge-pieces.ts'
import type { AnswerTarget, StreamFollower } from '../protocol.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { writeRequestFields } from './response-object.ts'
import { writeUsage } from './usage.ts'

/** The limit of items, and of parts in an item. No real answer has so many. */
const ITEMS_MAX = 4_096

type PartList = 'content' | 'summary'

/** Texts in the parts of an item: the list of the parts, and the field of the text. */
const partTexts: Readonly<Record<string, readonly [list: PartList, field: string]>> = {
  output_text: ['content', 'text'],
  refusal: ['content', 'refusal'],
  reasoning_text: ['content', 'text'],
  reasoning_raw_text: ['content', 'text'],
  reasoning_summary_text: ['summary', 'text'],
}

/** Texts of an item itself: the field of the text. */
const itemTexts: Readonly<Record<string, string>> = {
  function_call_arguments: 'arguments',
  mcp_call_arguments: 'arguments',
  custom_tool_call_input: 'input',
  code_interpreter_call_code: 'code',
}

/** The text of an item by the item's type. */
const textOfItem: Readonly<Record<string, string>> = {
  function_call: 'function_call_arguments',
  mcp_call: 'mcp_call_arguments',
  custom_tool_call: 'custom_tool_call_input',
  code_interpreter_call: 'code_interpreter_call_code',
}

/** The text of a part by the part's type. */
const textOfPart: Readonly<Record<string, string>> = {
  output_text: 'output_text',
  refusal: 'refusal',
  reasoning_text: 'reasoning_text',
  summary_text: 'reasoning_summary_text',
}

/** Items of these types have no status `incomplete`. */
const FAILING_TYPES: readonly unknown[] = ['web_search_call', 'image_generation_call']
/** Items that get a status where the upstream gave none. */
const STATUS_TYPES: readonly unknown[] = ['message', 'function_call', 'custom_tool_call', 'reasoning']

interface FollowedItem {
  json: MutableJson
  isDone: boolean
  /** What has its own end event and has had it: `content:0`, `content:0:text`, `summary:1`, `arguments`. */
  readonly done: Set<string>
}

export class ResponsesStreamFollower implements StreamFollower {
  readonly #requestFields: string
  readonly #keepsContent: boolean
  readonly #items = new Map<number, FollowedItem>()
  #response: Json | undefined
  /** The response of the last event. */
  #finalResponse: Json | undefined
  #sequence = 0
  #charCount = 0
  /** The position of the current item. */
  #position = 0
  #text = ''

  constructor(target: AnswerTarget, keepsContent: boolean) {
    this.#requestFields = writeRequestFields(target)
    this.#keepsContent = keepsContent
  }

  follow(event: unknown): void {
    if (!isObject(event) || typeof event.type !== 'string') return
    const { sequence_number: number, response } = event
    this.#sequence = Number.isSafeInteger(number) ? (number as number) + 1 : this.#sequence + 1
    const name = event.type.replace(/^response\./, '')
    if (isObject(response)) {
      if (/^(completed|incomplete|cancelled)$/.test(name)) this.#finalResponse = response
      else this.#response = response
      return
    }
    if (name === 'output_item.added' || name === 'output_item.done') return this.#followItem(event, name)
    const part = /^(content|reasoning_summary)_part\.(added|done)$/.exec(name)
    if (part !== null) return this.#followPart(event, part[1] === 'content' ? 'content' : 'summary', part[2] === 'done')
    const text = /^(\w+)\.(delta|done)$/.exec(name)
    if (text !== null) return this.#followText(event, text[1]!, text[2] === 'done')
    if (name === 'output_text.annotation.added') this.#followAnnotation(event)
  }

  endEarly(usage: Usage): string {
    this.#text = ''
    for (const [at, item] of this.#sortedItems()) if (!item.isDone) this.#endItem(at, item)
    const output = this.#sortedItems().map(([, { json }]) => json)
    this.#emit('incomplete', { response: this.#cutResponse(output, usage) })
    return this.#text
  }

  answer(cut?: Usage): Json {
    const items = this.#sortedItems().map(([, item]) => item)
    if (cut !== undefined) {
      const kept = items.filter(item => item.isDone || hasContent(item))
      return this.#cutResponse(
        kept.map(item => (item.isDone ? item.json : cutItem(item))),
        cut,
      )
    }
    const response = this.#finalResponse ?? this.#response ?? this.#fallback()
    const { output } = response
    // Some servers do not repeat the output in the last event.
    const isRepeated = Array.isArray(output) && output.length >= items.length
    return isRepeated ? response : { ...response, output: items.map(({ json }) => json) }
  }

  #fallback(): Json {
    return JSON.parse(`{${this.#requestFields}}`) as Json
  }

  #cutResponse(output: readonly Json[], usage: Usage): Json {
    const reason = { reason: 'max_output_tokens' }
    const end = { status: 'incomplete', error: null, incomplete_details: reason, output, usage: writeUsage(usage) }
    return { ...(this.#response ?? this.#fallback()), ...end }
  }

  #sortedItems(): [number, FollowedItem][] {
    return [...this.#items].sort(([a], [b]) => a - b)
  }

  #item({ output_index: at }: Json): FollowedItem | undefined {
    if (Number.isSafeInteger(at)) this.#position = at as number
    return this.#items.get(this.#position)
  }

  #followItem(event: Json, name: string): void {
    const known = this.#item(event)
    if (!isObject(event.item)) return
    if (known === undefined && this.#items.size >= ITEMS_MAX) {
      throw answerTooLarge(`The answer has more than ${ITEMS_MAX} items.`)
    }
    const isDone = name === 'output_item.done'
    this.#count(event.item)
    this.#items.set(this.#position, { json: copyOf(event.item), isDone, done: new Set() })
  }

  #followPart(event: Json, list: PartList, isDone: boolean): void {
    const item = this.#item(event)
    const at = indexIn(event, list)
    if (item === undefined || !isObject(event.part)) return
    this.#count(event.part)
    partsOf(item, list)[at] = copyOf(event.part)
    if (isDone) item.done.add(`${list}:${at}`)
  }

  #followText(event: Json, name: string, isDone: boolean): void {
    const item = this.#item(event)
    const partText = Object.hasOwn(partTexts, name) ? partTexts[name] : undefined
    const own = partText?.[1] ?? (Object.hasOwn(itemTexts, name) ? itemTexts[name] : undefined)
    if (item === undefined || own === undefined) return
    const at = partText === undefined ? 0 : indexIn(event, partText[0])
    const holder = partText === undefined ? item.json : partAt(item, partText[0], { at, name })
    if (isDone) item.done.add(partText === undefined ? own : `${partText[0]}:${at}:text`)
    const text = isDone ? event[own] : event.delta
    if (typeof text !== 'string') return
    this.#count(text)
    holder[own] = isDone || typeof holder[own] !== 'string' ? text : (holder[own] as string) + text
    // They are many times as large as the text, and an answer that is cut may leave them out.
    if (!isDone && this.#keepsContent && Array.isArray(event.logprobs)) mergePiece(holder, { logprobs: event.logprobs })
  }

  #followAnnotation(event: Json): void {
    const item = this.#item(event)
    if (item === undefined) return
    this.#count(event.annotation)
    mergePiece(partAt(item, 'content', { at: indexIn(event, 'content'), name: 'output_text' }), {
      annotations: [event.annotation],
    })
  }

  #count(value: unknown): void {
    this.#charCount += typeof value === 'string' ? value.length : JSON.stringify(value ?? null).length
    if (this.#charCount > bounds.frameBytesMax) {
      throw answerTooLarge('The answer is too long to be repeated in the last event.')
    }
  }

  #emit(name: string, fields: Json): void {
    const type = `response.${name}`
    const numbered = { type, sequence_number: this.#sequence++, ...fields }
    this.#text += `event: ${type}\ndata: ${JSON.stringify(numbered)}\n\n`
  }

  #endItem(at: number, item: FollowedItem): void {
    const position = { ...(item.json.id !== undefined && { item_id: item.json.id }), output_index: at }
    for (const list of ['summary', 'content'] as const) {
      const parts = Array.isArray(item.json[list]) ? (item.json[list] as unknown[]) : []
      for (const [index, part] of parts.entries()) {
        if (isObject(part)) this.#endPart(item, part, { list, index, position })
      }
    }
    this.#endText(item, position)
    item.json = cutItem(item)
    item.isDone = true
    this.#emit('output_item.done', { output_index: at, item: item.json })
  }

  #endPart({ done }: FollowedItem, part: Json, { list, index, position }: PartPosition): void {
    const key = `${list}:${index}`
    if (done.has(key)) return
    const at = { ...position, [list === 'summary' ? 'summary_index' : 'content_index']: index }
    const name = textOfPart[part.type as string]
    if (name !== undefined && !done.has(`${key}:text`)) {
      const field = partTexts[name]![1]
      const logprobs = name === 'output_text' ? { logprobs: part.logprobs ?? [] } : {}
      this.#emit(`${name}.done`, { ...at, [field]: part[field] ?? '', ...logprobs })
    }
    this.#emit(list === 'summary' ? 'reasoning_summary_part.done' : 'content_part.done', { ...at, part })
  }

  /** Ends the arguments of a call, or the code of the provider's tool. */
  #endText(item: FollowedItem, position: Json): void {
    const { json, done } = item
    const name = textOfItem[json.type as string]
    if (name === undefined) return
    const field = itemTexts[name]!
    if (done.has(field)) return
    if (json.type === 'function_call' && (json[field] ?? '') === '') {
      json[field] = CUT_ARGUMENTS
      this.#emit(`${name}.delta`, { ...position, delta: CUT_ARGUMENTS })
    }
    const own = json.type === 'function_call' ? { name: json.name } : {}
    this.#emit(`${name}.done`, { ...position, ...own, [field]: json[field] ?? '' })
  }
}

interface PartPosition {
  readonly list: PartList
  readonly index: number
  readonly position: Json
}

function copyOf(json: Json): MutableJson {
  const copy: MutableJson = {}
  mergePiece(copy, json)
  return copy
}

function partsOf({ json }: FollowedItem, list: PartList): unknown[] {
  if (!Array.isArray(json[list])) json[list] = []
  return json[list] as unknown[]
}

function indexIn(event: Json, list: PartList): number {
  const at = list === 'summary' ? event.summary_index : event.content_index
  if (!Number.isSafeInteger(at)) return 0
  if ((at as number) < 0 || (at as number) >= ITEMS_MAX) {
    throw answerTooLarge(`An item of the answer has more than ${ITEMS_MAX} parts.`)
  }
  return at as number
}

/** The part of a text. Some servers leave out the event that adds it. */
function partAt(item: FollowedItem, list: PartList, { at, name }: { at: number; name: string }): MutableJson {
  const parts = partsOf(item, list)
  const type = list === 'summary' ? 'summary_text' : name.replace('_raw', '')
  if (!isObject(parts[at])) parts[at] = { type, ...(name === 'output_text' && { text: '', annotations: [] }) }
  return parts[at] as MutableJson
}

/** An item that the answer ends in the middle of. The arguments of a call may be complete before the call ends. */
function cutItem({ json, done }: FollowedItem): MutableJson {
  const name = textOfItem[json.type as string]
  if (name !== undefined && done.has(itemTexts[name]!)) return { ...json, status: 'completed' }
  if (FAILING_TYPES.includes(json.type)) return { ...json, status: 'failed' }
  const hasStatus = json.status !== undefined || STATUS_TYPES.includes(json.type)
  return hasStatus ? { ...json, status: 'incomplete' } : json
}

/** Whether a plain answer should have an item that was cut. */
function hasContent({ json }: FollowedItem): boolean {
  const name = textOfItem[json.type as string]
  if (name !== undefined) return (json[itemTexts[name]!] ?? '') !== ''
  if (json.type === 'reasoning' && json.encrypted_content) return true
  const parts = [json.content, json.summary].flatMap(list => (Array.isArray(list) ? (list as unknown[]) : []))
  const isEmpty = (part: unknown): boolean => !isObject(part) || (part.text ?? part.refusal) === ''
  return (json.type !== 'message' && json.type !== 'reasoning') || !parts.every(isEmpty)
}
