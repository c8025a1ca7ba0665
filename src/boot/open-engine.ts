// Opens the database that the configuration names, with the data folder, its lock and the secrets.
//
// Without WEIR_DATABASE_URL the data is in SQLite files of the data folder. With it, the data is in PostgreSQL, and the
// folder only has the lock and the control socket of the process, and the secrets if they are not in the environment.

import packageJson from '../../package.json'
import { bounds } from '../base/bounds.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config.ts'
import { ConfigError } from '../config.ts'
import type { DataFolder } from '../store/engine/folder.ts'
import { openFolder } from '../store/engine/folder.ts'
import type { FolderLock } from '../store/engine/lock.ts'
import { lockFolder } from '../store/engine/lock.ts'
import { openSqliteEngine } from '../store/engine/sqlite-engine.ts'
import type { StoreEngine } from '../store/engine/store-engine.ts'
import type { Runtime } from './runtime.ts'

const { version } = packageJson

/** The auditor skips records that are younger than this and checks them in a later pass. */
export const AUDIT_LAG_MS = 2 * bounds.bodyMsMax

export interface OpenedEngine {
  readonly engine: StoreEngine
  readonly folder: DataFolder
  readonly lock: FolderLock
}

export interface OpenEngineParts {
  readonly world: Runtime
  readonly log: Log
  /** Opens the database even if data was encrypted with secrets that are lost. */
  readonly ignoresLostSecrets: boolean
  /** Ends all calls that are active now. It resolves when they are over. */
  endCalls(): Promise<void>
}

export async function openEngine(config: Config, parts: OpenEngineParts): Promise<OpenedEngine> {
  const { log } = parts
  const opened = await (config.databaseUrl === undefined ? openEmbedded(config, parts) : openLater(config, parts))
  for (const file of opened.folder.closedFiles)
    log.warn('other users could read this secret file; its permissions are now restricted', { file })
  return opened
}

/** Most gateways never need the code for PostgreSQL, so it is loaded only then. */
async function openLater(config: Config, parts: OpenEngineParts): Promise<OpenedEngine> {
  const { openShared } = await import('./open-shared.ts')
  return openShared(config, parts)
}

export function lockOrFail(path: string): FolderLock {
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
