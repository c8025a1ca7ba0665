// The statistics file as the schema `stats` of a connection to the ledger's database, so that a query can use both.

import type { Database } from 'bun:sqlite'
import { existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { STATISTICS_FILE } from '../engine/folder.ts'

export class AttachedStatistics {
  readonly #db: Database
  readonly #path: string
  #inode: number | undefined

  constructor(db: Database) {
    this.#db = db
    this.#path = join(dirname(db.filename), STATISTICS_FILE)
  }

  /** Attaches the file, and attaches it again when it has been replaced. To be called before each transaction. */
  refresh(): void {
    const inode = existsSync(this.#path) ? statSync(this.#path).ino : 0
    if (this.#inode === inode) return
    if (this.#inode !== undefined) this.#db.run('DETACH stats')
    this.#inode = undefined
    this.#db.run('ATTACH ?1 AS stats', [this.#path])
    this.#db.run('PRAGMA stats.cache_size = -4096')
    this.#inode = inode
  }
}
