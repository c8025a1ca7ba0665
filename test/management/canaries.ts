// Secrets that the tests search for: each with the answer, if any, that may show it once; and all recorded answers.

import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { openDatabase } from '../support/database.ts'

export interface Canary {
  readonly name: string
  readonly value: string
  /** The numbers of the answers that may hold it. */
  readonly shownIn: readonly number[]
}

export class Canaries {
  readonly all: Canary[] = []
  readonly #answers: string[] = []

  /** Records an answer; returns its number. */
  record(text: string): number {
    return this.#answers.push(text) - 1
  }

  /** Adds a secret that may never be shown, or only in these answers. */
  plant(name: string, value: string, shownIn: readonly number[] = []): string {
    if (value.length < 8) throw new Error(`${name} is no secret: ${value}`)
    this.all.push({ name, value, shownIn })
    return value
  }

  /** The names of the secrets in answers that must not show them. */
  inAnswers(): readonly string[] {
    return this.#answers.flatMap((text, at) =>
      this.all
        .filter(({ value, shownIn }) => !shownIn.includes(at) && holds(text, value))
        .map(({ name }) => `${name} in answer ${at}: ${text.slice(0, 80)}`),
    )
  }

  /** The secrets that should have been shown once and were not. */
  notShown(): readonly string[] {
    return this.all
      .filter(({ value, shownIn }) => shownIn.some(at => !this.#answers[at]!.includes(value)))
      .map(({ name }) => name)
  }

  inText(text: string, where: string): readonly string[] {
    return this.all.filter(({ value }) => holds(text, value)).map(({ name }) => `${name} in ${where}`)
  }

  get recordedCount(): number {
    return this.#answers.length
  }
}

/** Searches for the secret, plain or in a usual encoding. */
function holds(text: string, value: string): boolean {
  const bytes = Buffer.from(value)
  const forms = [value, encodeURIComponent(value), bytes.toString('hex'), bytes.toString('base64').replace(/=+$/, '')]
  return forms.some(form => text.includes(form))
}

/** Every file below the folder, with its bytes as text: databases with their logs, notes and everything else. */
export function filesBelow(folder: string): readonly (readonly [path: string, text: string])[] {
  return readdirSync(folder).flatMap(name => {
    const path = join(folder, name)
    const stats = statSync(path)
    if (stats.isDirectory()) return filesBelow(path)
    return stats.isFile() ? [[path, readFileSync(path).toString('latin1')] as const] : []
  })
}

/** Every value of every column of every table. */
export function valuesIn(path: string): readonly (readonly [place: string, text: string])[] {
  const db = openDatabase(path, { readonly: true, safeIntegers: true })
  const tables = db.query("SELECT name FROM sqlite_schema WHERE type = 'table'").all() as { name: string }[]
  const values = tables.flatMap(({ name }) =>
    (db.query('SELECT * FROM "'.concat(name, '"')).all() as Record<string, unknown>[]).flatMap(row =>
      Object.entries(row).map(([column, value]) => {
        const text = value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : String(value)
        return [`${name}.${column}`, text] as const
      }),
    ),
  )
  db.close()
  return values
}
