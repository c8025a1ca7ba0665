// Where the upstreams of each dialect list their models, and how to read such a list.

import { jsonText } from '../base/text/json-text.ts'
import { isObject } from './request/json-body.ts'

interface Listing {
  /** The end of the path for calls. `models` in its place gives the path of the list. */
  readonly calls: string
  readonly models: string
  /** The query of every request. */
  readonly query: string
  read(json: unknown): ModelIdPage | undefined
}

export interface ModelIdPage {
  readonly ids: readonly string[]
  /** Who owns the models, as OpenAI's format says it. */
  readonly owners?: readonly string[]
  /** The whole rows, by id. */
  readonly rows?: ReadonlyMap<string, Readonly<Record<string, unknown>>>
  /** The query parameter that asks for the next page. Undefined: this was the last page. */
  readonly next?: string
}

type Row = Readonly<Record<string, unknown>>

function idsIn(list: unknown, read: (row: Row) => unknown): readonly string[] | undefined {
  if (!Array.isArray(list)) return undefined
  const ids = list.map(row => (isObject(row) ? read(row) : undefined))
  return ids.filter(id => typeof id === 'string')
}

/** OpenAI's format, which most servers use. Some servers send the array without the object around it. */
function readOpenai(json: unknown): ModelIdPage | undefined {
  const rows = isObject(json) ? json.data : json
  const ids = idsIn(rows, ({ id }) => id)
  if (ids === undefined) return undefined
  const objects = (rows as readonly unknown[]).filter(isObject)
  return {
    ids,
    owners: idsIn(rows, row => row.owned_by) ?? [],
    rows: new Map(objects.map(row => [jsonText(row.id), row])),
  }
}

function readAnthropic(json: unknown): ModelIdPage | undefined {
  const page = readOpenai(json)
  if (page === undefined || !isObject(json) || json.has_more !== true || typeof json.last_id !== 'string') return page
  return { ...page, next: `after_id=${encodeURIComponent(json.last_id)}` }
}

function readGemini(json: unknown): ModelIdPage | undefined {
  const names = isObject(json) ? idsIn(json.models, ({ name }) => name) : undefined
  if (names === undefined) return undefined
  const token = (json as { nextPageToken?: unknown }).nextPageToken
  const ids = names.map(name => name.replace(/^models\//, ''))
  return typeof token === 'string' && token !== '' ? { ids, next: `pageToken=${encodeURIComponent(token)}` } : { ids }
}

const openai = { models: '/models', query: '', read: readOpenai }

const listings: Readonly<Record<string, Listing>> = {
  'openai-chat': { ...openai, calls: '/chat/completions' },
  'openai-responses': { ...openai, calls: '/responses' },
  'ark': { ...openai, calls: '/chat/completions' },
  'ark-responses': { ...openai, calls: '/responses' },
  'anthropic-messages': { calls: '/messages', models: '/models', query: 'limit=1000', read: readAnthropic },
  'gemini': { calls: '/models/{model}:generateContent', models: '/models', query: 'pageSize=1000', read: readGemini },
}

export interface UpstreamModelList {
  readonly dialect: string
  /** Relative to the base URL. */
  path(next?: string): string
  read(json: unknown): ModelIdPage | undefined
}

/** `dialects` has the path for calls of each dialect. Undefined: no known dialect lists models. */
export function findUpstreamModelList(
  dialects: Readonly<Record<string, { readonly plain: string }>>,
): UpstreamModelList | undefined {
  for (const [dialect, { plain }] of Object.entries(dialects)) {
    const listing = listings[dialect]
    if (listing === undefined || !plain.endsWith(listing.calls)) continue
    const path = plain.slice(0, -listing.calls.length) + listing.models
    const query = (next: string | undefined): string =>
      [listing.query, next ?? ''].filter(part => part !== '').join('&')
    return { dialect, path: next => (query(next) === '' ? path : `${path}?${query(next)}`), read: listing.read }
  }
  return undefined
}
