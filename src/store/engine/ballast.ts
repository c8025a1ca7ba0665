// A file of nothing, given up when the disk is full: with its room, what is under way can still be settled, while new
// calls are refused. The same for a database that has reached the size it may have.

import type { Database } from 'bun:sqlite'
import { existsSync, statfsSync, unlinkSync } from 'node:fs'
import { open, rename } from 'node:fs/promises'

export interface BallastOptions {
  readonly folder: string
  /** Zero: none is kept. */
  readonly bytes: number
  /** How large the database may grow; undefined: as the disk allows. */
  readonly databaseBytesMax?: number | undefined
}

const PIECE = Buffer.alloc(1024 * 1024)
const PAGE_BYTES = 4096
const LOOK_MS = 1_000

export class Ballast {
  readonly #db: Database
  readonly #options: BallastOptions
  readonly #file: string
  #full = false
  #lookedMs = 0

  constructor(db: Database, options: BallastOptions) {
    this.#db = db
    this.#options = options
    this.#file = `${options.folder}/ballast`
    this.#limitPages(0)
    void this.#keep()
  }

  /** Whether only what ends a call may be written. Looks from time to time whether there is room again. */
  get full(): boolean {
    if (!this.#full || performance.now() - this.#lookedMs < LOOK_MS) return this.#full
    this.#lookedMs = performance.now()
    if (this.#hasRoom()) {
      this.#full = false
      this.#limitPages(0)
      void this.#keep()
    }
    return this.#full
  }

  /** The database could not grow. */
  giveUp(): void {
    this.#full = true
    this.#lookedMs = performance.now()
    if (existsSync(this.#file)) unlinkSync(this.#file)
    this.#limitPages(this.#options.bytes)
  }

  /** PRAGMA takes no parameters; the number is ours. */
  #limitPages(moreBytes: number): void {
    const { databaseBytesMax } = this.#options
    if (databaseBytesMax === undefined) return
    const pages = Math.floor((databaseBytesMax + moreBytes) / PAGE_BYTES)
    this.#db.run('PRAGMA max_page_count = '.concat(String(pages)))
  }

  #hasRoom(): boolean {
    const { folder, bytes, databaseBytesMax } = this.#options
    const { bavail, bsize } = statfsSync(folder)
    if (bavail * bsize < 2 * bytes + PIECE.length) return false
    if (databaseBytesMax === undefined) return true
    const count = (pragma: string): number => Number(Object.values(this.#db.query(pragma).get() as object)[0])
    const usedPages = count('PRAGMA page_count') - count('PRAGMA freelist_count')
    return usedPages * PAGE_BYTES + bytes < databaseBytesMax
  }

  /** Written beside the calls, and whole before it counts. On a disk that is full already there is none. */
  async #keep(): Promise<void> {
    const { bytes } = this.#options
    if (bytes === 0 || existsSync(this.#file)) return
    const part = `${this.#file}.part`
    try {
      const file = await open(part, 'w', 0o600)
      try {
        for (let written = 0; written < bytes; written += PIECE.length) await file.write(PIECE)
      } finally {
        await file.close()
      }
      await rename(part, this.#file)
    } catch {
      if (existsSync(part)) unlinkSync(part)
    }
  }
}
