// The data folder: made with mode 0700, holding the database, the lock, the control socket and the secrets.

import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, linkSync, mkdirSync, readFileSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Secret } from '../base/secret.ts'

export class FolderError extends Error {}

const SOCKET_PATH_BYTES_MAX = 100 // the kernel allows 107
const SECRET_CHARS_MIN = 32

export interface DataFolder {
  readonly path: string
  readonly database: string
  /** Made when the first body is kept. */
  readonly bodies: string
  readonly statistics: string
  readonly socket: string
  readonly secrets: Secrets
  /** There are secrets of an earlier start, but no database: it was lost, or the first start was cut off. */
  readonly lacksDatabase: boolean
}

export interface Secrets {
  /** Mixed into the digest of every API key, so that a copy of the database opens nothing. */
  readonly pepper: Secret
  /** Signs management tokens. */
  readonly jwt: Secret
  /** Closes what is kept of callers' words. */
  readonly encryption: Secret
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

export function openFolder(path: string, env: Readonly<Record<string, string | undefined>>): DataFolder {
  const folder = resolve(path)
  const socket = join(folder, 'weir.sock')
  if (Buffer.byteLength(socket) > SOCKET_PATH_BYTES_MAX) {
    throw new FolderError(`The data folder's path is too long for a unix socket: move it with WEIR_DATA (${folder}).`)
  }
  makeFolder(folder)
  if (existsSync(asideNoteIn(folder))) {
    throw new FolderError(`A restore to ${folder} was cut off. Run it again: weir restore <backup folder>.`)
  }
  const database = join(folder, DATABASE)
  const isEmpty = !existsSync(database) || statSync(database).size === 0
  return {
    path: folder,
    lacksDatabase: isEmpty && existsSync(join(folder, 'pepper')),
    database,
    bodies: join(folder, 'bodies.db'),
    statistics: join(folder, STATISTICS),
    socket,
    secrets: {
      pepper: readSecret(env.WEIR_PEPPER, join(folder, 'pepper')),
      jwt: readSecret(env.WEIR_JWT_SECRET, join(folder, 'jwt-secret')),
      encryption: readSecret(env.WEIR_ENCRYPTION_KEY, join(folder, 'encryption-key')),
    },
  }
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

export const isSecret = (value: string): boolean => value.length >= SECRET_CHARS_MIN

/**
 * Whole and on the disk before it has its name: a start that is killed here must not leave half a secret. Of two that
 * start at once, one gives the file its name and both read it.
 */
function makeSecret(file: string): void {
  const part = `${file}.${process.pid}.part`
  writeFileSync(part, randomBytes(32).toString('base64url'), { mode: 0o600, flush: true })
  try {
    linkSync(part, file)
  } catch (fault) {
    if ((fault as { code?: string }).code !== 'EEXIST') throw fault
  } finally {
    unlinkSync(part)
  }
}

/** From the environment, else from its file, which is made on the first start. */
function readSecret(given: string | undefined, file: string): Secret {
  if (given !== undefined && given !== '') {
    if (!isSecret(given)) throw new FolderError(`A secret in the environment is shorter than 32 characters: ${file}`)
    return new Secret(given)
  }
  if (!existsSync(file)) makeSecret(file)
  if ((statSync(file).mode & 0o077) !== 0) chmodSync(file, 0o600)
  const value = readFileSync(file, 'utf8').trim()
  if (!isSecret(value)) {
    throw new FolderError(`The secret in ${file} is damaged. Restore it from a backup: what was made with it needs it.`)
  }
  return new Secret(value)
}
