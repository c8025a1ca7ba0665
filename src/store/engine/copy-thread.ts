// A thread that copies databases one after the other, so that a copy does not block calls.

import type { Database } from 'bun:sqlite'
import { copyDatabase, openReader } from './database.ts'

export interface CopyRequest {
  readonly from: string
  readonly to: string
}

export type CopyReply = { readonly copied: true } | { readonly failed: string }

declare const self: Worker

function copy({ from, to }: CopyRequest): CopyReply {
  let db: Database | undefined
  try {
    db = openReader(from)
    copyDatabase(db, to)
    return { copied: true }
  } catch (fault) {
    return { failed: fault instanceof Error ? fault.message : 'unknown error' }
  } finally {
    db?.close()
  }
}

self.onmessage = (event: MessageEvent<CopyRequest>) => postMessage(copy(event.data))
