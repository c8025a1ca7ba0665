// Reads a piece of a streamed tool call, and tells whether it continues a call or begins another one. Upstreams leave out
// the index, repeat or leave out the id, and send the name late.

import { readArgumentText } from '../neutral/call-arguments.ts'
import { isWholeObject } from '../neutral/cut-call.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'

export interface CallPiece {
  readonly index: number | undefined
  /** Empty if the piece has none; so are the name and the arguments. */
  readonly id: string
  readonly name: string
  readonly text: string
  readonly isCustom: boolean
}

/** What the pieces of a call have said so far. */
export interface BegunCall {
  /** The upstream's id. */
  id: string
  name: string
  /** The only piece of arguments so far. Empty if there were several. */
  onlyPiece: string | undefined
}

export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

export function readCallPiece(piece: Json): CallPiece {
  const isCustom = isCustomPiece(piece)
  const inner = isCustom ? (piece.custom as Json) : functionOf(piece)
  return {
    index: readIndex(piece.index),
    id: textOf(piece.id),
    name: textOf(inner.name),
    text: readArgumentText(isCustom ? inner.input : inner.arguments),
    isCustom,
  }
}

export const beginCall = (): BegunCall => ({ id: '', name: '', onlyPiece: undefined })

export function addToCall(call: BegunCall, { id, name, text }: CallPiece): void {
  call.id ||= id
  call.name ||= name
  if (text !== '') call.onlyPiece = call.onlyPiece === undefined ? text : ''
}

/** A piece with its own name and id starts another call, even at the same index. */
export function isAnother(known: BegunCall, { index, id, name, text }: CallPiece): boolean {
  if (name === '') return false
  if (id !== '') return known.id !== '' && known.id !== id
  if (known.name === '') return false
  if (index === undefined) return known.onlyPiece !== undefined
  // Some upstreams give all calls the same index and no id. Each call is then one piece.
  return name !== known.name || (text !== '' && isWholeObject(known.onlyPiece ?? ''))
}

/** Some servers write both kinds into each call, and leave the texts of the wrong kind empty. */
function isCustomPiece({ type, custom, function: own }: Json): boolean {
  if (!isObject(custom)) return false
  return !isObject(own) || (textOf(own.name) === '' && (type === 'custom' || textOf(custom.name) !== ''))
}

/** Some upstreams write the name and the arguments beside the id. */
function functionOf(piece: Json): Json {
  if (isObject(piece.function)) return piece.function
  return textOf(piece.name) === '' ? {} : piece
}

/** Some upstreams write the index as a text. */
function readIndex(index: unknown): number | undefined {
  const number = typeof index === 'string' && /^\d{1,6}$/.test(index) ? Number(index) : index
  return Number.isSafeInteger(number) ? (number as number) : undefined
}
