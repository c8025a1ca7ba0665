// A thread that copies a database and computes the digests of files, so that neither blocks calls.

import { createHash } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'
import { serveThread } from '../../base/threads/serve-thread.ts'
import { copyDatabase, openReader } from './database.ts'

export interface CopyRequest {
  readonly from: string
  readonly to: string
}

export interface CopyThreadMethods {
  copy(request: CopyRequest): void
  digest(path: string): string
}

const CHUNK_BYTES = 1024 * 1024

function copy({ from, to }: CopyRequest): void {
  const db = openReader(from)
  try {
    copyDatabase(db, to)
  } finally {
    db.close()
  }
}

function digest(path: string): string {
  const file = openSync(path, 'r')
  try {
    const hash = createHash('sha256')
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
    for (let size = readSync(file, chunk); size > 0; size = readSync(file, chunk)) hash.update(chunk.subarray(0, size))
    return hash.digest('hex')
  } finally {
    closeSync(file)
  }
}

serveThread<CopyThreadMethods>(() => ({ copy, digest }))
