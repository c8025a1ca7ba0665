// The ballast: a file of zeros that is deleted when the disk is full. With its space active calls can still be settled,
// while new calls are refused. A database that has reached its configured size limit is treated in the same way.

import type { Database } from 'bun:sqlite'
import { existsSync, statfsSync, unlinkSync } from 'node:fs'
import { open, rename } from 'node:fs/promises'

export interface BallastOptions {
  readonly folder: string
  /** Size of the ballast file. Zero: there is no ballast file. */
  readonly bytes: number
  /** How large the database may grow; undefined: as large as the disk allows. */
  readonly databaseBytesMax?: number | undefined
}

const CHUNK = Buffer.alloc(1024 * 1024)
const PAGE_BYTES = 4096
const CHECK_EVERY_MS = 1_000

export class Ballast {
  readonly #db: Database
  readonly #options: BallastOptions
  readonly #file: string
  #full = false
  #checkedMs = 0

  constructor(db: Database, options: BallastOptions) {
    this.#db = db
    this.#options = options
    this.#file = `${options.folder}/ballast`
    this.#setPageLimit(0)
    void this.#createFile()
  }

  /** Whether only operations that end a call may be written. Checks from time to time whether there is space again. */
  get isDiskFull(): boolean {
    if (!this.#full || performance.now() - this.#checkedMs < CHECK_EVERY_MS) return this.#full
    this.#checkedMs = performance.now()
    if (this.#hasSpace()) {
      this.#full = false
      this.#setPageLimit(0)
      void this.#createFile()
    }
    return this.#full
  }

  /** Deletes the ballast file, because the database could not grow. */
  release(): void {
    this.#full = true
    this.#checkedMs = performance.now()
    if (existsSync(this.#file)) unlinkSync(this.#file)
    this.#setPageLimit(this.#options.bytes)
  }

  /** PRAGMA takes no parameters. The number is computed here, so it is safe in the SQL text. */
  #setPageLimit(extraBytes: number): void {
    const { databaseBytesMax } = this.#options
    if (databaseBytesMax === undefined) return
    const pages = Math.floor((databaseBytesMax + extraBytes) / PAGE_BYTES)
    this.#db.run('PRAGMA max_page_count = '.concat(String(pages)))
  }

  #hasSpace(): boolean {
    const { folder, bytes, databaseBytesMax } = this.#options
    const { bavail, bsize } = statfsSync(folder)
    if (bavail * bsize < 2 * bytes + CHUNK.length) return false
    if (databaseBytesMax === undefined) return true
    const count = (pragma: string): number => Number(Object.values(this.#db.query(pragma).get() as object)[0])
    const usedPages = count('PRAGMA page_count') - count('PRAGMA freelist_count')
    return usedPages * PAGE_BYTES + bytes < databaseBytesMax
  }

  /** Writes the ballast file without blocking operations; it counts only when complete. A full disk gets none. */
  async #createFile(): Promise<void> {
    const { bytes } = this.#options
    if (bytes === 0 || existsSync(this.#file)) return
    const part = `${this.#file}.part`
    try {
      const file = await open(part, 'w', 0o600)
      try {
        for (let written = 0; written < bytes; written += CHUNK.length) await file.write(CHUNK)
      } finally {
        await file.close()
      }
      await rename(part, this.#file)
    } catch {
      if (existsSync(part)) unlinkSync(part)
    }
  }
}
