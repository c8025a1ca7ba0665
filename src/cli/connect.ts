// Sends the operator's requests: to the gateway that runs on the data folder, or else to the data itself: the files of
// the folder, or the PostgreSQL database. Other gateways may use that database at the same time.

import { resolve } from 'node:path'
import type { Secret } from '../base/secrets/secret.ts'
import type { Store } from '../boot/open-store.ts'
import type { Config } from '../config.ts'
import { readConfig } from '../config.ts'
import type { ControlHandler } from '../http/server/control-socket.ts'
import { sendControlRequest } from '../http/server/control-socket.ts'
import { controlSocketOf, hasData } from '../store/engine/folder.ts'
import { refuseMovedData, refuseUnmovedData } from '../store/engine/moved-folder.ts'
import { duringMigration } from './data-upgrade.ts'
import { Problem } from './problem.ts'

export type CommandFields = Record<string, unknown>

export interface ConnectOptions {
  /** The command may create a data folder, if WEIR_DATA says where. */
  readonly createsData?: boolean
  /** Opens the data even if some of it was encrypted with secrets that are lost. */
  readonly ignoresLostSecrets?: boolean
}

/** Refuses a folder without data. Otherwise a wrong folder would get new, empty data, and its audit would pass. */
function dataConfig(createsData: boolean): Config {
  const config = readConfig(process.env)
  if (config.databaseUrl !== undefined) {
    refuseUnmovedData(config.dataFolder)
    return config
  }
  refuseMovedData(config.dataFolder)
  if (!hasData(config.dataFolder) && (!createsData || process.env.WEIR_DATA === undefined)) {
    throw new Problem(
      `There is no data of Weir in ${resolve(config.dataFolder)}. Start Weir once, or set WEIR_DATA to its data folder.`,
    )
  }
  return config
}

/** The same for a PostgreSQL database. A start creates its tables. */
async function refuseEmptyDatabase(url: Secret): Promise<void> {
  const { inspectPostgres } = await import('../store/postgres/connect.ts')
  const { addressOfUrl } = await import('../store/postgres/pools.ts')
  if ((await inspectPostgres(addressOfUrl(url))).state !== undefined) return
  throw new Problem('The database in WEIR_DATABASE_URL is empty. Start Weir once, or correct WEIR_DATABASE_URL.')
}

/** Runs a command with a function that sends requests. Without a gateway, the data stays open until the command ends. */
export async function withConnection<T>(
  { createsData = false, ignoresLostSecrets = false }: ConnectOptions,
  run: (request: ControlHandler) => Promise<T>,
): Promise<T> {
  const config = dataConfig(createsData)
  let store: Store | undefined
  const request: ControlHandler = async message => {
    const answer =
      store === undefined ? await sendControlRequest(controlSocketOf(config.dataFolder), message) : undefined
    if (answer !== undefined) return answer
    if (store === undefined) {
      if (config.databaseUrl !== undefined && !createsData) await refuseEmptyDatabase(config.databaseUrl)
      const { openStore } = await import('../boot/open-store.ts')
      const open = () => openStore(withoutBallast(config), { writeLog: () => {} }, { ignoresLostSecrets })
      store = await duringMigration(config.dataFolder, open)
    }
    return await store.manage(message)
  }
  try {
    return await run(request)
  } finally {
    await store?.close()
  }
}

/** For a store that is closed again at once: there is no time to write the ballast file. */
export const withoutBallast = (config: Config): Config => ({ ...config, ballastBytes: 0 })
