// Deletes records that are older than the retention, and records that a deletion order names. It deletes some at a time
// and rests in between; after a crash it continues where it was. Bodies are deleted first, so that no body is left
// without its record, and no record is deleted before it is in the statistics.

import { idAtMs } from '../../base/ids.ts'
import { DAY_MS } from '../../base/time.ts'
import type { OpenDeletion, Reader } from '../engine/reader.ts'
import type { BodyStorage, QueryRunner, StatisticsStore, StoreWriter } from '../engine/store-engine.ts'
import type { RecordFilter } from './record-search.ts'

export interface RecordDeleterParts {
  readonly writer: Pick<StoreWriter, 'run'>
  readonly queries: Pick<QueryRunner, 'query'>
  readonly bodies: Pick<BodyStorage, 'erase'>
  readonly statistics: Pick<StatisticsStore, 'catchUp' | 'eraseEndUser' | 'progress'>
  readonly reader: Pick<Reader, 'openDeletions'>
  /** How many days records are kept; 0: for ever. */
  retentionDays(): number
  dateMs(): number
}

const RECORDS_PER_STEP = 100

interface RunningOrder {
  readonly id: number
  /** Removes the name of the end user from the statistics. */
  erase(): Promise<void>
}

export class RecordDeleter {
  readonly #parts: RecordDeleterParts
  #currentSweep: Promise<void> | undefined
  #mustRepeat = false
  #closed = false

  constructor(parts: RecordDeleterParts) {
    this.#parts = parts
  }

  /** Runs a sweep. A call during a sweep makes the sweep run once more, and waits for it. */
  sweep(): Promise<void> {
    if (this.#currentSweep !== undefined) this.#mustRepeat = true
    this.#currentSweep ??= this.#sweepAll().finally(() => (this.#currentSweep = undefined))
    return this.#currentSweep
  }

  /** Stops the running sweep. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#currentSweep?.catch(() => {})
  }

  async #sweepAll(): Promise<void> {
    do {
      this.#mustRepeat = false
      await this.#sweepOnce()
    } while (this.#mustRepeat && !this.#closed)
  }

  async #sweepOnce(): Promise<void> {
    const { reader, statistics, writer, dateMs } = this.#parts
    const days = this.#parts.retentionDays()
    let orders = await reader.openDeletions(0)
    if (days === 0 && orders.length === 0) return
    await statistics.catchUp()
    if (days > 0) {
      const id = idAtMs(dateMs() - days * DAY_MS)
      await writer.run('keepRecordsFrom', { id })
      await this.#deleteAll({ before: id })
    }
    // An order that must wait for an active call does not block the orders after it.
    for (; orders.length > 0 && !this.#closed; orders = await reader.openDeletions(orders.at(-1)!.id)) {
      for (const order of orders) await this.#carryOut(order)
    }
  }

  async #carryOut({ id, accountId, keyId, endUser, from, before, next }: OpenDeletion): Promise<void> {
    const filter = {
      accountId: accountId ?? undefined,
      keyId: keyId ?? undefined,
      endUser: endUser ?? undefined,
      from: Math.max(from, next),
      before,
    }
    const { statistics } = this.#parts
    const erase = async (): Promise<void> => {
      if (endUser !== null && from === 0) await statistics.eraseEndUser(endUser, accountId ?? undefined)
    }
    // First of all, because a finished order no longer has the name of the end user.
    await erase()
    await this.#deleteAll(filter, { id, erase })
  }

  async #deleteAll(filter: RecordFilter, order?: RunningOrder): Promise<void> {
    let after: number | undefined
    while (!this.#closed) {
      const startMs = performance.now()
      const { ids, next } = await this.#parts.queries.query('recordIds', { filter, after, limit: RECORDS_PER_STEP })
      if (ids.length > 0) await this.#parts.bodies.erase(ids)
      await this.#deleteSome(ids, next, order)
      if (next === null) return
      after = next
      await new Promise(resolve => setTimeout(resolve, performance.now() - startMs))
    }
  }

  async #deleteSome(ids: readonly number[], next: number | null, order: RunningOrder | undefined): Promise<void> {
    const { writer, statistics } = this.#parts
    if (ids.length === 0 && order === undefined) return
    // The order continues after the last id that was found.
    const progress = order === undefined ? {} : { order: { id: order.id, next: next === null ? null : next + 1 } }
    for (;;) {
      const { done } = await writer.run('deleteRecords', { ids, rolledSeq: statistics.progress.seq ?? 0, ...progress })
      if (done === 'deleted' || this.#closed) return
      await statistics.catchUp()
      await order?.erase()
    }
  }
}
