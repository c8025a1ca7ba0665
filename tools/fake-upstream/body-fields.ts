// Small functions that read request bodies, shared by the dialects. They accept any value and never throw.

import type { Media } from './dialect.ts'
import { countWords } from './dialect.ts'
import type { ReceivedRequest } from './request.ts'
import { isRecord, readJson } from './request.ts'

export type Json = Readonly<Record<string, unknown>>

const parsed = new WeakMap<Uint8Array, unknown>()

/** The parsed body, which is parsed only once. Undefined for a body that is not JSON. */
export function bodyOf(request: ReceivedRequest): unknown {
  if (!parsed.has(request.body)) parsed.set(request.body, readJson(request.body))
  return parsed.get(request.body)
}

export function objectOf(request: ReceivedRequest): Json {
  return recordOf(bodyOf(request))
}

export const recordOf = (value: unknown): Json => (isRecord(value) ? value : {})
export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
export const recordsOf = (value: unknown): readonly Json[] => listOf(value).filter(isRecord)
export const stringOf = (value: unknown): string => (typeof value === 'string' ? value : '')
export const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)
export const stringsOf = (value: unknown): readonly string[] => listOf(value).filter(entry => typeof entry === 'string')
export const has = (value: unknown): boolean => value !== undefined && value !== null

/** The texts of a content that is a string or a list of parts. */
export function textsOf(content: unknown): readonly string[] {
  if (typeof content === 'string') return [content]
  return recordsOf(content).flatMap(part => (typeof part.text === 'string' ? [part.text] : []))
}

export const wordsIn = (content: unknown): number => countWords(textsOf(content).join(' '))

/** The path without its query. */
export const pathOf = (request: ReceivedRequest): string => request.path.replace(/\?.*$/, '')

export function queryOf(request: ReceivedRequest): URLSearchParams {
  const at = request.path.indexOf('?')
  return new URLSearchParams(at < 0 ? '' : request.path.slice(at + 1))
}

export function isCount(value: unknown, max: number): boolean {
  if (!has(value)) return true
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= max
}

/** Computes the size from the length of the base64, without decoding it, because it may be large. */
export function mediaOfBase64(type: string, data: unknown): Media {
  const text = stringOf(data)
  const broken = text === '' || text.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
  return { type, bytes: (text.length / 4) * 3 - padding, broken }
}

/** Reads a data URL or any other URL. */
export function mediaOfUrl(kind: string, url: unknown): Media {
  const text = stringOf(url)
  const head = /^data:([^;,]*);base64,/.exec(text.slice(0, 200))
  if (head) return mediaOfBase64(head[1] || kind, text.slice(head[0].length))
  return { type: kind, bytes: undefined, broken: text.startsWith('data:') }
}
