// Opens a database that several processes share: PostgreSQL, with all parts of the store on it. The data folder has the lock
// and the control socket of the process, and the secrets if they are not in the environment.

import { hostname } from 'node:os'
import { resolve } from 'node:path'
import packageJson from '../../package.json'
import { bounds } from '../base/bounds.ts'
import { describeFault } from '../base/log.ts'
import type { Config } from '../config.ts'
import type { DataFolder } from '../store/engine/folder.ts'
import { bodiesOf, controlSocketOf, createFolder, databaseOf, statisticsOf } from '../store/engine/folder.ts'
import { refuseUnmovedData } from '../store/engine/moved-folder.ts'
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
import type { OpenEngineParts, OpenedEngine } from './opened-engine.ts'
import { AUDIT_LAG_MS, lockOrFail } from './opened-engine.ts'

const { version } = packageJson

const CHANGES_MS_MAX = 2_000
const STATISTICS_MS_MAX = 60_000

export async function openShared(
  config: Config,
  { world, log, ignoresLostSecrets, endCalls }: OpenEngineParts,
): Promise<OpenedEngine> {
  const { databaseUrl, dataFolder, processFolder, responsesBytesMax, host, port } = config
  refuseUnmovedData(dataFolder)
  createFolder(dataFolder)
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
      ledgerMs: world.ledgerMs,
      queryMs: world.queryMs,
      ledgerWaitMs: world.ledgerWaitMs,
      async openParts(context) {
        const { secrets, ...parts } = await openParts(config, { context, world, log, ignoresLostSecrets })
        secretsOpened.resolve(secrets)
        return parts
      },
      onFenced() {
        log.error('this process did not renew its lease in time, and others have settled its calls: it registers again')
        return endCalls()
      },
      onNotJoined: fault => log.error('this process cannot register again yet', { fault: describeFault(fault) }),
      onRecovered: calls => log.warn('calls of dead processes were settled', { calls }),
      onUnrecovered: calls => log.error('calls of dead processes cannot be settled yet', { calls }),
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
    ignoresLost: ignoresLostSecrets,
    by,
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
