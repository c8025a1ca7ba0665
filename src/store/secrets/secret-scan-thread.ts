// The thread that scans the database for digests and encrypted values by secret. It reads every encrypted value, which
// would take too long on the thread that serves calls. It writes nothing.

import type { Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { Seal } from '../../base/secrets/seal.ts'
import type { SecretRing } from '../../base/secrets/secret-ring.ts'
import { buildSecretRing } from '../../base/secrets/secret-ring.ts'
import { openReader } from '../engine/database.ts'
import type { ResealCursor, ResealStep } from './resealed-rows.ts'
import { resealSome } from './resealed-rows.ts'
import type { KeyOnOldPepper, OldPepperQuery, SecretUseCounts } from './secret-marks.ts'
import { bodyColumns, countPeppered, countSealed, findKeysOnOldPeppers, sealedColumns } from './secret-marks.ts'

/** The requests of the thread: input and result of each. */
export interface SecretScanRequests {
  countPeppered: { asked: { readonly first: string }; answered: SecretUseCounts }
  countSealed: { asked: { readonly bodies: string }; answered: SecretUseCounts }
  keysOnOlder: { asked: OldPepperQuery; answered: readonly KeyOnOldPepper[] }
  /** `secrets` has the newest first. */
  reseal: { asked: { readonly secrets: readonly string[]; readonly cursor: ResealCursor }; answered: ResealStep }
}

export type SecretScanName = keyof SecretScanRequests
export type SecretScanInput<Name extends SecretScanName> = SecretScanRequests[Name]['asked']
export type SecretScanResult<Name extends SecretScanName> = SecretScanRequests[Name]['answered']

export interface SecretScanMessage {
  readonly database: string
  readonly name: SecretScanName
  readonly input: SecretScanInput<SecretScanName>
}

export type SecretScanReply = { readonly answered: unknown } | { readonly failed: string }

declare const self: Worker

let db: Database | undefined
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

type ScanHandlers = {
  readonly [Name in SecretScanName]: (db: Database, asked: SecretScanInput<Name>) => SecretScanResult<Name>
}

const handlers: ScanHandlers = {
  countPeppered: (database, { first }) => countPeppered(database, first),
  countSealed: (database, { bodies }) => merge(countSealed(database), countBodies(bodies)),
  keysOnOlder: (database, asked) => findKeysOnOldPeppers(database, asked),
  reseal: (database, { secrets, cursor }) =>
    resealSome(database, { columns: sealedColumns, ...sealOf(secrets) }, cursor),
}

self.onmessage = ({ data: { database, name, input } }: MessageEvent<SecretScanMessage>) => {
  try {
    db ??= openReader(database)
    // SecretScan.run has checked that the input fits the name; the message has lost that type.
    const handler = handlers[name] as (db: Database, asked: SecretScanInput<SecretScanName>) => unknown
    postMessage({ answered: handler(db, input) } satisfies SecretScanReply)
  } catch (fault) {
    postMessage({ failed: fault instanceof Error ? fault.message : 'unknown error' } satisfies SecretScanReply)
  }
}
