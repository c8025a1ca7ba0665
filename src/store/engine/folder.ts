// The data folder: made with mode 0700, holding the database, the lock, the control socket and the secrets.

import { existsSync, mkdirSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { SecretRing } from '../../base/secrets/secret-ring.ts'
import type { Environment } from '../secrets/secret-files.ts'
import { openSecrets } from '../secrets/secret-files.ts'
import type { SecretKind } from '../secrets/secret-kinds.ts'
import { FolderError } from './folder-error.ts'

export { FolderError } from './folder-error.ts'

const SOCKET_PATH_BYTES_MAX = 100 // the kernel allows 107

export interface DataFolder {
  readonly path: string
  readonly database: string
  /** Made when the first body is kept. */
  readonly bodies: string
  readonly statistics: string
  readonly socket: string
  readonly secrets: Secrets
  /** Those that are not in files here. */
  readonly fromEnvironment: ReadonlySet<SecretKind>
  /** Files of secrets that others could read until now. */
  readonly closedFiles: readonly string[]
  /** There are secrets of an earlier start, but no database: it was lost, or the first start was cut off. */
  readonly lacksDatabase: boolean
}

export interface Secrets {
  /** Mixed into the digest of every API key, so that a copy of the database opens nothing. */
  readonly pepper: SecretRing
  /** Signs management tokens. */
  readonly jwt: SecretRing
  /** Closes what is kept of callers' words. */
  readonly encryption: SecretRing
}

const DATABASE = 'weir.db'
/** Sums of records; made again from them where it is missing. */
export const STATISTICS = 'stats.db'

/** Where a restore gathers what it is about to put in place. */
export const restoringIn = (folder: string): string => join(folder, 'restoring')

/** Says where that moves what was there. From when it is written until all is in place, nothing may start here. */
export const asideNoteIn = (folder: string): string => join(restoringIn(folder), 'aside')

/** Whether a gateway has ever kept its data here. */
export const hasData = (path: string): boolean =>
  existsSync(join(resolve(path), DATABASE)) || existsSync(asideNoteIn(resolve(path)))

/** Where a gateway that runs on this folder can be asked. */
export function socketIn(folder: string): string {
  const socket = join(resolve(folder), 'weir.sock')
  if (Buffer.byteLength(socket) <= SOCKET_PATH_BYTES_MAX) return socket
  throw new FolderError(
    `The data folder's path is too long for a unix socket: move it with WEIR_DATA (${resolve(folder)}).`,
  )
}

/** With `givesUp`, secrets that are missed are made anew. */
export function openFolder(path: string, env: Environment, givesUp = false): DataFolder {
  const folder = resolve(path)
  const socket = socketIn(folder)
  makeFolder(folder)
  if (existsSync(asideNoteIn(folder))) {
    throw new FolderError(`A restore to ${folder} was cut off. Run it again: weir restore <backup folder>.`)
  }
  const database = join(folder, DATABASE)
  const isEmpty = !existsSync(database) || statSync(database).size === 0
  const lacksDatabase = isEmpty && existsSync(join(folder, 'pepper'))
  const opened = openSecrets({ folder, env, database: isEmpty || givesUp ? undefined : database })
  const [bodies, statistics] = [join(folder, 'bodies.db'), join(folder, STATISTICS)]
  return { path: folder, lacksDatabase, database, bodies, statistics, socket, ...opened }
}

/** Gives its whole path. */
export function makeFolder(path: string): string {
  const folder = resolve(path)
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  } catch (fault) {
    throw new FolderError(`The data folder ${folder} cannot be made: ${(fault as Error).message}`)
  }
  return folder
}
