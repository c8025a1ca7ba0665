// Opens the SQLite files of a data folder, with the lock of the folder and the secrets.

import packageJson from '../../package.json'
import type { Config } from '../config.ts'
import { openFolder } from '../store/engine/folder.ts'
import { openSqliteEngine } from '../store/engine/sqlite-engine.ts'
import type { OpenEngineParts, OpenedEngine } from './opened-engine.ts'
import { AUDIT_LAG_MS, lockOrFail } from './opened-engine.ts'

const { version } = packageJson

export async function openEmbedded(
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
      ledgerMs: world.ledgerMs,
      queryMs: world.queryMs,
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
