// Opens the data folder, which has mode 0700 and contains the databases, the lock, the control socket and the secrets.

import { accessSync, constants, existsSync, mkdirSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { SecretRing } from '../../base/secrets/secret-ring.ts'
import type { EnvironmentVariables } from '../secrets/secret-files.ts'
import { openSecrets, refuseIfNeeded } from '../secrets/secret-files.ts'
import type { SecretKind } from '../secrets/secret-kinds.ts'
import { FolderError } from './folder-error.ts'

export { FolderError } from './folder-error.ts'

const SOCKET_PATH_BYTES_MAX = 100 // the kernel allows 107

export interface DataFolder {
  readonly path: string
  readonly database: string
  /** The file is created when the first body is stored. */
  readonly bodies: string
  readonly statistics: string
  readonly socket: string
  readonly secrets: GatewaySecrets
  /** The secrets that come from environment variables instead of files in this folder. */
  readonly fromEnvironment: ReadonlySet<SecretKind>
  /** Secret files that other users could read until this start changed their mode. */
  readonly closedFiles: readonly string[]
  /** The folder has secrets but no database: the database was lost, or the first start was interrupted. */
  readonly lacksDatabase: boolean
}

export interface GatewaySecrets {
  /** Part of the digest of every API key, so that a copy of the database alone does not help to guess keys. */
  readonly pepper: SecretRing
  /** Signs session tokens. */
  readonly jwt: SecretRing
  /** Encrypts the stored content of callers. */
  readonly encryption: SecretRing
}

export const DATABASE = 'weir.db'
/** File of the statistics: sums of records. It is rebuilt from the records where it is missing. */
export const STATISTICS_FILE = 'stats.db'

const BODIES_FILE = 'bodies.db'

export const databaseOf = (folder: string): string => join(folder, DATABASE)
export const statisticsOf = (folder: string): string => join(folder, STATISTICS_FILE)
export const bodiesOf = (folder: string): string => join(folder, BODIES_FILE)

/** The size of the log of changes that are not merged into the database yet. It grows while a reader does not end. */
export function logBytesOf(folder: string): number {
  const log = `${databaseOf(folder)}-wal`
  return existsSync(log) ? statSync(log).size : 0
}

/** The folder into which a restore copies a backup before it replaces the present data. */
export const restoreFolderOf = (folder: string): string => join(folder, 'restoring')

/**
 * The file in which a restore notes the folder for the replaced data. While this file exists, the restore is not
 * complete and no gateway may start here.
 */
export const restoreNoteOf = (folder: string): string => join(restoreFolderOf(folder), 'aside')

/** Whether the folder has the data of a gateway, or an unfinished restore. */
export function hasData(path: string): boolean {
  const folder = resolve(path)
  refuseForeignFolder(folder)
  return existsSync(databaseOf(folder)) || existsSync(restoreNoteOf(folder))
}

/** To a user who may not look into the folder, every file in it seems to be missing. */
function refuseForeignFolder(folder: string): void {
  try {
    accessSync(folder, constants.X_OK)
  } catch (fault) {
    if ((fault as NodeJS.ErrnoException).code !== 'EACCES') return
    throw new FolderError(
      `This user may not open the data folder ${folder}. ` +
        'Run the command as the user that runs Weir, for example with "sudo -u weir".',
    )
  }
}

/** The path of the control socket of the gateway that runs on this folder. */
export function controlSocketOf(folder: string): string {
  const socket = join(resolve(folder), 'weir.sock')
  if (Buffer.byteLength(socket) <= SOCKET_PATH_BYTES_MAX) return socket
  throw new FolderError(
    `The path of the data folder is too long for a unix socket: ${resolve(folder)}. ` +
      `Set WEIR_DATA to a shorter path; with "/weir.sock" it may have ${SOCKET_PATH_BYTES_MAX} bytes.`,
  )
}

/**
 * Opens the folder and creates it where it is missing. Secrets that the database needs and that are missing are an
 * error, unless `replacesLostSecrets` is set; then new ones are created.
 */
export function openFolder(path: string, env: EnvironmentVariables, replacesLostSecrets = false): DataFolder {
  const folder = resolve(path)
  const socket = controlSocketOf(folder)
  createFolder(folder)
  if (existsSync(restoreNoteOf(folder))) {
    throw new FolderError(`A restore to ${folder} was interrupted. Run it again: weir restore <backup folder>.`)
  }
  const database = databaseOf(folder)
  const isEmpty = !existsSync(database) || statSync(database).size === 0
  const lacksDatabase = isEmpty && existsSync(join(folder, 'pepper'))
  const openedSecrets = openSecrets({
    folder,
    env,
    refuseMissing(kind, file) {
      if (!isEmpty && !replacesLostSecrets) refuseIfNeeded(kind, file, database)
    },
  })
  return {
    path: folder,
    lacksDatabase,
    database,
    bodies: bodiesOf(folder),
    statistics: statisticsOf(folder),
    socket,
    ...openedSecrets,
  }
}

/** Creates the folder where it is missing, and checks that it can be written. Returns its absolute path. */
export function createFolder(path: string): string {
  const folder = resolve(path)
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  } catch (fault) {
    const { code, message } = fault as NodeJS.ErrnoException
    const problem = code === 'EEXIST' ? 'is not a folder, but a file' : `cannot be created: ${message}`
    throw new FolderError(`The data folder ${folder} ${problem}. Set WEIR_DATA to another folder.`)
  }
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
  } catch (fault) {
    const { code, message } = fault as NodeJS.ErrnoException
    const user = process.getuid?.() ?? '<user>'
    // On a disk that can only be read, another owner changes nothing.
    const remedy =
      code === 'EACCES'
        ? `Give it to the user that runs Weir (chown ${user} ${folder}), or set WEIR_DATA to another folder.`
        : 'Set WEIR_DATA to another folder.'
    throw new FolderError(`The data folder ${folder} cannot be written: ${message}. ${remedy}`)
  }
  return folder
}
