// Reads the secrets from files of the data folder (mode 0600, one secret per line, newest first) or from environment
// variables (separated by commas). The first start creates the files.

import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  linkSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { bounds } from '../../base/bounds.ts'
import { Secret } from '../../base/secrets/secret.ts'
import { SecretRing } from '../../base/secrets/secret-ring.ts'
import { openReader, syncToDisk } from '../engine/database.ts'
import { FolderError } from '../engine/folder-error.ts'
import type { SecretKind } from './secret-kinds.ts'
import { readSecretMarks } from './secret-marks.ts'

interface SecretHome {
  readonly file: string
  readonly variable: string
  /** As in "the pepper is missing". */
  readonly name: string
}

export const secretSources: Readonly<Record<SecretKind, SecretHome>> = {
  pepper: { file: 'pepper', variable: 'WEIR_PEPPER', name: 'the pepper' },
  jwt: { file: 'jwt-secret', variable: 'WEIR_JWT_SECRET', name: 'the secret of tokens' },
  encryption: { file: 'encryption-key', variable: 'WEIR_ENCRYPTION_KEY', name: 'the encryption key' },
}

const SECRET_CHARS_MIN = 32
const SECRET_BYTES = 32

export type EnvironmentVariables = Readonly<Record<string, string | undefined>>

/** Says why a text is not a valid list of secrets. */
class InvalidSecrets extends Error {}

/** Reads a list of secrets: at least one, each long enough, no duplicates. Error texts never contain a secret. */
function parseRing(texts: readonly string[]): SecretRing {
  if (texts.length === 0) throw new InvalidSecrets('it is empty')
  if (texts.length > bounds.secretsMax) {
    throw new InvalidSecrets(`it has ${texts.length} secrets, and at most ${bounds.secretsMax} are allowed`)
  }
  const short = texts.findIndex(text => text.length < SECRET_CHARS_MIN)
  if (short >= 0) {
    throw new InvalidSecrets(`secret ${short + 1} of ${texts.length} has fewer than ${SECRET_CHARS_MIN} characters`)
  }
  const ring = new SecretRing(texts.map(text => new Secret(text)))
  if (ring.fingerprints.length < texts.length) throw new InvalidSecrets('it has the same secret twice')
  return ring
}

/** Somebody has run a command as another user, such as root, who then owns the files that it created. */
const foreignFileText = (file: string): string =>
  `This user may not read ${file}. Give the data folder to the user that runs Weir: ` +
  `chown -R ${process.getuid?.() ?? '<user>'} ${dirname(file)}`

/** Reads the secrets of a file. */
export function readSecretFile(file: string): SecretRing {
  try {
    const text = readFileSync(file, 'utf8').trim()
    return parseRing(text === '' ? [] : text.split('\n').map(line => line.trim()))
  } catch (fault) {
    if ((fault as { code?: string }).code === 'EACCES') throw new FolderError(foreignFileText(file))
    if (!(fault instanceof InvalidSecrets)) throw fault
    throw new FolderError(
      `The secret in ${file} is damaged: ${fault.message}. Restore it from a backup: what was made with it needs it.`,
    )
  }
}

/** Reads the secrets of an environment variable; undefined where it is not set. */
export function readSecretVariable(kind: SecretKind, env: EnvironmentVariables): SecretRing | undefined {
  const { variable } = secretSources[kind]
  const fromVariable = env[variable]
  if (fromVariable === undefined || fromVariable === '') return undefined
  try {
    return parseRing(fromVariable.split(',').map(text => text.trim()))
  } catch (fault) {
    if (!(fault instanceof InvalidSecrets)) throw fault
    throw new FolderError(
      `${variable} cannot be used: ${fault.message}. Give secrets of ${SECRET_CHARS_MIN} characters or more, the ` +
        'newest first, separated by commas.',
    )
  }
}

interface OpenSecretsOptions {
  readonly folder: string
  readonly env: EnvironmentVariables
  /** Throws when data needs a secret of the kind that is missing: a new secret would not fit the data. */
  refuseMissing(kind: SecretKind, file: string): void
}

/** Missing secrets are created, unless `refuseMissing` throws. */
export function openSecrets({ folder, env, refuseMissing }: OpenSecretsOptions) {
  const fromEnvironment = new Set<SecretKind>()
  const closedFiles: string[] = []
  const open = (kind: SecretKind): SecretRing => {
    const fromVariable = readSecretVariable(kind, env)
    if (fromVariable !== undefined) {
      fromEnvironment.add(kind)
      return fromVariable
    }
    const file = join(folder, secretSources[kind].file)
    if (!existsSync(file)) {
      refuseMissing(kind, file)
      createSecretFile(file)
    }
    if ((statSync(file).mode & 0o077) !== 0) {
      chmodSync(file, 0o600)
      closedFiles.push(file)
    }
    return readSecretFile(file)
  }
  const secrets = { pepper: open('pepper'), jwt: open('jwt'), encryption: open('encryption') }
  return { secrets, fromEnvironment, closedFiles }
}

/** Throws if the SQLite database was made with a secret of this kind. */
export function refuseIfNeeded(kind: SecretKind, file: string, database: string): void {
  if (kind === 'jwt') return
  const db = openReader(database)
  try {
    if (readSecretMarks(db, kind).length === 0) return
  } finally {
    db.close()
  }
  const { name, variable } = secretSources[kind]
  throw new FolderError(
    `${name[0]!.toUpperCase()}${name.slice(1)} is missing: the data in ${database} was made with one, and there is ` +
      `neither ${file} nor ${variable}. Restore the file from a backup, or set the variable. If it is lost, give ` +
      `up what was made with it: weir rotate ${kind} --finish --force.`,
  )
}

export const newSecret = (): Secret => new Secret(randomBytes(SECRET_BYTES).toString('base64url'))

/**
 * Creates a secret file. The file is complete and on the disk before it gets its name, so that a killed start cannot
 * leave half a secret. Of two processes that start at once, one gives the file its name and both read it.
 */
function createSecretFile(file: string): void {
  const part = `${file}.${process.pid}.part`
  writeFileSync(part, newSecret().reveal(), { mode: 0o600, flush: true })
  try {
    linkSync(part, file)
    syncToDisk(dirname(file))
  } catch (fault) {
    if ((fault as { code?: string }).code !== 'EEXIST') throw fault
  } finally {
    unlinkSync(part)
  }
}

export const secretLines = (secrets: readonly Secret[]): string =>
  secrets.map(secret => `${secret.reveal()}\n`).join('')

/** Replaces a secret file atomically. It is on the disk when this returns. The caller holds the lock of the folder. */
export function writeSecretFile(file: string, secrets: readonly Secret[]): void {
  const part = `${file}.part`
  try {
    rmSync(part, { force: true })
    writeFileSync(part, secretLines(secrets), { mode: 0o600, flush: true })
    renameSync(part, file)
  } catch (fault) {
    throw new FolderError(`The secrets cannot be written to ${file}: ${(fault as Error).message}.`)
  }
  syncToDisk(dirname(file))
}
