// Whether the secrets are those that the data was made with. With others a gateway would know no key and open nothing,
// and say so to each caller instead of once to its operator.

import { existsSync } from 'node:fs'
import type { Database } from 'bun:sqlite'
import type { SecretRing } from '../base/secret-ring.ts'
import { openReader } from './database.ts'
import type { Secrets } from './folder.ts'
import type { SecretKind } from './secret-files.ts'
import { secretHomes } from './secret-files.ts'
import { bodyColumns, isPeppered, isSealed, readMarks } from './secret-marks.ts'

export interface Checked {
  readonly database: string
  readonly bodies: string
  readonly secrets: Secrets
}

export interface MissingSecret {
  readonly kind: SecretKind
  readonly mark: string
}

/** The first secret that is noted and not there, although something rests on it. Tokens are no matter: they end soon. */
export function findMissing({ database, bodies, secrets }: Checked): MissingSecret | undefined {
  const db = openReader(database)
  try {
    const absent = (kind: 'pepper' | 'encryption') =>
      readMarks(db, kind).filter(({ mark }) => secrets[kind].find(mark) === undefined)
    const pepper = absent('pepper').find(noted => isPeppered(db, noted))
    if (pepper !== undefined) return { kind: 'pepper', mark: pepper.mark }
    const sealed = absent('encryption').find(({ mark }) => isSealed(db, mark) || isSealedIn(bodies, mark))
    return sealed && { kind: 'encryption', mark: sealed.mark }
  } finally {
    db.close()
  }
}

function isSealedIn(bodies: string, mark: string): boolean {
  if (!existsSync(bodies)) return false
  const db = openReader(bodies)
  try {
    return isSealed(db, mark, bodyColumns)
  } finally {
    db.close()
  }
}

const madeWith: Readonly<Record<SecretKind, string>> = {
  pepper: 'keys or codes in the database were made with',
  encryption: 'words in the database were sealed with',
  jwt: 'tokens were signed with',
}

/** What the operator is told. */
export function missingSentence({ kind, mark }: MissingSecret, folder: string): string {
  const { file, variable, name } = secretHomes[kind]
  return (
    `Another secret than ${name} in use is needed: ${madeWith[kind]} the one with the mark ${mark}. Put it back into ` +
    `${folder}/${file} (one a line, the newest first) or ${variable} (with commas between); a backup has it. If it is ` +
    `lost, give up what was made with it: weir rotate ${kind} --finish --force.`
  )
}

/** Whether the ring has to be noted: it has another newest, or one that is not noted yet. */
export function isNoted(db: Database, kind: SecretKind, ring: SecretRing): boolean {
  const noted = readMarks(db, kind)
  const newest = noted.find(({ replacedMs }) => replacedMs === null)?.mark
  return newest === ring.newestMark && ring.marks.every(mark => noted.some(row => row.mark === mark))
}
