// Opens all parts of the store on PostgreSQL. Each has connections of its own, so that none waits behind another: a
// settle behind a search, or the lease behind a settle.

import { bounds } from '../../base/bounds.ts'
import type { StoreEngine } from '../engine/store-engine.ts'
import { openDatabase, startFault } from './connect.ts'
import { readMembers } from './member-list.ts'
import type { Membership } from './membership.ts'
import { PoolGroup } from './pool-group.ts'
import type { PoolOptions, PostgresAddress, PostgresPool } from './pools.ts'
import type { ProcessOptions } from './process-keeper.ts'
import { ProcessKeeper } from './process-keeper.ts'
import { PostgresQueries, QUERIES_AT_ONCE } from './queries.ts'
import { openPostgresReader } from './reader.ts'
import { PostgresTotals } from './totals.ts'
import { COLD_CONNECTIONS, PostgresWriter } from './writer.ts'

/** The parts that have files of their own. */
export interface EngineParts
  extends Pick<StoreEngine, 'statistics' | 'bodies' | 'audit' | 'secretScan' | 'jobs' | 'changes'> {
  /** Whether this process knows the current configuration, so that it may take calls. */
  isCurrent(): boolean
  /** Called before the connections are closed. */
  close(): Promise<void>
}

/** What the engine gives to its parts. */
export interface EngineContext extends Pick<StoreEngine, 'writer' | 'reader'> {
  readonly address: PostgresAddress
  /** Opens a pool, which the engine closes. */
  openPool(options: Omit<PoolOptions, 'address' | 'onReadOnly'>): PostgresPool
  /** The slot and epoch of this process. They change when it was fenced and has joined again. */
  owner(): Pick<Membership, 'slot' | 'epoch' | 'isAlive'>
}

export interface PostgresEngineOptions extends Omit<ProcessOptions, 'mark' | 'address'> {
  readonly database: PostgresAddress
  /** How others may reach this process, for people. */
  readonly address: string
  /** The most bytes that the stored responses of all accounts may take together. */
  readonly responsesBytesMax?: number | undefined
  /** How long to wait at the start for a server that cannot be reached. */
  readonly waitMs?: number
  /** How long an operation that is none of a call, or a read, may take. */
  readonly ledgerMs?: number
  /** How long a query of the management interface may take. */
  readonly queryMs?: number
  openParts(context: EngineContext): EngineParts | Promise<EngineParts>
}

const READ_CONNECTIONS = 6
/**
 * A batch that takes longer than this is sent again at once, while its callers still wait. It is more than the three
 * seconds for which a batch waits for a lock: the error of the server tells that it was a lock.
 */
export const LEDGER_MS_MAX = 0.7 * bounds.settleMsMax
/** How long the writer of the ledger waits for a lock outside of batches, for example while a table is migrated. */
const LEDGER_SETTINGS = { lock_timeout: '500' }
/** Well below the time of a lease, so that it is renewed by the next try. */
const LEASE_MS_MAX = 4_000

/** Throws a StoreError where the database cannot be used. Its message is a sentence for the operator. */
export async function openPostgresEngine(options: PostgresEngineOptions): Promise<StoreEngine> {
  const { database, responsesBytesMax, waitMs, ledgerMs = bounds.settleMsMax, queryMs = bounds.queryMsMax } = options
  const { mark } = await openDatabase(database, waitMs)
  const pools = new PoolGroup(database)
  const openPool: EngineContext['openPool'] = pool => pools.open(pool)
  let keeper: ProcessKeeper | undefined
  const leave = async (): Promise<void> => {
    await keeper?.close()
    await pools.close()
  }
  try {
    const lease = openPool({ connections: 2, deadlineMs: LEASE_MS_MAX })
    const ledger = openPool({ connections: 1, deadlineMs: LEDGER_MS_MAX, settings: LEDGER_SETTINGS })
    const cold = openPool({ connections: COLD_CONNECTIONS, deadlineMs: ledgerMs })
    const reads = openPool({ connections: READ_CONNECTIONS, deadlineMs: ledgerMs })
    const queryPool = openPool({ connections: QUERIES_AT_ONCE, deadlineMs: queryMs })
    const joined = await ProcessKeeper.open({ lease, ledger }, { ...options, mark })
    keeper = joined
    const writer = new PostgresWriter({ ledger: joined.ledger, pool: cold, responsesBytesMax, msMax: ledgerMs })
    joined.onJoined = next => writer.use(next)
    const reader = openPostgresReader(reads)
    const queries = new PostgresQueries(queryPool, { msMax: queryMs })
    const totals = await PostgresTotals.open(queryPool)
    const parts = await options.openParts({ address: database, openPool, owner: () => joined.owner, writer, reader })
    const { statistics, bodies, audit, secretScan, jobs, changes } = parts
    return {
      kind: 'postgres',
      place: database,
      ...{ writer, reader, queries, totals, statistics, bodies, audit, secretScan, jobs, changes },
      processes: {
        get count() {
          return joined.count
        },
        get mayServe() {
          return joined.mayServe && parts.isCurrent()
        },
        get isAlive() {
          return joined.isAlive
        },
        get name() {
          return `${joined.owner.slot}.${joined.owner.epoch}`
        },
        databaseName: mark,
        get slot() {
          return joined.owner.slot
        },
        list: () => queryPool.readPoint(readMembers()),
      },
      mintId: () => joined.mintId(),
      async close() {
        totals.close()
        queries.close()
        await parts.close()
        await writer.close()
        await leave()
      },
    }
  } catch (fault) {
    await leave()
    throw startFault(fault, database)
  }
}
