// The thread that scans the database for digests and encrypted values by secret. It reads every encrypted value, which
// would take too long on the thread that serves calls. It writes nothing.

import type { Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { Seal } from '../../base/secrets/seal.ts'
import type { SecretRing } from '../../base/secrets/secret-ring.ts'
import { ringOf } from '../../base/secrets/secret-ring.ts'
import { openReader } from '../engine/database.ts'
import type { ResealCursor, ResealedSome } from './resealed-rows.ts'
import { resealSome } from './resealed-rows.ts'
import type { OlderKeys, Resting, RestingKey } from './secret-marks.ts'
import { bodyColumns, countPeppered, countSealed, keysOnOlder, sealedColumns } from './secret-marks.ts'

/** The requests of the thread: input and result of each. */
export interface ScanQuestions {
  countPeppered: { asked: { readonly first: string }; answered: Resting }
  countSealed: { asked: { readonly bodies: string }; answered: Resting }
  keysOnOlder: { asked: OlderKeys; answered: readonly RestingKey[] }
  /** `secrets` has the newest first. */
  reseal: { asked: { readonly secrets: readonly string[]; readonly cursor: ResealCursor }; answered: ResealedSome }
}

export type ScanQuestion = keyof ScanQuestions
export type Asked<Name extends ScanQuestion> = ScanQuestions[Name]['asked']
export type Answered<Name extends ScanQuestion> = ScanQuestions[Name]['answered']

export interface ToScan {
  readonly database: string
  readonly name: ScanQuestion
  readonly asked: Asked<ScanQuestion>
}

export type FromScan = { readonly answered: unknown } | { readonly failed: string }

declare const self: Worker

let db: Database | undefined
let ring: SecretRing | undefined
let seal: Seal | undefined
let knownSecrets = ''

function sealOf(secrets: readonly string[]): { seal: Seal; newest: string } {
  const joined = secrets.join('\n')
  if (ring === undefined || seal === undefined || knownSecrets !== joined) {
    ring = ringOf(...secrets)
    seal = new Seal(ring)
    knownSecrets = joined
  }
  return { seal, newest: ring.newestMark }
}

/** Empty where no body was ever stored. */
function countBodies(path: string): Resting {
  if (!existsSync(path)) return {}
  const file = openReader(path)
  try {
    return countSealed(file, bodyColumns)
  } finally {
    file.close()
  }
}

function merge(one: Resting, other: Resting): Resting {
  const marks = new Set([...Object.keys(one), ...Object.keys(other)])
  return Object.fromEntries([...marks].map(mark => [mark, { ...one[mark], ...other[mark] }]))
}

type ScanHandlers = { readonly [Name in ScanQuestion]: (db: Database, asked: Asked<Name>) => Answered<Name> }

const handlers: ScanHandlers = {
  countPeppered: (database, { first }) => countPeppered(database, first),
  countSealed: (database, { bodies }) => merge(countSealed(database), countBodies(bodies)),
  keysOnOlder: (database, asked) => keysOnOlder(database, asked),
  reseal: (database, { secrets, cursor }) =>
    resealSome(database, { columns: sealedColumns, ...sealOf(secrets) }, cursor),
}

self.onmessage = ({ data: { database, name, asked } }: MessageEvent<ToScan>) => {
  try {
    db ??= openReader(database)
    // SecretScan.run has checked that the input fits the name; the message has lost that type.
    const handler = handlers[name] as (db: Database, asked: Asked<ScanQuestion>) => unknown
    postMessage({ answered: handler(db, asked) } satisfies FromScan)
  } catch (fault) {
    postMessage({ failed: fault instanceof Error ? fault.message : 'unknown error' } satisfies FromScan)
  }
}
