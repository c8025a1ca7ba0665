// Checks at the start that the secrets fit the data. With wrong secrets a gateway would know no API key and could
// decrypt nothing; it would fail for each caller instead of once for its operator.

import type { Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { SecretRing } from '../../base/secrets/secret-ring.ts'
import type { AuditActor } from '../audit-log/audited-operations.ts'
import { openReader } from '../engine/database.ts'
import type { GatewaySecrets } from '../engine/folder.ts'
import { FolderError } from '../engine/folder-error.ts'
import type { Writer } from '../engine/writer.ts'
import { secretSources } from './secret-files.ts'
import type { SecretKind } from './secret-kinds.ts'
import { secretKinds } from './secret-kinds.ts'
import { bodyColumns, isEncryptionKeyUsed, isPepperUsed, readSecretMarks } from './secret-marks.ts'

export interface SecretCheckInput {
  readonly database: string
  readonly bodies: string
  readonly secrets: GatewaySecrets
}

export interface MissingSecret {
  readonly kind: SecretKind
  readonly mark: string
  /** A digest or an encrypted value needs this secret. */
  readonly needed: boolean
}

/** The secrets that are noted in the database and missing. A token secret is never needed: tokens expire soon. */
export function findMissingSecrets({ database, bodies, secrets }: SecretCheckInput): readonly MissingSecret[] {
  const db = openReader(database)
  try {
    return secretKinds.flatMap(kind =>
      readSecretMarks(db, kind)
        .filter(({ mark }) => secrets[kind].find(mark) === undefined)
        .map(row => {
          const { mark } = row
          if (kind === 'pepper') return { kind, mark, needed: isPepperUsed(db, row) }
          return {
            kind,
            mark,
            needed: kind === 'encryption' && (isEncryptionKeyUsed(db, mark) || isSealedIn(bodies, mark)),
          }
        }),
    )
  } finally {
    db.close()
  }
}

function isSealedIn(bodies: string, mark: string): boolean {
  if (!existsSync(bodies)) return false
  const db = openReader(bodies)
  try {
    return isEncryptionKeyUsed(db, mark, bodyColumns)
  } finally {
    db.close()
  }
}

const madeWith: Readonly<Record<SecretKind, string>> = {
  pepper: 'keys or codes in the database were made with',
  encryption: 'content in the database was encrypted with',
  jwt: 'tokens were signed with',
}

/** The error text for the operator. */
export function missingSecretText({ kind, mark }: MissingSecret, folder: string): string {
  const { file, variable, name } = secretSources[kind]
  return (
    `${name[0]!.toUpperCase()}${name.slice(1)} in use does not fit the data: ${madeWith[kind]} the one with the mark ` +
    `${mark}. Add that one to ${join(folder, file)} (one per line, newest first) or ${variable} (separated by commas); ` +
    `a backup has it. If it is lost, give up what was made with it: weir rotate ${kind} --finish --force.`
  )
}

export interface SecretCheckOptions extends SecretCheckInput {
  readonly folder: string
  readonly writer: Pick<Writer, 'run'>
  /** Start although needed secrets are missing: what was made with them is given up. */
  readonly ignoresMissing: boolean
  readonly by: AuditActor
}

/** Refuses to start with wrong secrets, and notes the secrets in use. Returns the kinds whose newest secret changed. */
export async function checkSecrets(start: SecretCheckOptions): Promise<readonly SecretKind[]> {
  const { writer, by } = start
  const absent = findMissingSecrets(start)
  const needed = absent.find(secret => secret.needed)
  if (needed !== undefined && !start.ignoresMissing) throw new FolderError(missingSecretText(needed, start.folder))
  const rotated = await noteSecrets(start)
  for (const { kind, mark } of absent.filter(secret => !secret.needed)) {
    await writer.run('dropSecrets', { kind, marks: [mark] }, by)
  }
  return rotated
}

async function noteSecrets({ database, secrets, writer, by }: SecretCheckOptions): Promise<readonly SecretKind[]> {
  const db = openReader(database)
  try {
    const unnoted = secretKinds.filter(kind => !isNoted(db, kind, secrets[kind]))
    const noted = unnoted.map(async kind => {
      const { done } = await writer.run('noteSecrets', { kind, marks: secrets[kind].fingerprints }, by)
      return done === 'rotated' ? [kind] : []
    })
    return (await Promise.all(noted)).flat()
  } finally {
    db.close()
  }
}

function isNoted(db: Database, kind: SecretKind, ring: SecretRing): boolean {
  const noted = readSecretMarks(db, kind)
  const newest = noted.find(({ replacedMs }) => replacedMs === null)?.mark
  return newest === ring.newestFingerprint && ring.fingerprints.every(mark => noted.some(row => row.mark === mark))
}
