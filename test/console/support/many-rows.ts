// Very many records for the pages that list calls. They are written into the store as copies of one call, so that a gateway
// shows and streams them as it does with calls of its own.

import { join } from 'node:path'
import type { CDPSession, Page } from 'playwright-core'
import { idAtMs, parseTextId, textId } from '../../../src/base/ids.ts'
import { openDatabase } from '../../support/database.ts'
import type { SeededSite } from './seed.ts'

const HOUR_MS = 3_600_000
const MIB = 1024 * 1024

export class ManyRows {
  /** When the first call began. A millisecond has up to 8,192 calls. */
  readonly firstMs = Date.now() - HOUR_MS
  readonly #path: string
  readonly #copied: number
  #next: number

  /** The copies are of a call that cost nothing, so the ledger is consistent without them. */
  constructor({ harness, ids }: SeededSite) {
    this.#path = join(harness.folder, 'weir.db')
    this.#copied = parseTextId('req', ids.calls.refused)!
    this.#next = idAtMs(this.firstMs)
  }

  /** Writes so many records, each newer than the one before. Returns the id of the last. */
  add(count: number): string {
    const db = openDatabase(this.#path)
    try {
      const columns = db.query<{ name: string }, []>("SELECT name FROM pragma_table_info('record')").all()
      const others = columns.flatMap(({ name }) => (name === 'call_id' ? [] : [`r.${name}`]))
      db.run(
        `WITH RECURSIVE n (at) AS (SELECT 0 UNION ALL SELECT at + 1 FROM n WHERE at + 1 < ?1)
         INSERT INTO record SELECT ?2 + at, ${others} FROM n, record r WHERE r.call_id = ?3`,
        [count, this.#next, this.#copied],
      )
    } finally {
      db.close()
    }
    this.#next += count
    return textId('req', this.#next - 1)
  }
}

/** What the scripts of a page keep in memory, in MiB, after all that can be collected was. */
export async function heapMib(page: Page): Promise<number> {
  const session: CDPSession = await page.context().newCDPSession(page)
  try {
    await session.send('HeapProfiler.enable')
    await session.send('HeapProfiler.collectGarbage')
    const { usedSize } = await session.send('Runtime.getHeapUsage')
    return usedSize / MIB
  } finally {
    await session.detach()
  }
}

interface Scrolled {
  /** The most rows that were in the page at the same time. */
  readonly rowsMost: number
  readonly steps: number
  /** The time between two frames while scrolling, in milliseconds. */
  readonly frames: readonly number[]
}

/** Scrolls to the end of a list until no page of it is left. */
export const scrollThrough = (page: Page): Promise<Scrolled> =>
  page.evaluate<Scrolled>(`(async () => {
    const frames = []
    let [rowsMost, steps, last] = [0, 0, performance.now()]
    const isEnd = () => document.querySelector('[data-more]') === null
    while (!isEnd()) {
      scrollTo(0, document.documentElement.scrollHeight)
      await new Promise(resolve => requestAnimationFrame(resolve))
      const now = performance.now()
      frames.push(now - last)
      last = now
      steps++
      rowsMost = Math.max(rowsMost, document.querySelectorAll('[data-row]').length)
    }
    return { rowsMost, steps, frames }
  })()`)
