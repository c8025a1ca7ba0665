// A copy of the whole data folder while it is in use, and its way back. The auditor judges both: a copy that does not
// add up is kept and called so, and nothing is put in place of the present data before it has been judged.

import { chmodSync, copyFileSync, existsSync, fsyncSync, openSync } from 'node:fs'
import { closeSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AuditReport } from './audit-findings.ts'
import { auditWhole } from './auditing.ts'
import type { CopyOrder, FromCopier } from './copy-thread.ts'
import { openReader, readMigrations } from './database.ts'
import { FolderError, restoringIn } from './folder.ts'
import { schemaVersion } from './schema-check.ts'

export interface BackupReport {
  /** Where it is; renamed when its books do not agree. */
  readonly folder: string
  readonly schema: number
  readonly bytes: number
  readonly audit: AuditReport
}

const DATABASE = 'weir.db'
const DATABASES = [DATABASE, 'bodies.db']
const SECRETS = ['pepper', 'jwt-secret', 'encryption-key']
/** Written last: without it a backup is not whole. */
const NOTE = 'backup.json'
/** The first schema that keeps transfers; before it there is nothing to audit. */
const LEDGER_SCHEMA = 2

export async function backUp(data: string, to: string, version: string): Promise<BackupReport> {
  if (existsSync(to) && (!statSync(to).isDirectory() || readdirSync(to).length > 0)) {
    throw new FolderError(`${to} is there and not empty. Name a folder that is to be made.`)
  }
  mkdirSync(to, { recursive: true, mode: 0o700 })
  chmodSync(to, 0o700)
  for (const name of DATABASES) {
    if (!existsSync(join(data, name))) continue
    await copyInThread({ from: join(data, name), to: join(to, name) })
    chmodSync(join(to, name), 0o600)
  }
  for (const name of SECRETS) {
    if (existsSync(join(data, name))) writeWhole(join(to, name), readFileSync(join(data, name)))
  }
  const path = join(to, DATABASE)
  const audit = await auditWhole(path, { deep: true })
  const schema = schemaOf(path)
  const agrees = audit.findings.length === 0
  const { accounts, transfers, records, holds } = audit
  const rows = { accounts, transfers, records, holds }
  const note = { version, schema, madeAt: new Date().toISOString(), booksAgree: agrees, rows }
  writeWhole(join(to, NOTE), `${JSON.stringify(note, null, 2)}\n`)
  syncFolder(to)
  const folder = agrees ? to : `${to}-books-do-not-agree`
  if (!agrees) renameSync(to, folder)
  return { folder, schema, bytes: statSync(join(folder, DATABASE)).size, audit }
}

function schemaOf(path: string): number {
  const db = openReader(path)
  try {
    return schemaVersion(db)
  } finally {
    db.close()
  }
}

/** What a backup says of itself, or why it is none. */
export async function judgeBackup(folder: string): Promise<AuditReport | undefined> {
  const path = join(folder, DATABASE)
  if (!existsSync(join(folder, NOTE)) || !existsSync(path)) {
    throw new FolderError(`There is no whole backup in ${folder}: ${NOTE} and ${DATABASE} must both be there.`)
  }
  try {
    return await judgeDatabase(path)
  } catch (fault) {
    if (fault instanceof FolderError) throw fault
    throw new FolderError(`The database of the backup cannot be read: ${(fault as Error).message}.`)
  }
}

async function judgeDatabase(path: string): Promise<AuditReport | undefined> {
  const schema = schemaOf(path)
  if (schema > readMigrations().length) {
    throw new FolderError(`The backup was made by a later version of Weir (schema ${schema}). Restore it with that.`)
  }
  return schema < LEDGER_SCHEMA ? undefined : await auditWhole(path, { deep: true })
}

/**
 * Puts a backup in place of the present data, which is moved into a folder of its own; gives that folder. The caller
 * holds the lock. Everything is copied before anything is moved, so that a disk that is full changes nothing. Whoever
 * is killed in the middle leaves the folder `restoring`, with which nothing starts, and can run it again.
 */
export function putInPlace(backup: string, data: string): string | undefined {
  const part = restoringIn(data)
  const asideNote = join(part, 'aside')
  const asideName = existsSync(asideNote) ? readFileSync(asideNote, 'utf8') : freshAside()
  const aside = join(data, asideName)
  rmSync(part, { recursive: true, force: true })
  mkdirSync(part, { mode: 0o700 })
  const names = [...DATABASES, ...SECRETS].filter(name => existsSync(join(backup, name)))
  for (const name of names) {
    copyFileSync(join(backup, name), join(part, name))
    chmodSync(join(part, name), 0o600)
    syncFile(join(part, name))
  }
  writeWhole(asideNote, asideName)
  syncFolder(part)
  for (const name of presentFiles(data, names)) {
    mkdirSync(aside, { recursive: true, mode: 0o700 })
    // What stands there already was moved before; then this one is of a restore that was cut off.
    if (existsSync(join(aside, name))) rmSync(join(data, name))
    else renameSync(join(data, name), join(aside, name))
  }
  for (const name of names) renameSync(join(part, name), join(data, name))
  rmSync(part, { recursive: true })
  syncFolder(data)
  return existsSync(aside) ? aside : undefined
}

const freshAside = (): string => `before-restore-${new Date().toISOString().replaceAll(':', '-')}`

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
