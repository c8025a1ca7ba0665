// A thread that copies a database, so that a copy does not block calls.

import { serveThread } from '../../base/threads/serve-thread.ts'
import { copyDatabase, openReader } from './database.ts'

export interface CopyRequest {
  readonly from: string
  readonly to: string
}

export interface CopyThreadMethods {
  copy(request: CopyRequest): void
}

function copy({ from, to }: CopyRequest): void {
  const db = openReader(from)
  try {
    copyDatabase(db, to)
  } finally {
    db.close()
  }
}

serveThread<CopyThreadMethods>(() => ({ copy }))
