// A text that is made once and asked for often: it has a strong ETag, and whoever has it already is told so.

import { createHash } from 'node:crypto'

export interface KeptPage {
  readonly body: string
  readonly contentType: string
  readonly headers: Readonly<Record<string, string>>
}

export interface PageReply extends KeptPage {
  readonly status: number
}

/** Whoever keeps it asks each time whether it is still so, which costs next to nothing. */
const ASK_AGAIN = 'public, no-cache'

interface PageKind {
  readonly contentType?: string
  readonly headers?: Readonly<Record<string, string>>
}

export function keepPage(body: string, { contentType = 'application/json', headers }: PageKind = {}): KeptPage {
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`
  return { body, contentType, headers: { etag, 'cache-control': ASK_AGAIN, ...headers } }
}

/** `ifNoneMatch` is the header of whoever asks. */
export function replyWith(page: KeptPage, ifNoneMatch: string | undefined): PageReply {
  const isKnown = ifNoneMatch !== undefined && knows(ifNoneMatch, page.headers.etag!)
  return isKnown ? { ...page, status: 304, body: '' } : { ...page, status: 200 }
}

const knows = (ifNoneMatch: string, etag: string): boolean =>
  ifNoneMatch.split(',').some(one => one.trim() === '*' || one.trim().replace(/^W\//, '') === etag)
