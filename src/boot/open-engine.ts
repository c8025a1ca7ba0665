// Opens the database that the configuration names, with the data folder, its lock and the secrets.
//
// Without WEIR_DATABASE_URL the data is in SQLite files of the data folder. With it, the data is in PostgreSQL, and the
// folder only has the lock and the control socket of the process, and the secrets if they are not in the environment.

import type { Secret } from '../base/secrets/secret.ts'
import type { Config } from '../config.ts'
import { openEmbedded } from './open-embedded.ts'
import type { OpenEngineParts, OpenedEngine } from './opened-engine.ts'

export async function openEngine(config: Config, parts: OpenEngineParts): Promise<OpenedEngine> {
  const opened = await (config.databaseUrl === undefined ? openEmbedded(config, parts) : openLater(config, parts))
  for (const file of opened.folder.closedFiles)
    parts.log.warn('other users could read this secret file; its permissions are now restricted', { file })
  return opened
}

/** Most gateways never need the code for PostgreSQL, so it is loaded only then. */
async function openLater(config: Config, parts: OpenEngineParts): Promise<OpenedEngine> {
  const { openShared } = await import('./open-shared.ts')
  return openShared(config, parts)
}

/** Refuses a database that has no room for one more gateway. Commands need less. */
export async function checkDatabaseUrl(url: Secret): Promise<void> {
  const { requireConnections } = await import('../store/postgres/connect.ts')
  const { addressOfUrl } = await import('../store/postgres/pools.ts')
  await requireConnections(addressOfUrl(url))
}
