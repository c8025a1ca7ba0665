// Opens the database that the configuration names, with the data folder, its lock and the secrets.
//
// Without WEIR_DATABASE_URL the data is in SQLite files of the data folder. With it, the data is in PostgreSQL, and the
// folder only has the lock and the control socket of the process, and the secrets if they are not in the environment.

import { hostname } from 'node:os'
import { resolve } from 'node:path'
import packageJson from '../../package.json'
import { bounds } from '../base/bounds.ts'
import type { Log } from '../base/log.ts'
import { describeFault } from '../base/log.ts'
import type { Config } from '../config.ts'
import { ConfigError } from '../config.ts'
import type { DataFolder } from '../store/engine/folder.ts'
import {
  bodiesOf,
  controlSocketOf,
  createFolder,
  databaseOf,
  openFolder,
  statisticsOf,
} from '../store/engine/folder.ts'
import type { FolderLock } from '../store/engine/lock.ts'
import { lockFolder } from '../store/engine/lock.ts'
import { refuseUnmovedData } from '../store/engine/moved-folder.ts'
import { openSqliteEngine } from '../store/engine/sqlite-engine.ts'
import type { StoreEngine } from '../store/engine/store-engine.ts'
import { PostgresAudit } from '../store/postgres/audit.ts'
import { PostgresChanges } from '../store/postgres/changes.ts'
import type { EngineContext, EngineParts } from '../store/postgres/engine.ts'
import { openPostgresEngine } from '../store/postgres/engine.ts'
import { PostgresJobs } from '../store/postgres/jobs.ts'
import { addressOfUrl } from '../store/postgres/pools.ts'
import { openSharedSecrets } from '../store/postgres/shared-secrets.ts'
import { PostgresStatistics } from '../store/postgres/statistics.ts'
import { BodyStore } from '../store/records/bodies.ts'
import { secretKinds } from '../store/secrets/secret-kinds.ts'
import { SecretScan } from '../store/secrets/secret-scan.ts'
import type { Runtime } from './runtime.ts'

const { version } = packageJson

/** The auditor skips records that are younger than this and checks them in a later pass. */
const AUDIT_LAG_MS = 2 * bounds.bodyMsMax

const CHANGES_MS_MAX = 2_000
const STATISTICS_MS_MAX = 60_000

export interface OpenedEngine {
  readonly engine: StoreEngine
  readonly folder: DataFolder
  readonly lock: FolderLock
}

interface OpenEngineParts {
  readonly world: Runtime
  readonly log: Log
  /** Opens the database even if data was encrypted with secrets that are lost. */
  readonly ignoresLostSecrets: boolean
  /** Ends all active calls. It resolves when none is left. */
  endCalls(): Promise<void>
}

export async function openEngine(config: Config, parts: OpenEngineParts): Promise<OpenedEngine> {
  const open = config.databaseUrl === undefined ? openEmbedded : openShared
  const { log } = parts
  const opened = await open(config, parts)
  for (const file of opened.folder.closedFiles)
    log.warn('other users could read this secret file; its permissions are now restricted', { file })
  return opened
}

function lockOrFail(path: string): FolderLock {
  const lock = lockFolder(path)
  if (lock === undefined) throw new ConfigError(`Another Weir is using the data folder ${path}.`)
  return lock
}

async function openEmbedded(
  config: Config,
  { world, log, ignoresLostSecrets }: OpenEngineParts,
): Promise<OpenedEngine> {
  const folder = openFolder(config.dataFolder, config.env, ignoresLostSecrets)
  const lock = lockOrFail(folder.path)
  const { ballastBytes, databaseBytesMax, responsesBytesMax, bodiesDays } = config
  try {
    const engine = await openSqliteEngine({
      folder,
      ballastBytes,
      databaseBytesMax,
      responsesBytesMax,
      bodiesDays,
      auditLagMs: AUDIT_LAG_MS,
      ignoresLostSecrets,
      version,
      log,
      ledgerWaitMs: world.ledgerWaitMs,
      dateMs: world.clock.dateMs,
      onLost: world.onLedgerLost,
    })
    return { engine, folder, lock }
  } catch (fault) {
    lock.release()
    throw fault
  }
}

async function openShared(
  config: Config,
  { world, log, ignoresLostSecrets, endCalls }: OpenEngineParts,
): Promise<OpenedEngine> {
  const { databaseUrl, dataFolder, processFolder, responsesBytesMax, host, port } = config
  createFolder(dataFolder)
  refuseUnmovedData(dataFolder)
  const path = createFolder(processFolder)
  const lock = lockOrFail(path)
  const secretsOpened = Promise.withResolvers<SharedSecrets>()
  try {
    const engine = await openPostgresEngine({
      database: addressOfUrl(databaseUrl!),
      address: `${hostname()} ${host}:${port}`,
      version,
      folder: path,
      responsesBytesMax,
      async openParts(context) {
        const { secrets, ...parts } = await openParts(config, { context, world, log, ignoresLostSecrets })
        secretsOpened.resolve(secrets)
        return parts
      },
      onFenced() {
        log.error('this process did not answer for too long, and others have ended its calls: it begins anew')
        return endCalls()
      },
      onRecovered: calls => log.warn('calls of processes that have died were ended', { calls }),
    })
    return { engine, folder: sharedFolder(path, await secretsOpened.promise), lock }
  } catch (fault) {
    lock.release()
    throw fault
  }
}

type SharedSecrets = Awaited<ReturnType<typeof openSharedSecrets>>

interface SharedParts extends Pick<OpenEngineParts, 'world' | 'log' | 'ignoresLostSecrets'> {
  readonly context: EngineContext
}

async function openParts(
  config: Config,
  { context, world, log, ignoresLostSecrets }: SharedParts,
): Promise<EngineParts & { readonly secrets: SharedSecrets }> {
  const { address, openPool, owner, reader, writer } = context
  const scan = new SecretScan(address)
  const by = { actor: `weir ${version}` }
  const secrets = await openSharedSecrets({
    reader,
    writer,
    scan,
    folder: resolve(config.dataFolder),
    env: config.env,
    by,
    ignoresLost: ignoresLostSecrets,
  })
  for (const kind of secrets.rotated)
    log.info('a secret has changed since the last start', { kind, mark: secrets.secrets[kind].newestFingerprint })
  const jobs = new PostgresJobs(openPool({ connections: 1, deadlineMs: bounds.settleMsMax }), owner)
  const changes = new PostgresChanges(openPool({ connections: 1, deadlineMs: CHANGES_MS_MAX }), {
    onError: fault => log.warn('changes of the configuration could not be read', { fault: describeFault(fault) }),
  })
  await changes.start()
  const statistics = new PostgresStatistics({
    pool: { address, connections: 1, deadlineMs: STATISTICS_MS_MAX },
    jobs,
    onError: detail => log.warn('statistics could not be updated yet', { detail }),
  })
  const bodies = new BodyStore({
    place: address,
    encryption: secrets.secrets.encryption,
    days: config.bodiesDays,
    dateMs: world.clock.dateMs,
    onError: detail => log.warn('bodies were not stored', { detail }),
  })
  const audit = new PostgresAudit(openPool({ connections: 1, deadlineMs: STATISTICS_MS_MAX }), AUDIT_LAG_MS)
  return {
    secrets,
    statistics,
    bodies,
    audit,
    secretScan: scan,
    jobs,
    changes,
    isCurrent: () => changes.isCurrent,
    async close() {
      await audit.close()
      await statistics.close()
      scan.close()
      await bodies.close()
      await changes.close()
      await jobs.close()
    },
  }
}

/** The secrets cannot be rotated by a command, which would reach one process only. */
function sharedFolder(path: string, { secrets, closedFiles }: SharedSecrets): DataFolder {
  return {
    path,
    database: databaseOf(path),
    bodies: bodiesOf(path),
    statistics: statisticsOf(path),
    socket: controlSocketOf(path),
    secrets,
    closedFiles,
    fromEnvironment: new Set(secretKinds),
    lacksDatabase: false,
  }
}
