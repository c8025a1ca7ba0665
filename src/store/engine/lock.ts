// One process owns a data folder. The lock is a transaction held open on a file of its own: the kernel gives it
// back when the process dies, however it dies, so there is no stale lock to judge.

import { Database } from 'bun:sqlite'
import { join } from 'node:path'

export interface FolderLock {
  release(): void
}

/** The lock, or undefined while another process holds it. */
export function lockFolder(folder: string): FolderLock | undefined {
  const db = new Database(join(folder, 'lock'), { create: true, readwrite: true })
  try {
    db.run('PRAGMA busy_timeout = 0')
    db.run('PRAGMA locking_mode = EXCLUSIVE')
    db.run('BEGIN EXCLUSIVE')
    return { release: () => db.close() }
  } catch (fault) {
    db.close()
    if ((fault as { code?: string }).code === 'SQLITE_BUSY') return undefined
    throw fault
  }
}
