// Where an upstream tells which models it has, and how it says so, by the dialect in which it is spoken to.

import { isObject } from './request/json-object.ts'

interface Listing {
  /** What a path ends in at which calls are posted; in its place the models are listed. */
  readonly calls: string
  readonly models: string
  readonly asks: string
  read(json: unknown): ListedPage | undefined
}

export interface ListedPage {
  readonly ids: readonly string[]
  /** What to ask for the next page with; undefined: that was all. */
  readonly next?: string
}

type Row = Readonly<Record<string, unknown>>

function idsIn(list: unknown, read: (row: Row) => unknown): readonly string[] | undefined {
  if (!Array.isArray(list)) return undefined
  const ids = list.map(row => (isObject(row) ? read(row) : undefined))
  return ids.filter(id => typeof id === 'string')
}

/** OpenAI's list, which most servers have; some give the bare list. */
function readOpenai(json: unknown): ListedPage | undefined {
  const ids = idsIn(isObject(json) ? json.data : json, ({ id }) => id)
  return ids && { ids }
}

function readAnthropic(json: unknown): ListedPage | undefined {
  const page = readOpenai(json)
  if (page === undefined || !isObject(json) || json.has_more !== true || typeof json.last_id !== 'string') return page
  return { ...page, next: `after_id=${encodeURIComponent(json.last_id)}` }
}

function readGemini(json: unknown): ListedPage | undefined {
  const names = isObject(json) ? idsIn(json.models, ({ name }) => name) : undefined
  if (names === undefined) return undefined
  const token = (json as { nextPageToken?: unknown }).nextPageToken
  const ids = names.map(name => name.replace(/^models\//, ''))
  return typeof token === 'string' && token !== '' ? { ids, next: `pageToken=${encodeURIComponent(token)}` } : { ids }
}

const openai = { models: '/models', asks: '', read: readOpenai }

const listings: Readonly<Record<string, Listing>> = {
  'openai-chat': { ...openai, calls: '/chat/completions' },
  'openai-responses': { ...openai, calls: '/responses' },
  'ark': { ...openai, calls: '/chat/completions' },
  'ark-responses': { ...openai, calls: '/responses' },
  'anthropic-messages': { calls: '/messages', models: '/models', asks: 'limit=1000', read: readAnthropic },
  'gemini': { calls: '/models/{model}:generateContent', models: '/models', asks: 'pageSize=1000', read: readGemini },
}

export interface ModelListing {
  readonly dialect: string
  /** Below the base address. */
  path(next?: string): string
  read(json: unknown): ListedPage | undefined
}

/** Undefined for a provider of which nobody knows where it would tell. `speaks`: the paths of its dialects. */
export function modelListing(speaks: Readonly<Record<string, { readonly plain: string }>>): ModelListing | undefined {
  for (const [dialect, { plain }] of Object.entries(speaks)) {
    const listing = listings[dialect]
    if (listing === undefined || !plain.endsWith(listing.calls)) continue
    const path = plain.slice(0, -listing.calls.length) + listing.models
    const query = (next: string | undefined): string => [listing.asks, next ?? ''].filter(part => part !== '').join('&')
    return { dialect, path: next => (query(next) === '' ? path : `${path}?${query(next)}`), read: listing.read }
  }
  return undefined
}
