// A copy of the whole data folder while it is in use, and its way back. The auditor judges both: a copy that does not
// add up is kept and called so, and nothing is put in place of the present data before it has been judged.

import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Secret } from '../../base/secrets/secret.ts'
import { SecretRing } from '../../base/secrets/secret-ring.ts'
import { auditWhole } from '../ledger-audit/auditor.ts'
import type { AuditReport, Finding } from '../ledger-audit/findings.ts'
import { finding } from '../ledger-audit/findings.ts'
import { absentSentence, findAbsent } from '../secrets/secret-check.ts'
import type { Environment } from '../secrets/secret-files.ts'
import { readGivenSecrets, readSecretFile, secretHomes, secretLines } from '../secrets/secret-files.ts'
import type { SecretKind } from '../secrets/secret-kinds.ts'
import { secretKinds } from '../secrets/secret-kinds.ts'
import type { CopyOrder, FromCopier } from './copy-thread.ts'
import { openReader, readMigrations } from './database.ts'
import type { Secrets } from './folder.ts'
import { asideNoteIn, FolderError, restoringIn, STATISTICS } from './folder.ts'
import { schemaFindings, schemaVersion } from './schema-check.ts'

export interface BackupReport {
  /** Where it is; renamed when its books do not agree. */
  readonly folder: string
  readonly schema: number
  readonly bytes: number
  readonly audit: AuditReport
}

const DATABASE = 'weir.db'
/** The statistics first: they may be behind the records that are copied after them, and never ahead. */
const DATABASES = [STATISTICS, DATABASE, 'bodies.db']
const SECRETS = secretKinds.map(kind => secretHomes[kind].file)
/** Written last: without it a backup is not whole. */
const NOTE = 'backup.json'
/** The first schema that keeps transfers; before it there is nothing to audit. */
const LEDGER_SCHEMA = 2

export async function backUp(data: string, to: string, version: string): Promise<BackupReport> {
  if (to === restoringIn(data) || (existsSync(to) && (!statSync(to).isDirectory() || readdirSync(to).length > 0))) {
    throw new FolderError(`${to} is there and not empty. Name a folder that is to be made.`)
  }
  orSay('The folder of the backup cannot be made', () => {
    mkdirSync(to, { recursive: true, mode: 0o700 })
    chmodSync(to, 0o700)
  })
  try {
    const report = await copyAll(data, to, version)
    if (report.audit.findings.length === 0) noteBackup(data, report.folder)
    return report
  } catch (fault) {
    // It was empty: all that is there is ours, and no backup.
    for (const name of readdirSync(to)) rmSync(join(to, name), { recursive: true })
    throw new FolderError(`There is no backup. ${(fault as Error).message}`)
  }
}

const LAST_BACKUP = 'last-backup.json'

/** In the data folder, for a doctor. A backup that is whole is one also where this cannot be written. */
function noteBackup(data: string, folder: string): void {
  try {
    writeWhole(join(data, LAST_BACKUP), `${JSON.stringify({ madeAt: new Date().toISOString(), folder })}\n`)
  } catch {
    // The doctor will ask for another.
  }
}

/** When this data was last backed up whole; undefined where nothing says so. */
export function lastBackupMs(data: string): number | undefined {
  try {
    const { madeAt } = JSON.parse(readFileSync(join(data, LAST_BACKUP), 'utf8')) as { madeAt: string }
    return Date.parse(madeAt) || undefined
  } catch {
    return undefined
  }
}

function orSay<T>(problem: string, run: () => T): T {
  try {
    return run()
  } catch (fault) {
    throw fault instanceof FolderError ? fault : new FolderError(`${problem}: ${(fault as Error).message}.`)
  }
}

async function copyAll(data: string, to: string, version: string): Promise<BackupReport> {
  const before = readSecrets(data)
  for (const name of DATABASES) {
    if (!existsSync(join(data, name))) continue
    try {
      await copyInThread({ from: join(data, name), to: join(to, name) })
    } catch (fault) {
      if (name !== STATISTICS) throw fault
      rmSync(join(to, `${name}.part`), { force: true })
      continue // they can be made again from the records
    }
    chmodSync(join(to, name), 0o600)
  }
  const after = readSecrets(data)
  for (const name of SECRETS) {
    // One that was let go while the databases were copied may be needed by the copy.
    const secrets = new Map([...(after.get(name) ?? []), ...(before.get(name) ?? [])].map(one => [one.reveal(), one]))
    if (secrets.size > 0) writeWhole(join(to, name), secretLines([...secrets.values()]))
  }
  const path = join(to, DATABASE)
  const audit = await auditWhole(path, { deep: true })
  const schema = schemaOf(path)
  const agrees = audit.findings.length === 0
  const { accounts, transfers, records, holds } = audit
  const rows = { accounts, transfers, records, holds }
  const madeAt = new Date().toISOString()
  const note = { version, schema, madeAt, booksAgree: agrees, rows }
  writeWhole(join(to, NOTE), `${JSON.stringify(note, null, 2)}\n`)
  syncFolder(to)
  const folder = agrees ? to : badName(to, madeAt)
  if (!agrees) renameSync(to, folder)
  return { folder, schema, bytes: statSync(join(folder, DATABASE)).size, audit }
}

/** Those that lie here, by the names of their files. */
const readSecrets = (folder: string): ReadonlyMap<string, readonly Secret[]> =>
  new Map(
    SECRETS.filter(name => existsSync(join(folder, name))).map(name => [name, readSecretFile(join(folder, name)).all]),
  )

function badName(to: string, madeAt: string): string {
  const name = `${to}-books-do-not-agree`
  return existsSync(name) ? `${name}-${inName(madeAt)}` : name
}

/** A time as a part of a file's name. */
const inName = (time: string): string => time.replaceAll(':', '-')

function schemaOf(path: string): number {
  const db = openReader(path)
  try {
    return schemaVersion(db)
  } finally {
    db.close()
  }
}

interface Note {
  readonly schema?: number
  readonly rows?: Readonly<Record<'accounts' | 'transfers' | 'records' | 'holds', number>>
}

/** Where a backup is to go, and what is given there. */
export interface Destination {
  readonly data: string
  readonly env: Environment
}

/** What a backup says of itself, or why it is none. Undefined where there are no books to audit yet. */
export async function judgeBackup(folder: string, into: Destination): Promise<AuditReport | undefined> {
  const path = join(folder, DATABASE)
  if (!existsSync(join(folder, NOTE)) || !existsSync(path)) {
    throw new FolderError(`There is no whole backup in ${folder}: ${NOTE} and ${DATABASE} must both be there.`)
  }
  const secrets = secretsThere(folder, into)
  const note = orSay('The note of the backup is damaged', () => readNote(join(folder, NOTE)))
  try {
    const report = await judgeDatabase(path, note)
    return report && { ...report, findings: [...report.findings, ...absentFindings(folder, secrets)] }
  } catch (fault) {
    if (fault instanceof FolderError) throw fault
    throw new FolderError(`The database of the backup cannot be read: ${(fault as Error).message}.`)
  }
}

/** With which it would be used: what is given there, else the backup's, else what lies there. */
function secretsThere(folder: string, { data, env }: Destination): Secrets {
  const ringOf = (kind: SecretKind): SecretRing => {
    const files = [folder, data].map(place => join(place, secretHomes[kind].file))
    const file = files.find(one => existsSync(one))
    return readGivenSecrets(kind, env) ?? (file === undefined ? new SecretRing([]) : readSecretFile(file))
  }
  return { pepper: ringOf('pepper'), jwt: ringOf('jwt'), encryption: ringOf('encryption') }
}

function absentFindings(folder: string, secrets: Secrets): readonly Finding[] {
  const paths = { database: join(folder, DATABASE), bodies: join(folder, 'bodies.db') }
  const needed = findAbsent({ ...paths, secrets }).filter(absent => absent.needed)
  return needed.map(absent => finding({ check: 'file', key: absent.kind, text: absentSentence(absent, folder) }))
}

const readNote = (path: string): Note => (JSON.parse(readFileSync(path, 'utf8')) as Note | null) ?? {}

async function judgeDatabase(path: string, note: Note): Promise<AuditReport | undefined> {
  const schema = schemaOf(path)
  if (schema > readMigrations().length) {
    throw new FolderError(`The backup was made by a later version of Weir (schema ${schema}). Restore it with that.`)
  }
  // An empty file is a database, too: of schema 0.
  if (schema === 0 || (note.schema !== undefined && note.schema !== schema)) {
    throw new FolderError(`${DATABASE} is not the database that was backed up: its schema is ${schema}.`)
  }
  if (schema < LEDGER_SCHEMA) return judgeOld(path)
  const report = await auditWhole(path, { deep: true })
  return { ...report, findings: [...report.findings, ...strangers(report, note)] }
}

function judgeOld(path: string): undefined {
  const db = openReader(path)
  try {
    const [wrong] = schemaFindings(db)
    if (wrong !== undefined) throw new FolderError(`The database of the backup is damaged: ${wrong.text}.`)
  } finally {
    db.close()
  }
}

/** Books that agree, and are not those that were backed up. */
function strangers(report: AuditReport, { rows = report }: Note): readonly Finding[] {
  const counted = ['accounts', 'transfers', 'records', 'holds'] as const
  return counted
    .filter(name => rows[name] !== report[name])
    .map(name => {
      const text = `${report[name]} ${name} are there, and ${rows[name]} were when the backup was made`
      return finding({ check: 'file', key: name, text })
    })
}

/**
 * Puts a backup in place of the present data, which is moved into a folder of its own; gives that folder. The caller
 * holds the lock. Everything is copied before anything is moved, so that a disk that is full changes nothing. Whoever
 * is killed while files are moved leaves a note, with which nothing starts, and can run it again.
 */
export function putInPlace(backup: string, data: string): string | undefined {
  const part = restoringIn(data)
  const names = [...DATABASES, ...SECRETS].filter(name => existsSync(join(backup, name)))
  const aside = join(
    data,
    orSay('The backup cannot be copied', () => gather(backup, data, names)),
  )
  for (const name of presentFiles(data, names)) {
    mkdirSync(aside, { recursive: true, mode: 0o700 })
    // What stands there already was moved before; then this one is of a restore that was cut off.
    if (existsSync(join(aside, name))) rmSync(join(data, name))
    else renameSync(join(data, name), join(aside, name))
  }
  for (const name of names) renameSync(join(part, name), join(data, name))
  syncFolder(data)
  rmSync(part, { recursive: true })
  syncFolder(data)
  return existsSync(aside) ? aside : undefined
}

/** Copies what is to be put in place; gives the name of the folder for what was there. Keeps the note of one before. */
function gather(backup: string, data: string, names: readonly string[]): string {
  const [part, noted] = [restoringIn(data), asideNoteIn(data)]
  // A note without a name was cut off itself, before anything was moved.
  const former = existsSync(noted) ? readFileSync(noted, 'utf8') : ''
  const name = former === '' ? freshAside() : former
  try {
    mkdirSync(part, { recursive: true, mode: 0o700 })
    for (const file of names) {
      copyFileSync(join(backup, file), join(part, file))
      chmodSync(join(part, file), 0o600)
      syncFile(join(part, file))
    }
    writeWhole(`${noted}.part`, name)
    renameSync(`${noted}.part`, noted)
    syncFolder(part)
    syncFolder(data)
    return name
  } catch (fault) {
    if (former === '') rmSync(part, { recursive: true, force: true })
    throw fault
  }
}

const freshAside = (): string => `before-restore-${inName(new Date().toISOString())}`

/** The databases with their logs, which belong to them; and the secrets that are about to be replaced. */
function presentFiles(data: string, coming: readonly string[]): readonly string[] {
  const databases = DATABASES.flatMap(name => [name, `${name}-wal`, `${name}-shm`])
  const secrets = SECRETS.filter(name => coming.includes(name))
  return [...databases, ...secrets].filter(name => existsSync(join(data, name)))
}

function copyInThread(order: CopyOrder): Promise<void> {
  const thread = new Worker(new URL('./copy-thread.ts', import.meta.url).href)
  const done = new Promise<void>((resolve, reject) => {
    thread.onmessage = (event: MessageEvent<FromCopier>) =>
      'copied' in event.data ? resolve() : reject(new FolderError(`The copy failed: ${event.data.failed}`))
    thread.onerror = event => reject(new Error(event.message))
    thread.postMessage(order)
  })
  return done.finally(() => thread.terminate())
}

function writeWhole(path: string, content: string | Buffer): void {
  writeFileSync(path, content, { mode: 0o600 })
  chmodSync(path, 0o600)
  syncFile(path)
}

function syncFile(path: string): void {
  const file = openSync(path, 'r+')
  fsyncSync(file)
  closeSync(file)
}

function syncFolder(path: string): void {
  const folder = openSync(path, 'r')
  fsyncSync(folder)
  closeSync(folder)
}
