// Reads the tool calls of one choice, which arrive in pieces. Upstreams mix the pieces of several calls.

import { isWholeObject } from '../neutral/cut-call.ts'
import type { ReasoningState } from '../neutral/reasoning-state.ts'
import type { AnswerSource } from '../protocol.ts'
import { isObject, parseNestedJson } from '../request/json-body.ts'
import { callFields, isUnknown } from './answer-fields.ts'
import type { BegunCall, CallPiece } from './call-pieces.ts'
import { addToCall, beginCall, isAnother, readCallPiece, textOf } from './call-pieces.ts'
import type { AnswerEventList } from './event-list.ts'
import { readCallSignature } from './reasoning-state.ts'

interface PartialCall extends BegunCall {
  custom: boolean
  /** The upstream's `type`. */
  type: string
  /** Arguments that have arrived and are not sent as an event yet. */
  pending: string
  wrote: boolean
  sealed: ReasoningState | undefined
  /** The index of the part, once it is open. */
  part: number | undefined
  /** A custom tool of the caller that was sent to the upstream as a function. */
  wrapped: boolean
}

export class CallReader {
  readonly #list: AnswerEventList
  readonly #source: AnswerSource
  readonly #choice: number
  readonly #ids: Set<string>
  readonly #calls: PartialCall[] = []
  readonly #byIndex = new Map<number, PartialCall>()
  readonly #byId = new Map<string, PartialCall>()
  #hasUnknown = false

  /** `ids`: the ids of all calls of the answer. */
  constructor(choice: number, list: AnswerEventList, { source, ids }: { source: AnswerSource; ids: Set<string> }) {
    this.#choice = choice
    this.#list = list
    this.#source = source
    this.#ids = ids
  }

  get isEmpty(): boolean {
    return this.#calls.every(call => call.name === '')
  }

  /** Some calls have an unknown form, and are lost. */
  get hasUnknown(): boolean {
    return this.#hasUnknown || this.#calls.some(call => call.name === '')
  }

  /** Notes a call without anything that is known here. */
  addUnknown(type: unknown): void {
    this.#hasUnknown = true
    this.#source.notes.losses.add(textOf(type) === '' ? 'tool_calls' : `tool_calls.${textOf(type)}`)
  }

  /** Reads a piece of a call, or a whole call. */
  addPiece(piece: unknown): void {
    if (!isObject(piece)) return piece === null ? undefined : this.addUnknown(undefined)
    const read = readCallPiece(piece)
    const call = this.#find(read)
    if (call === undefined) return isUnknown(piece, callFields) ? this.addUnknown(piece.type) : undefined
    addToCall(call, read)
    call.custom ||= read.isCustom
    call.type ||= textOf(piece.type)
    call.sealed ??= this.#readSignature(piece.extra_content)
    call.pending += read.text
    if (call.part === undefined && call.name !== '' && (call.id !== '' || call.pending !== '')) this.#open(call)
    this.#sendDelta(call)
  }

  /** `isCut`: the gateway ends the answer early. `isEarly`: the gateway or the upstream does. */
  end(isCut: boolean, isEarly: boolean): void {
    for (const call of this.#calls) {
      if (call.name === '') {
        if (isCut) continue
        this.#source.notes.losses.add(call.type === '' ? 'tool_calls' : `tool_calls.${call.type}`)
        continue
      }
      if (isEarly && call.part === undefined && this.#isLast(call)) continue // the call has no more than a name
      const known = call.part === undefined ? undefined : call.sealed
      const part = call.part ?? this.#open(call)
      const mayBeCut = isEarly && this.#mayBeCut(call)
      if (call.wrapped) call.pending = mayBeCut ? '' : unwrapped(call.pending)
      else if (!mayBeCut && !call.wrote && call.pending === '' && !call.custom) call.pending = '{}'
      call.wrapped = false
      this.#sendDelta(call)
      this.#list.push({ kind: 'close', index: part, ...(known && { sealed: known }), ...(mayBeCut && { isCut: true }) })
    }
  }

  /**
   * Free text does not say where it ends. Whether the arguments of a function are complete is decided later; a call
   * without any is complete if another call follows.
   */
  #mayBeCut(call: PartialCall): boolean {
    if (call.wrapped) return !isWholeObject(call.pending)
    return this.#isLast(call) || (!call.custom && (call.wrote || call.pending !== ''))
  }

  #isLast(call: PartialCall): boolean {
    return call === this.#calls.at(-1)
  }

  /** Returns the call that a piece belongs to. Undefined for an empty piece. */
  #find(piece: CallPiece): PartialCall | undefined {
    const { index, id, name, text } = piece
    const known = index !== undefined ? this.#byIndex.get(index) : id !== '' ? this.#byId.get(id) : this.#calls.at(-1)
    if (known !== undefined && !isAnother(known, piece)) return known
    if (id === '' && name === '' && text === '') return undefined
    const call: PartialCall = {
      ...beginCall(),
      custom: false,
      type: '',
      pending: '',
      wrote: false,
      sealed: undefined,
      part: undefined,
      wrapped: false,
    }
    this.#calls.push(call)
    if (index !== undefined) this.#byIndex.set(index, call)
    if (id !== '') this.#byId.set(id, call)
    return call
  }

  #open(call: PartialCall): number {
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
    // Sent with the opening. State that arrives later is sent when the part is closed.
    call.sealed = undefined
    return call.part
  }

  #sendDelta(call: PartialCall): void {
    if (call.part === undefined || call.pending === '' || call.wrapped) return
    this.#list.push({ kind: 'delta', index: call.part, text: call.pending })
    call.pending = ''
    call.wrote = true
  }

  #readSignature(extra: unknown): ReasoningState | undefined {
    const sealed = readCallSignature(extra)
    return sealed && { ...sealed, origin: this.#source.origin }
  }
}

/** Returns the free text of a custom tool that was sent to the upstream as a function. */
function unwrapped(text: string): string {
  try {
    const { input } = parseNestedJson(text) as { readonly input?: unknown }
    return typeof input === 'string' ? input : text
  } catch {
    return text
  }
}
