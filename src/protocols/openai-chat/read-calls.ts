// The calls of tools in one choice of a chat answer, put together from their pieces. Upstreams leave out the index,
// repeat or leave out the id, send the name late, and send the pieces of several calls by turns.

import type { Sealed } from '../neutral/reasoning-state.ts'
import type { AnswerSource } from '../protocol.ts'
import { isObject, parseText } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import type { EventList } from './event-list.ts'
import { readThought } from './reasoning-state.ts'

interface CallState {
  /** The upstream's. */
  id: string
  name: string
  custom: boolean
  /** As the upstream names its kind. */
  type: string
  /** What has come and is not told yet. */
  waiting: string
  wrote: boolean
  sealed: Sealed | undefined
  /** Of its part, once that is open. */
  part: number | undefined
  /** It is told as what the caller gave, a tool of free text. */
  wrapped: boolean
}

const nonEmpty = (value: unknown): string => (typeof value === 'string' ? value : '')

export class CallReader {
  readonly #list: EventList
  readonly #source: AnswerSource
  readonly #choice: number
  readonly #ids: Set<string>
  readonly #calls: CallState[] = []
  readonly #byIndex = new Map<number, CallState>()
  readonly #byId = new Map<string, CallState>()

  /** `ids`: of all calls of the answer. */
  constructor(choice: number, list: EventList, { source, ids }: { source: AnswerSource; ids: Set<string> }) {
    this.#choice = choice
    this.#list = list
    this.#source = source
    this.#ids = ids
  }

  get isEmpty(): boolean {
    return this.#calls.every(call => call.name === '')
  }

  /** Some of them were of a kind that nobody knows, and are lost. */
  get hasUnknown(): boolean {
    return this.#calls.some(call => call.name === '')
  }

  /** A piece of a call, or all of it. */
  take(piece: unknown): void {
    if (!isObject(piece)) return
    const isCustom = isCustomPiece(piece)
    const given = isCustom ? piece.custom : piece.function
    const inner = isObject(given) ? given : {}
    const name = nonEmpty(inner.name)
    const text = argumentsOf(isCustom ? inner.input : inner.arguments)
    const call = this.#find(piece, name, text)
    if (call === undefined) return
    call.custom ||= isCustom
    call.type ||= nonEmpty(piece.type)
    call.sealed ??= this.#sealed(piece.extra_content)
    call.waiting += text
    if (call.part === undefined && call.name !== '' && (call.id !== '' || call.waiting !== '')) this.#open(call)
    this.#tell(call)
  }

  end(): void {
    for (const call of this.#calls) {
      if (call.name === '') {
        this.#source.notes.losses.add(call.type === '' ? 'tool_calls' : `tool_calls.${call.type}`)
        continue
      }
      const known = call.part === undefined ? undefined : call.sealed
      const part = call.part ?? this.#open(call)
      if (call.wrapped) call.waiting = unwrapped(call.waiting)
      else if (!call.wrote && call.waiting === '' && !call.custom) call.waiting = '{}'
      call.wrapped = false
      this.#tell(call)
      this.#list.push({ kind: 'close', index: part, ...(known && { sealed: known }) })
    }
  }

  /** The call that a piece belongs to; undefined for a piece that says nothing of any. */
  #find(piece: Json, name: string, text: string): CallState | undefined {
    const index = Number.isSafeInteger(piece.index) ? (piece.index as number) : undefined
    const id = nonEmpty(piece.id)
    const known = index !== undefined ? this.#byIndex.get(index) : id !== '' ? this.#byId.get(id) : this.#calls.at(-1)
    if (known !== undefined && !isAnother(known, { id, name, hasIndex: index !== undefined })) {
      known.id ||= id
      known.name ||= name
      return known
    }
    if (id === '' && name === '' && text === '') return undefined
    const flags = { custom: false, wrote: false, wrapped: false }
    const call: CallState = { id, name, type: '', ...flags, waiting: '', sealed: undefined, part: undefined }
    this.#calls.push(call)
    if (index !== undefined) this.#byIndex.set(index, call)
    if (id !== '') this.#byId.set(id, call)
    return call
  }

  #open(call: CallState): number {
    const { notes } = this.#source
    call.wrapped = notes.wrapped?.has(call.name) ?? false
    const id = call.id !== '' && !this.#ids.has(call.id) ? call.id : this.#source.mintCallId()
    this.#ids.add(id)
    const { sealed } = call
    const custom = call.custom || call.wrapped
    call.part = this.#list.open(this.#choice, {
      part: 'call',
      id,
      name: notes.renamed.get(call.name) ?? call.name,
      ...(custom && { custom }),
      ...(sealed && { sealed }),
    })
    // It is told; what comes later is told at the end.
    call.sealed = undefined
    return call.part
  }

  #tell(call: CallState): void {
    if (call.part === undefined || call.waiting === '' || call.wrapped) return
    this.#list.push({ kind: 'delta', index: call.part, text: call.waiting })
    call.waiting = ''
    call.wrote = true
  }

  #sealed(extra: unknown): Sealed | undefined {
    const sealed = readThought(extra)
    return sealed && { ...sealed, origin: this.#source.origin }
  }
}

/** Some servers write both kinds into every call, the one that it is not with empty texts. */
function isCustomPiece({ type, custom, function: own }: Json): boolean {
  if (!isObject(custom)) return false
  return !isObject(own) || (nonEmpty(own.name) === '' && (type === 'custom' || nonEmpty(custom.name) !== ''))
}

/** A piece with a name and an id of its own begins a call, also at an index that is taken. */
function isAnother(known: CallState, piece: { id: string; name: string; hasIndex: boolean }): boolean {
  if (piece.name === '') return false
  if (piece.id !== '') return known.id !== '' && known.id !== piece.id
  return !piece.hasIndex && known.name !== '' && (known.wrote || known.waiting !== '')
}

/** A text as it is; some upstreams send the object itself. */
function argumentsOf(value: unknown): string {
  if (typeof value === 'string') return value
  return value === undefined || value === null ? '' : JSON.stringify(value)
}

/** What the model wrote for a tool of free text that was given to it as a function. */
function unwrapped(text: string): string {
  try {
    const { input } = parseText(text) as { readonly input?: unknown }
    return typeof input === 'string' ? input : text
  } catch {
    return text
  }
}
