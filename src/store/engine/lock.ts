// The lock of a data folder, so that only one process uses it. The lock is an open transaction on a separate SQLite
// file: the kernel releases it when the process dies, however it dies, so no lock can become stale.

import { Database } from 'bun:sqlite'
import { join } from 'node:path'

export interface FolderLock {
  release(): void
}

/** Returns the lock, or undefined while another process holds it. */
export function lockFolder(folder: string): FolderLock | undefined {
  const db = new Database(join(folder, 'lock'), { create: true, readwrite: true })
  try {
    db.run('PRAGMA busy_timeout = 0')
    db.run('PRAGMA locking_mode = EXCLUSIVE')
    // With a journal file, no gateway could start on a full disk, to settle the calls that a crash left open.
    db.run('PRAGMA journal_mode = MEMORY')
    db.run('BEGIN EXCLUSIVE')
    return { release: () => db.close() }
  } catch (fault) {
    db.close()
    if ((fault as { code?: string }).code === 'SQLITE_BUSY') return undefined
    throw fault
  }
}
