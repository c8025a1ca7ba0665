// Secrets that are looked for: each with the answer, if any, that may show it once; and everything that was said.

import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { openDatabase } from '../support/database.ts'

export interface Canary {
  readonly name: string
  readonly value: string
  /** The answers that may hold it, by their number. */
  readonly shownIn: readonly number[]
}

export class Canaries {
  readonly all: Canary[] = []
  readonly #said: string[] = []

  /** Remembers what was answered; gives its number. */
  heard(text: string): number {
    return this.#said.push(text) - 1
  }

  /** One that is never to be shown, or only in that answer. */
  plant(name: string, value: string, shownIn: readonly number[] = []): string {
    if (value.length < 8) throw new Error(`${name} is no secret: ${value}`)
    this.all.push({ name, value, shownIn })
    return value
  }

  /** The names of those that stand in an answer which must not show them. */
  inAnswers(): readonly string[] {
    return this.#said.flatMap((text, at) =>
      this.all
        .filter(({ value, shownIn }) => !shownIn.includes(at) && holds(text, value))
        .map(({ name }) => `${name} in answer ${at}: ${text.slice(0, 80)}`),
    )
  }

  /** Of those that were to be shown once, the ones that were not. */
  notShown(): readonly string[] {
    return this.all
      .filter(({ value, shownIn }) => shownIn.some(at => !this.#said[at]!.includes(value)))
      .map(({ name }) => name)
  }

  inText(text: string, where: string): readonly string[] {
    return this.all.filter(({ value }) => holds(text, value)).map(({ name }) => `${name} in ${where}`)
  }

  get heardCount(): number {
    return this.#said.length
  }
}

/** As it is, or as somebody might write it to be clever. */
function holds(text: string, value: string): boolean {
  const bytes = Buffer.from(value)
  const forms = [value, encodeURIComponent(value), bytes.toString('hex'), bytes.toString('base64').replace(/=+$/, '')]
  return forms.some(form => text.includes(form))
}

/** Every file below, with its bytes as text: databases with their logs, notes, whatever is there. */
export function filesBelow(folder: string): readonly (readonly [path: string, text: string])[] {
  return readdirSync(folder).flatMap(name => {
    const path = join(folder, name)
    const found = statSync(path)
    if (found.isDirectory()) return filesBelow(path)
    return found.isFile() ? [[path, readFileSync(path).toString('latin1')] as const] : []
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
