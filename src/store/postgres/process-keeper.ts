// Keeps this process among those that use the database: joins, renews the lease, fences processes that have died and ends
// their calls.
//
// A process that the others have taken for dead (it was stopped or cut off for longer than its lease) can write nothing
// for its calls, and the others have charged what those had delivered. So it takes no calls, ends those under way with an
// error, and only then joins again, with another slot and epoch, as if it had been started anew.

import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Processes } from '../engine/store-engine.ts'
import type { WaitMeasure } from '../engine/writer.ts'
import { measureWait } from '../engine/writer.ts'
import { recoverDeadJobs } from './jobs.ts'
import { LedgerWriter } from './ledger.ts'
import type { BatchOwner } from './ledger-batch.ts'
import { Membership, RENEW_EVERY_MS } from './membership.ts'
import type { PostgresPool } from './pools.ts'
import { recoverDeadCalls } from './recovery.ts'

export interface ProcessOptions {
  /** The data folder. This process has its lock, so that the former process there is dead. */
  readonly folder: string
  /** The mark of the database. */
  readonly mark: string
  readonly version: string
  /** How others may reach this process, for people. */
  readonly address: string
  /** How long an operation has waited for the ledger; by default as long as the clock says. */
  readonly ledgerWaitMs?: WaitMeasure
  /** Ends all calls that are active now. It resolves when they are over. */
  readonly onFenced: () => Promise<void>
  /** Called when this process could not join again, once for each reason. It is tried again. */
  readonly onNotJoined?: (fault: unknown) => void
  /** Called after dead processes left calls, which were ended. */
  readonly onRecovered?: (calls: number) => void
  /** Called when the number of calls of dead processes that cannot be ended has changed. */
  readonly onUnrecovered?: (calls: number) => void
}

interface KeeperPools {
  /** Two connections, which nothing else uses. */
  readonly lease: PostgresPool
  /** One connection, which nothing else uses. */
  readonly ledger: PostgresPool
}

const WORK_EVERY_MS = RENEW_EVERY_MS
const REJOIN_EVERY_MS = 1_000

/** In the data folder: which process used it last. */
const NOTE = 'process.json'

export class ProcessKeeper implements Pick<Processes, 'count' | 'isAlive' | 'mayServe'> {
  readonly #pools: KeeperPools
  readonly #options: ProcessOptions
  #member!: Membership
  #ledger!: LedgerWriter
  #count = 1
  #unrecovered = 0
  #isFenced = false
  #isClosed = false
  #timer: ReturnType<typeof setTimeout> | undefined
  #work: Promise<void> | undefined

  /** Called with the new writer after the process has joined again. */
  onJoined: ((ledger: LedgerWriter) => void) | undefined

  private constructor(pools: KeeperPools, options: ProcessOptions) {
    this.#pools = pools
    this.#options = options
  }

  /** Joins. The calls of the former process of the folder, and of others that are known to be dead, are ended then. */
  static async open(pools: KeeperPools, options: ProcessOptions): Promise<ProcessKeeper> {
    const keeper = new ProcessKeeper(pools, options)
    await keeper.#join()
    // Before the first call: each process has its share of the limits.
    keeper.#count = await keeper.#member.countAlive()
    await keeper.#recover()
    keeper.#count = await keeper.#member.countAlive()
    keeper.#plan()
    return keeper
  }

  get owner(): Membership {
    return this.#member
  }

  get ledger(): LedgerWriter {
    return this.#ledger
  }

  get count(): number {
    return this.#count
  }

  /** Whether no other process can have fenced this one. */
  get isAlive(): boolean {
    return !this.#isFenced && !this.#isClosed && this.#member.isAlive
  }

  /**
   * After an outage the database may be back before the lease is renewed, which could run out during the next call. And
   * without ids, every call is refused: a load balancer should send none.
   */
  get mayServe(): boolean {
    return this.isAlive && this.#member.isRenewed && this.#member.hasIds
  }

  /** Mints an id that no other process mints. */
  mintId(): number {
    return this.#member.mintId()
  }

  /** Gives the slot back. To be called when all calls are settled. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#work
    // Without an answer the lease runs out.
    await this.#member.leave().catch(() => {})
  }

  async #join(): Promise<void> {
    const { version, address } = this.#options
    const predecessor = this.#readNote()
    const member = await Membership.join(this.#pools.lease, {
      ...{ version, address },
      ...(predecessor !== undefined && { predecessor }),
    })
    this.#writeNote(member)
    const onFenced = (): void => void this.#becomeFenced(member)
    this.#member = member
    const waitedMs = this.#options.ledgerWaitMs ?? measureWait
    this.#ledger = new LedgerWriter(this.#pools.ledger, { owner: member, onFenced, waitedMs })
    member.start(onFenced)
  }

  async #becomeFenced(member: Membership): Promise<void> {
    // Its writer and its lease both notice it.
    if (member !== this.#member || this.#isFenced) return
    this.#isFenced = true
    // A call that could not be ended is refused when it is settled, or finds its record: it is charged once.
    await this.#options.onFenced().catch(() => {})
    await this.#joinAgain()
  }

  async #joinAgain(): Promise<void> {
    let reason: string | undefined
    while (this.#isFenced && !this.#isClosed) {
      try {
        await this.#join()
        this.#isFenced = false
        if (this.#isClosed) await this.#member.leave()
        else this.onJoined?.(this.#ledger)
      } catch (fault) {
        const { message } = fault as Error
        if (message !== reason) this.#options.onNotJoined?.(fault)
        reason = message
        await Bun.sleep(REJOIN_EVERY_MS)
      }
    }
  }

  #plan(): void {
    this.#timer = setTimeout(() => {
      this.#work = this.#lookAfterOthers().finally(() => {
        if (!this.#isClosed) this.#plan()
      })
    }, WORK_EVERY_MS)
  }

  async #lookAfterOthers(): Promise<void> {
    if (this.#isFenced) return
    try {
      await this.#member.fenceDead()
      this.#count = await this.#member.countAlive()
      await this.#recover()
    } catch {
      // It is tried again. This process notices by its own lease and its own batches that the database is away.
    }
  }

  async #recover(): Promise<void> {
    const { ended, failed } = await recoverDeadCalls(this.#pools.lease, this.#ledger)
    await recoverDeadJobs(this.#pools.lease)
    if (ended > 0) this.#options.onRecovered?.(ended)
    if (failed !== this.#unrecovered) this.#options.onUnrecovered?.(failed)
    this.#unrecovered = failed
  }

  /** The former process of the folder, if it used the same database. */
  #readNote(): BatchOwner | undefined {
    const path = join(this.#options.folder, NOTE)
    if (!existsSync(path)) return undefined
    const note = parseNote(readFileSync(path, 'utf8'))
    return note?.mark === this.#options.mark ? note : undefined
  }

  /**
   * Without a note, for example because the disk is full, the lease of this process runs out by itself. An error would be
   * worse: the process would join again, with another slot each time.
   */
  #writeNote({ slot, epoch }: BatchOwner): void {
    const path = join(this.#options.folder, NOTE)
    try {
      writeFileSync(`${path}.new`, JSON.stringify({ mark: this.#options.mark, slot, epoch }), { mode: 0o600 })
      renameSync(`${path}.new`, path)
    } catch {
      // An older note does no harm: its process is dead.
    }
  }
}

/** Undefined where the file is damaged: then the lease of the former process runs out by itself. */
function parseNote(text: string): (BatchOwner & { readonly mark: string }) | undefined {
  try {
    const { mark, slot, epoch } = JSON.parse(text)
    return Number.isInteger(slot) && Number.isInteger(epoch) ? { mark, slot, epoch } : undefined
  } catch {
    return undefined
  }
}
