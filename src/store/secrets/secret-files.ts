// Secrets in files of the data folder, mode 0600, one secret a line, the newest first; or from the environment, with
// commas between. The first start makes the files.

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
import { flush, openReader } from '../engine/database.ts'
import { FolderError } from '../engine/folder-error.ts'
import type { SecretKind } from './secret-kinds.ts'
import { readMarks } from './secret-marks.ts'

interface SecretHome {
  readonly file: string
  readonly variable: string
  /** As in "the pepper is missing". */
  readonly name: string
}

export const secretHomes: Readonly<Record<SecretKind, SecretHome>> = {
  pepper: { file: 'pepper', variable: 'WEIR_PEPPER', name: 'the pepper' },
  jwt: { file: 'jwt-secret', variable: 'WEIR_JWT_SECRET', name: 'the secret of tokens' },
  encryption: { file: 'encryption-key', variable: 'WEIR_ENCRYPTION_KEY', name: 'the encryption key' },
}

const SECRET_CHARS_MIN = 32
const SECRET_BYTES = 32

export type Environment = Readonly<Record<string, string | undefined>>

/** What is written is no list of secrets: why not. */
class Unreadable extends Error {}

/** At least one, each long enough, no two alike. Says why not without saying what is written. */
function parseRing(texts: readonly string[]): SecretRing {
  if (texts.length === 0) throw new Unreadable('nothing is in it')
  if (texts.length > bounds.secretsMax) {
    throw new Unreadable(`${texts.length} secrets are in it, and at most ${bounds.secretsMax} may be`)
  }
  const short = texts.findIndex(text => text.length < SECRET_CHARS_MIN)
  if (short >= 0) {
    throw new Unreadable(`secret ${short + 1} of ${texts.length} has fewer than ${SECRET_CHARS_MIN} characters`)
  }
  const ring = new SecretRing(texts.map(text => new Secret(text)))
  if (ring.marks.length < texts.length) throw new Unreadable('one secret stands in it twice')
  return ring
}

/** The secrets that a file holds. */
export function readSecretFile(file: string): SecretRing {
  try {
    const text = readFileSync(file, 'utf8').trim()
    return parseRing(text === '' ? [] : text.split('\n').map(line => line.trim()))
  } catch (fault) {
    if (!(fault instanceof Unreadable)) throw fault
    throw new FolderError(
      `The secret in ${file} is damaged: ${fault.message}. Restore it from a backup: what was made with it needs it.`,
    )
  }
}

/** Undefined where the environment says nothing. */
export function readGivenSecrets(kind: SecretKind, env: Environment): SecretRing | undefined {
  const { variable } = secretHomes[kind]
  const given = env[variable]
  if (given === undefined || given === '') return undefined
  try {
    return parseRing(given.split(',').map(text => text.trim()))
  } catch (fault) {
    if (!(fault instanceof Unreadable)) throw fault
    throw new FolderError(
      `${variable} cannot be used: ${fault.message}. Give secrets of ${SECRET_CHARS_MIN} characters or more, the ` +
        'newest first, with commas between.',
    )
  }
}

interface Opening {
  readonly folder: string
  readonly env: Environment
  /** Undefined where nothing in it would be missed. */
  readonly database: string | undefined
}

export function openSecrets({ folder, env, database }: Opening) {
  const fromEnvironment = new Set<SecretKind>()
  const closedFiles: string[] = []
  const open = (kind: SecretKind): SecretRing => {
    const given = readGivenSecrets(kind, env)
    if (given !== undefined) {
      fromEnvironment.add(kind)
      return given
    }
    const file = join(folder, secretHomes[kind].file)
    if (!existsSync(file)) {
      refuseIfMissed(kind, file, database)
      makeSecret(file)
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

/** A new one would open nothing of what is there. */
function refuseIfMissed(kind: SecretKind, file: string, database: string | undefined): void {
  if (database === undefined || kind === 'jwt') return
  const db = openReader(database)
  try {
    if (readMarks(db, kind).length === 0) return
  } finally {
    db.close()
  }
  const { name, variable } = secretHomes[kind]
  throw new FolderError(
    `${name[0]!.toUpperCase()}${name.slice(1)} is missing: the data in ${database} was made with one, and there is ` +
      `neither ${file} nor ${variable}. Bring the file back from a backup, or set the variable. If it is lost, give ` +
      `up what was made with it: weir rotate ${kind} --finish --force.`,
  )
}

export const newSecret = (): Secret => new Secret(randomBytes(SECRET_BYTES).toString('base64url'))

/**
 * Whole and on the disk before it has its name: a start that is killed here must not leave half a secret. Of two that
 * start at once, one gives the file its name and both read it.
 */
function makeSecret(file: string): void {
  const part = `${file}.${process.pid}.part`
  writeFileSync(part, newSecret().reveal(), { mode: 0o600, flush: true })
  try {
    linkSync(part, file)
    flush(dirname(file))
  } catch (fault) {
    if ((fault as { code?: string }).code !== 'EEXIST') throw fault
  } finally {
    unlinkSync(part)
  }
}

export const secretLines = (secrets: readonly Secret[]): string =>
  secrets.map(secret => `${secret.reveal()}\n`).join('')

/** All of it or nothing, and on the disk when this returns. The caller holds the folder's lock. */
export function writeSecretFile(file: string, secrets: readonly Secret[]): void {
  const part = `${file}.part`
  try {
    rmSync(part, { force: true })
    writeFileSync(part, secretLines(secrets), { mode: 0o600, flush: true })
    renameSync(part, file)
  } catch (fault) {
    throw new FolderError(`The secrets cannot be written to ${file}: ${(fault as Error).message}.`)
  }
  flush(dirname(file))
}
