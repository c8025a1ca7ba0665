// What the tests of secrets share: reads of the database, and the marks of secrets that are stored there.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Secret } from '../../src/base/secrets/secret.ts'
import { fingerprintOf } from '../../src/base/secrets/secret-fingerprint.ts'
import { sealedColumns } from '../../src/store/secrets/secret-marks.ts'
import { openDatabase } from '../support/database.ts'

export const files = { pepper: 'pepper', jwt: 'jwt-secret', encryption: 'encryption-key' } as const
export type Kind = keyof typeof files
export const kinds = Object.keys(files) as Kind[]

export function read<T>(folder: string, sql: string): T[] {
  const db = openDatabase(join(folder, 'weir.db'), { readonly: true })
  try {
    return db.query(sql).all() as T[]
  } finally {
    db.close()
  }
}

export function write(folder: string, sql: string, ...values: (string | number | Uint8Array)[]): void {
  const db = openDatabase(join(folder, 'weir.db'))
  try {
    db.query(sql).run(...values)
  } finally {
    db.close()
  }
}

export const secretsIn = (folder: string, kind: Kind): string[] =>
  readFileSync(join(folder, files[kind]), 'utf8').trim().split('\n')

/** The marks, newest first. */
export const marksIn = (folder: string, kind: Kind): string[] =>
  secretsIn(folder, kind).map(text => fingerprintOf(new Secret(text)))

/** How many values are encrypted with each key. */
export function sealedWith(folder: string): Record<string, number> {
  const counted: Record<string, number> = {}
  for (const { table, column } of sealedColumns) {
    const sql = `SELECT lower(hex(substr(${column}, 2, 4))) AS mark, count(*) AS n FROM ${table}
      WHERE ${column} IS NOT NULL GROUP BY 1`
    for (const { mark, n } of read<{ mark: string; n: number }>(folder, sql)) counted[mark] = (counted[mark] ?? 0) + n
  }
  return counted
}

/** The keys with which bodies are encrypted. */
export function bodiesWith(folder: string): readonly string[] {
  const db = openDatabase(join(folder, 'bodies.db'), { readonly: true })
  try {
    const sql = `SELECT lower(hex(substr(request, 2, 4))) FROM body
      UNION SELECT lower(hex(substr(answer, 2, 4))) FROM body`
    return db.query(sql).values().flat() as string[]
  } finally {
    db.close()
  }
}

/** How many active keys are digested with each pepper. */
export const keysWith = (folder: string): Record<string, number> =>
  Object.fromEntries(
    read<{ mark: string; n: number }>(
      folder,
      'SELECT pepper AS mark, count(*) AS n FROM api_key WHERE revoked_ms IS NULL GROUP BY 1',
    ).map(({ mark, n }) => [mark, n]),
  )
