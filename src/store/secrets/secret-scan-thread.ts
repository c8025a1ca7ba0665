// The thread that scans the database for digests and encrypted values by secret. It reads every encrypted value, which
// would take too long on the thread that serves calls. It writes nothing.

import { existsSync } from 'node:fs'
import { Seal } from '../../base/secrets/seal.ts'
import type { SecretRing } from '../../base/secrets/secret-ring.ts'
import { buildSecretRing } from '../../base/secrets/secret-ring.ts'
import { serveThread } from '../../base/threads/serve-thread.ts'
import type { DataPlace, ThreadReads } from '../engine/thread-reads.ts'
import { openThreadReads } from '../engine/thread-reads.ts'
import type { ResealCursor, ResealStep } from './resealed-rows.ts'
import { resealReader } from './resealed-rows.ts'
import type { KeyOnOldPepper, OldPepperQuery, SecretUseCounts } from './secret-marks.ts'
import {
  bodyColumns,
  countPeppered,
  countSealed,
  findKeysOnOldPeppers,
  sealedColumns,
  sealedCounter,
} from './secret-marks.ts'

export interface SecretScanMethods {
  countPeppered(query: { readonly first: string }): SecretUseCounts
  /** `bodies` is the file of bodies on SQLite. */
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

const resealSome = resealReader(sealedColumns)
const countSealedBodies = sealedCounter(bodyColumns)

/** Empty where no body was ever stored. */
function countBodiesInFile(path: string): SecretUseCounts | Promise<SecretUseCounts> {
  if (!existsSync(path)) return {}
  const file = openThreadReads({ path })
  try {
    return file.read(countSealedBodies())
  } finally {
    file.close()
  }
}

function merge(one: SecretUseCounts, other: SecretUseCounts): SecretUseCounts {
  const marks = new Set([...Object.keys(one), ...Object.keys(other)])
  return Object.fromEntries([...marks].map(mark => [mark, { ...one[mark], ...other[mark] }]))
}

serveThread<SecretScanMethods, DataPlace>(place => {
  let opened: ThreadReads | undefined
  const read: ThreadReads['read'] = steps => (opened ??= openThreadReads(place)).read(steps)
  const countBodies = (path: string): SecretUseCounts | Promise<SecretUseCounts> =>
    'path' in place ? countBodiesInFile(path) : read(countSealedBodies())
  return {
    countPeppered: ({ first }) => read(countPeppered(first)),
    countSealed: async ({ bodies }) => merge(await read(countSealed()), await countBodies(bodies)),
    keysOnOlder: query => read(findKeysOnOldPeppers(query)),
    reseal: ({ secrets, cursor }) => read(resealSome(sealOf(secrets), cursor)),
  }
})
