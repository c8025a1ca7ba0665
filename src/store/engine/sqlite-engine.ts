// The database of one process: SQLite files in the data folder, with a thread for writing and threads for long reads.

import { buildIdMinter } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { LedgerTotalsReader } from '../ledger/ledger-totals.ts'
import { AuditWorker, auditDatabase } from '../ledger-audit/audit-worker.ts'
import { QueryWorker } from '../queries/query-worker.ts'
import { BodyStore } from '../records/bodies.ts'
import { checkSecrets } from '../secrets/secret-check.ts'
import { SecretScan } from '../secrets/secret-scan.ts'
import { StatisticsWorker } from '../statistics/statistics-worker.ts'
import type { DataFolder } from './folder.ts'
import { openCallReader } from './reader.ts'
import type { StoreEngine } from './store-engine.ts'
import { jobsOfOnlyProcess, noChanges } from './store-engine.ts'
import type { WaitMeasure } from './writer.ts'
import { Writer } from './writer.ts'
import type { WriterStart } from './writer-messages.ts'

export interface SqliteEngineParts {
  readonly folder: DataFolder
  readonly ballastBytes: number
  readonly databaseBytesMax: number | undefined
  readonly responsesBytesMax: number
  /** How many days bodies are kept. */
  readonly bodiesDays: number
  /** The auditor skips records that are younger than this and checks them in a later pass. */
  readonly auditLagMs: number
  /** Opens the database even if data was encrypted with secrets that are lost. */
  readonly ignoresLostSecrets: boolean
  readonly version: string
  readonly log: Log
  readonly ledgerMs: number
  /** How long one query of the management interface may take. */
  readonly queryMs: number
  readonly ledgerWaitMs: WaitMeasure
  dateMs(): number
  /** Called when the writer thread has ended by itself. */
  onLost(detail: string): void
}

/** Migrates the data, checks that the secrets fit it, and settles the calls that a crash left open. */
export async function openSqliteEngine(parts: SqliteEngineParts): Promise<StoreEngine> {
  const { folder, log, dateMs } = parts
  const { database } = folder
  const [writer, start] = await openWriter(parts)
  const reader = openCallReader(database)
  const queries = new QueryWorker(database, { msMax: parts.queryMs })
  const statistics = new StatisticsWorker({
    database,
    statistics: folder.statistics,
    writer,
    onError: detail => log.warn('statistics could not be updated yet', { detail }),
  })
  const bodies = new BodyStore({
    place: { path: folder.bodies },
    encryption: folder.secrets.encryption,
    days: parts.bodiesDays,
    dateMs,
    onError: detail => log.warn('bodies were not stored', { detail }),
  })
  const totals = new LedgerTotalsReader(database)
  const auditing = new AuditWorker({ path: database, lagMs: parts.auditLagMs, rests: true, deep: false })
  const secretScan = new SecretScan({ path: database })
  return {
    kind: 'sqlite',
    place: { path: database },
    writer,
    reader,
    queries,
    statistics,
    bodies,
    totals,
    audit: {
      pass: () => auditing.pass(),
      auditAll: () => auditDatabase(database),
      close: () => auditing.close(),
    },
    secretScan,
    jobs: jobsOfOnlyProcess,
    changes: noChanges,
    processes: {
      count: 1,
      mayServe: true,
      isAlive: true,
      name: 'only',
      databaseName: 'sqlite',
      slot: undefined,
      list: async () => undefined,
    },
    mintId: buildIdMinter(dateMs, start.lastId),
    async close() {
      await auditing.close()
      await statistics.close()
      secretScan.close()
      await bodies.close()
      totals.close()
      queries.close()
      reader.close() // before the writer: the last connection merges the write-ahead log, and a reader cannot write
      await writer.close()
    },
  }
}

/** Opens the ledger and checks that the secrets fit its data. */
async function openWriter(parts: SqliteEngineParts): Promise<[Writer, WriterStart]> {
  const { folder, log, ballastBytes, databaseBytesMax, responsesBytesMax } = parts
  if (folder.lacksDatabase)
    log.error('there are secrets but no database: an empty database is created', { folder: folder.path })
  const options = { path: folder.database, ballastBytes, databaseBytesMax, responsesBytesMax }
  const opened = await Writer.open(options, parts.onLost, parts.ledgerWaitMs, parts.ledgerMs)
  try {
    const rotated = await checkSecrets({
      ...folder,
      folder: folder.path,
      writer: opened[0],
      ignoresMissing: parts.ignoresLostSecrets,
      by: { actor: `weir ${parts.version}` },
    })
    for (const kind of rotated)
      log.info('a secret has changed since the last start', { kind, mark: folder.secrets[kind].newestFingerprint })
    return opened
  } catch (fault) {
    await opened[0].close()
    throw fault
  }
}
