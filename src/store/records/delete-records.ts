// Carries out what is to become of records: those that are older than they are kept go, and those that somebody ordered
// to be deleted. Some at a time, resting in between; whoever dies here goes on where it was. Bodies go first, so that
// none is left without its record; and no record goes before it is in the statistics.

import { idAtMs } from '../../base/ids.ts'
import type { OpenDeletion, Reader } from '../engine/reader.ts'
import type { Writer } from '../engine/writer.ts'
import type { Desk } from '../queries/query-worker.ts'
import type { Rolling } from '../statistics/rolling.ts'
import type { Bodies } from './bodies.ts'
import type { RecordFilter } from './search.ts'

export interface DeletingParts {
  readonly writer: Pick<Writer, 'run'>
  readonly desk: Pick<Desk, 'ask'>
  readonly bodies: Pick<Bodies, 'erase'>
  readonly rolling: Pick<Rolling, 'catchUp' | 'eraseEndUser' | 'rolled'>
  readonly reader: Pick<Reader, 'openDeletions'>
  /** For how many days records are kept; 0: for good. */
  retentionDays(): number
  dateMs(): number
}

const AT_ONCE = 100
const DAY_MS = 86_400_000

interface CarriedOut {
  readonly id: number
  /** Takes the name out of the statistics. */
  erase(): Promise<void>
}

export class RecordDeleting {
  readonly #parts: DeletingParts
  #sweeping: Promise<void> | undefined
  #again = false
  #closed = false

  constructor(parts: DeletingParts) {
    this.#parts = parts
  }

  /** One at a time; who asks meanwhile is waited for as well. */
  sweep(): Promise<void> {
    if (this.#sweeping !== undefined) this.#again = true
    this.#sweeping ??= this.#sweepAll().finally(() => (this.#sweeping = undefined))
    return this.#sweeping
  }

  /** What is under way comes to a halt. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#sweeping?.catch(() => {})
  }

  async #sweepAll(): Promise<void> {
    do {
      this.#again = false
      await this.#sweepOnce()
    } while (this.#again && !this.#closed)
  }

  async #sweepOnce(): Promise<void> {
    const { reader, rolling, writer, dateMs } = this.#parts
    const days = this.#parts.retentionDays()
    let orders = reader.openDeletions(0)
    if (days === 0 && orders.length === 0) return
    await rolling.catchUp()
    if (days > 0) {
      const id = idAtMs(dateMs() - days * DAY_MS)
      await writer.run('keepRecordsFrom', { id })
      await this.#deleteAll({ before: id })
    }
    // One that waits for a call under way keeps none of those behind it waiting.
    for (; orders.length > 0 && !this.#closed; orders = reader.openDeletions(orders.at(-1)!.id)) {
      for (const order of orders) await this.#carryOut(order)
    }
  }

  async #carryOut({ id, accountId, keyId, endUser, from, before, next }: OpenDeletion): Promise<void> {
    const filter = {
      ...{ accountId: accountId ?? undefined, keyId: keyId ?? undefined, endUser: endUser ?? undefined },
      ...{ from: Math.max(from, next), before },
    }
    const { rolling } = this.#parts
    const erase = async (): Promise<void> => {
      if (endUser !== null && from === 0) await rolling.eraseEndUser(endUser, accountId ?? undefined)
    }
    // Before the order forgets whose name it was.
    await erase()
    await this.#deleteAll(filter, { id, erase })
  }

  async #deleteAll(filter: RecordFilter, order?: CarriedOut): Promise<void> {
    let after: number | undefined
    while (!this.#closed) {
      const startMs = performance.now()
      const { ids, next } = await this.#parts.desk.ask('recordIds', { filter, after, limit: AT_ONCE })
      if (ids.length > 0) await this.#parts.bodies.erase(ids)
      await this.#deleteSome(ids, next, order)
      if (next === null) return
      after = next
      await new Promise(resolve => setTimeout(resolve, performance.now() - startMs))
    }
  }

  async #deleteSome(ids: readonly number[], next: number | null, order: CarriedOut | undefined): Promise<void> {
    const { writer, rolling } = this.#parts
    if (ids.length === 0 && order === undefined) return
    // What is looked for next is behind the last that was found.
    const noted = order === undefined ? {} : { order: { id: order.id, next: next === null ? null : next + 1 } }
    for (;;) {
      const { done } = await writer.run('deleteRecords', { ids, rolledSeq: rolling.rolled.seq ?? 0, ...noted })
      if (done === 'deleted' || this.#closed) return
      await rolling.catchUp()
      await order?.erase()
    }
  }
}
