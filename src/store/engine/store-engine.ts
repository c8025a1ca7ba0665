// What the rest of Weir uses of the database. There are two engines: SQLite in the data folder, for one process, and
// PostgreSQL, for several processes that behave as one gateway. No code outside src/store knows which one it uses.

import type { LedgerTotals } from '../ledger/ledger-totals.ts'
import type { AuditReport } from '../ledger-audit/findings.ts'
import type { QueryWorker } from '../queries/query-worker.ts'
import type { BodyStore } from '../records/bodies.ts'
import type { SecretScan } from '../secrets/secret-scan.ts'
import type { StatisticsWorker } from '../statistics/statistics-worker.ts'
import type { Reader } from './reader.ts'
import type { DataPlace } from './thread-reads.ts'
import type { Writer } from './writer.ts'

export type StoreWriter = Pick<
  Writer,
  'run' | 'queuedCount' | 'oldestWaitMs' | 'isDiskFull' | 'isHealthy' | 'onBatch' | 'close'
>
export type QueryRunner = Pick<QueryWorker, 'query' | 'close'>
export type StatisticsStore = Pick<StatisticsWorker, 'ready' | 'progress' | 'catchUp' | 'eraseEndUser' | 'close'>
export type BodyStorage = Pick<BodyStore, keyof BodyStore>
export type SecretScanner = Pick<SecretScan, 'during' | 'run' | 'close'>

export interface LedgerTotalsSource {
  /** PostgreSQL returns totals that may be some seconds old. */
  totals(): LedgerTotals
  close(): void
}

export interface LedgerAuditSource {
  /** Checks what is new since the last pass, and compares every balance. */
  pass(): Promise<AuditReport>
  /** Checks the whole ledger. */
  auditAll(): Promise<AuditReport>
  close(): Promise<void>
}

/** Work that one process does for all: deleting, auditing, summing up. Or what only one may do at a time. */
export type JobName =
  | 'statistics'
  | 'housekeeping'
  | 'audit'
  /** What a start creates: versions of prices, and what the configuration file describes. */
  | 'start'
  | 'reseal'
  /** The deliveries of a webhook. */
  | `webhook ${number}`
  /** The start of a task, by the id of its call, and each poll. */
  | `task ${number}`
  /** A response that is made in the background, by its account and id. */
  | ResponseJob

export type ResponseJob = `response ${number}/${string}`

/** What other processes can ask the process that makes a response. Each replaces those before it. */
export type ResponseWish = 'events' | 'cancel' | 'delete'

export interface Jobs {
  /** Takes the job if no other process has it. Returns whether this process is the one that does it now. */
  isOurs(job: JobName): Promise<boolean>
  /** Whether another process does the job. */
  isElsewhere(job: JobName): Promise<boolean>
  /** Other processes may take the job from now on. It must not be taken again before this has resolved. */
  giveBack(job: JobName): Promise<void>
  /**
   * Asks the other process that makes a response. Without effect if none does any more. Events are stored once for each
   * time that they are asked for; the end of the response need not be asked for again.
   */
  ask(job: ResponseJob, wish: ResponseWish): Promise<void>
  /** What other processes ask of the responses that this process makes. Each wish for events is returned once. */
  takeWishes(): Promise<ReadonlyMap<ResponseJob, ResponseWish>>
}

/** The jobs of the only process, as on SQLite: it does them all, and asks nobody. */
export const jobsOfOnlyProcess: Jobs = {
  isOurs: async () => true,
  isElsewhere: async () => false,
  async giveBack() {},
  async ask() {},
  takeWishes: async () => new Map(),
}

/** Parts of the configuration that processes keep in memory. */
export type ConfigurationGroup = 'keys' | 'rules' | 'prices' | 'site'

export interface Changes {
  /** Calls the listener after another process has changed something of the group. On SQLite there is no other process. */
  subscribe(group: ConfigurationGroup, listener: () => void | Promise<void>): void
  /**
   * The revision of the rules and prices that this process knows, read before they are used. A hold carries it, so that
   * the database can refuse a call that was admitted with old ones. Undefined on SQLite.
   */
  readonly revision: number | undefined
  /** Resolves when everything is known that was changed before this call. */
  refresh(): Promise<void>
  /** Asks all other processes to reset the health of a channel, which they have in memory. */
  askForReset(channel: string): Promise<void>
  /** Calls the listener when a process has asked for a reset, also when it was this one. */
  onReset(listener: (channel: string) => void): void
}

/** The changes on SQLite, where no other process can change anything. */
export const noChanges: Changes = {
  subscribe() {},
  revision: undefined,
  refresh: () => Promise.resolve(),
  askForReset: () => Promise.resolve(),
  onReset() {},
}

/** A process that uses the database, for people. */
export interface LiveProcess {
  readonly slot: number
  readonly version: string
  /** The machine, and where the process listens. */
  readonly address: string
  /** How long ago the lease was renewed. */
  readonly leaseAgeMs: number
  /** Others may take the process for dead. */
  readonly hasRunOut: boolean
}

export interface ProcessList {
  /** The time of the database. */
  readonly nowMs: number
  readonly members: readonly LiveProcess[]
}

/** The processes that use the same database. */
export interface Processes {
  /** How many are alive, with this one. */
  readonly count: number
  /**
   * Whether this process is ready for calls: no other process can have taken it for dead, or will soon, and its
   * configuration is current.
   */
  readonly mayServe: boolean
  /** Whether no other process can have taken this one for dead. If not, it can write nothing of calls. */
  readonly isAlive: boolean
  /** The name of this process. No other process that uses the database has or had it. */
  readonly name: string
  /** The name of the database, which no other database has. */
  readonly databaseName: string
  /** The number of this process among those that are alive. Undefined on SQLite. */
  readonly slot: number | undefined
  /** All processes that are alive. Undefined on SQLite, where there is only this one. */
  list(): Promise<ProcessList | undefined>
}

export interface StoreEngine {
  readonly kind: 'sqlite' | 'postgres'
  /** Where threads read the data. */
  readonly place: DataPlace
  readonly writer: StoreWriter
  readonly reader: Reader
  readonly queries: QueryRunner
  readonly statistics: StatisticsStore
  readonly bodies: BodyStorage
  readonly totals: LedgerTotalsSource
  readonly audit: LedgerAuditSource
  readonly secretScan: SecretScanner
  readonly jobs: Jobs
  readonly changes: Changes
  readonly processes: Processes
  mintId(): number
  close(): Promise<void>
}
