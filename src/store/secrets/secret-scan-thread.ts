// The thread that scans the database for digests and encrypted values by secret. It reads every encrypted value, which
// would take too long on the thread that serves calls. It writes nothing.

import type { Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { Seal } from '../../base/secrets/seal.ts'
import type { SecretRing } from '../../base/secrets/secret-ring.ts'
import { buildSecretRing } from '../../base/secrets/secret-ring.ts'
import { serveThread } from '../../base/threads/serve-thread.ts'
import { openReader } from '../engine/database.ts'
import type { ResealCursor, ResealStep } from './resealed-rows.ts'
import { resealSome } from './resealed-rows.ts'
import type { KeyOnOldPepper, OldPepperQuery, SecretUseCounts } from './secret-marks.ts'
import { bodyColumns, countPeppered, countSealed, findKeysOnOldPeppers, sealedColumns } from './secret-marks.ts'

export interface SecretScanMethods {
  countPeppered(query: { readonly first: string }): SecretUseCounts
  countSealed(query: { readonly bodies: string }): SecretUseCounts
  keysOnOlder(query: OldPepperQuery): readonly KeyOnOldPepper[]
  /** `secrets` has the newest first. */
  reseal(query: { readonly secrets: readonly string[]; readonly cursor: ResealCursor }): ResealStep
}

let ring: SecretRing | undefined
let seal: Seal | undefined
let knownSecrets = ''

function sealOf(secrets: readonly string[]): { seal: Seal; newest: string } {
  const joined = secrets.join('\n')
  if (ring === undefined || seal === undefined || knownSecrets !== joined) {
    ring = buildSecretRing(...secrets)
    seal = new Seal(ring)
    knownSecrets = joined
  }
  return { seal, newest: ring.newestFingerprint }
}

/** Empty where no body was ever stored. */
function countBodies(path: string): SecretUseCounts {
  if (!existsSync(path)) return {}
  const file = openReader(path)
  try {
    return countSealed(file, bodyColumns)
  } finally {
    file.close()
  }
}

function merge(one: SecretUseCounts, other: SecretUseCounts): SecretUseCounts {
  const marks = new Set([...Object.keys(one), ...Object.keys(other)])
  return Object.fromEntries([...marks].map(mark => [mark, { ...one[mark], ...other[mark] }]))
}

serveThread<SecretScanMethods, string>(path => {
  let db: Database | undefined
  const database = (): Database => (db ??= openReader(path))
  return {
    countPeppered: ({ first }) => countPeppered(database(), first),
    countSealed: ({ bodies }) => merge(countSealed(database()), countBodies(bodies)),
    keysOnOlder: query => findKeysOnOldPeppers(database(), query),
    reseal: ({ secrets, cursor }) => resealSome(database(), { columns: sealedColumns, ...sealOf(secrets) }, cursor),
  }
})
