// Pages that are created once and requested often. Each has a strong ETag, and a client that has it already gets a 304.

import { createHash } from 'node:crypto'
import { bounds } from '../../base/bounds.ts'

export interface CachedPage {
  /** The runtime would convert a string for each request, and copy an array, also for HEAD. All answers share a Blob. */
  readonly body: Blob
  readonly contentType: string
  readonly headers: Readonly<Record<string, string>>
}

export interface PageReply extends Omit<CachedPage, 'body'> {
  readonly status: number
  readonly body: CachedPage['body'] | ''
}

/** Clients may cache the page, but must revalidate it each time, which is cheap. */
const REVALIDATE = 'public, no-cache'

interface PageKind {
  readonly contentType?: string
  readonly headers?: Readonly<Record<string, string>>
}

export function buildCachedPage(
  text: string,
  { contentType = 'application/json', headers }: PageKind = {},
): CachedPage {
  const body = new Blob([text])
  const etag = `"${createHash('sha256').update(text).digest('base64url').slice(0, 27)}"`
  return { body, contentType, headers: { etag, 'cache-control': REVALIDATE, ...headers } }
}

/** `ifNoneMatch`: the If-None-Match header of the request. */
export function replyWithPage(page: CachedPage, ifNoneMatch: string | undefined): PageReply {
  const isUnchanged = ifNoneMatch !== undefined && matchesEtag(ifNoneMatch, page.headers.etag!)
  return isUnchanged ? { ...page, status: 304, body: '' } : { ...page, status: 200 }
}

/** Compares weakly, as If-None-Match does. */
export const matchesEtag = (ifNoneMatch: string, etag: string): boolean =>
  ifNoneMatch
    .split(',', bounds.headerPartsMax)
    .some(entry => entry.trim() === '*' || strong(entry.trim()) === strong(etag))

const strong = (etag: string): string => etag.replace(/^W\//, '')
