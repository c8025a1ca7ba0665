// The thread that looks through the database for what rests on which secret: it reads every envelope, which would take
// too long beside calls. It writes nothing.

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

/** What is asked, and what is answered. */
export interface ScanQuestions {
  countPeppered: { asked: { readonly first: string }; answered: Resting }
  countSealed: { asked: { readonly bodies: string }; answered: Resting }
  keysOnOlder: { asked: OlderKeys; answered: readonly RestingKey[] }
  /** The newest secret first. */
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
let known = ''

function sealOf(secrets: readonly string[]): { seal: Seal; newest: string } {
  const told = secrets.join('\n')
  if (ring === undefined || seal === undefined || known !== told) {
    ring = ringOf(...secrets)
    seal = new Seal(ring)
    known = told
  }
  return { seal, newest: ring.newestMark }
}

/** None where no body was ever kept. */
function countBodies(path: string): Resting {
  if (!existsSync(path)) return {}
  const file = openReader(path)
  try {
    return countSealed(file, bodyColumns)
  } finally {
    file.close()
  }
}

function addUp(one: Resting, other: Resting): Resting {
  const marks = new Set([...Object.keys(one), ...Object.keys(other)])
  return Object.fromEntries([...marks].map(mark => [mark, { ...one[mark], ...other[mark] }]))
}

type Answers = { readonly [Name in ScanQuestion]: (db: Database, asked: Asked<Name>) => Answered<Name> }

const answers: Answers = {
  countPeppered: (at, { first }) => countPeppered(at, first),
  countSealed: (at, { bodies }) => addUp(countSealed(at), countBodies(bodies)),
  keysOnOlder: (at, asked) => keysOnOlder(at, asked),
  reseal: (at, { secrets, cursor }) => resealSome(at, { columns: sealedColumns, ...sealOf(secrets) }, cursor),
}

self.onmessage = ({ data: { database, name, asked } }: MessageEvent<ToScan>) => {
  try {
    db ??= openReader(database)
    // The name and what is asked come as a pair from SecretScan.ask, which is typed.
    const answer = answers[name] as (at: Database, asked: Asked<ScanQuestion>) => unknown
    postMessage({ answered: answer(db, asked) } satisfies FromScan)
  } catch (fault) {
    postMessage({ failed: fault instanceof Error ? fault.message : 'unknown fault' } satisfies FromScan)
  }
}
