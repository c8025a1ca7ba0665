// Backs up the whole data folder while it is in use, and restores a backup. The auditor checks both: a backup whose
// ledger does not agree is kept under a name that says so, and a restore changes nothing before the backup is verified.

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
import { forOperator, hintOf } from '../../base/hints.ts'
import type { Secret } from '../../base/secrets/secret.ts'
import { SecretRing } from '../../base/secrets/secret-ring.ts'
import { Thread } from '../../base/threads/thread.ts'
import { auditDatabase } from '../ledger-audit/audit-worker.ts'
import type { AuditFinding, AuditReport } from '../ledger-audit/findings.ts'
import { createFinding } from '../ledger-audit/findings.ts'
import { findMissingSecrets, missingSecretText } from '../secrets/secret-check.ts'
import type { EnvironmentVariables } from '../secrets/secret-files.ts'
import { readSecretFile, readSecretVariable, secretLines, secretSources } from '../secrets/secret-files.ts'
import type { SecretKind } from '../secrets/secret-kinds.ts'
import { secretKinds } from '../secrets/secret-kinds.ts'
import type { CopyThreadMethods } from './copy-thread.ts'
import { openReader, readMigrations } from './database.ts'
import type { GatewaySecrets } from './folder.ts'
import { DATABASE, FolderError, restoreFolderOf, restoreNoteOf, STATISTICS_FILE } from './folder.ts'
import { schemaFindings, schemaOf } from './schema-check.ts'

export interface BackupReport {
  /** The folder of the backup. It is renamed when its ledger does not agree. */
  readonly folder: string
  readonly schema: number
  readonly bytes: number
  readonly audit: AuditReport
}

/** The statistics are copied first: they may be behind the records that are copied after them, but never ahead. */
const DATABASES = [STATISTICS_FILE, DATABASE, 'bodies.db']
const SECRETS = secretKinds.map(kind => secretSources[kind].file)
/** Written last, so a backup without this file is not complete. */
const NOTE = 'backup.json'
/** The first schema that has transfers; a database of an earlier schema has nothing to audit. */
const LEDGER_SCHEMA = 2

export async function backUp(data: string, to: string, version: string): Promise<BackupReport> {
  if (to === restoreFolderOf(data) || (existsSync(to) && (!statSync(to).isDirectory() || readdirSync(to).length > 0))) {
    throw new FolderError(`${to} already exists and is not an empty folder. Name a folder that does not exist yet.`)
  }
  withProblem('The folder of the backup cannot be created', () => {
    mkdirSync(to, { recursive: true, mode: 0o700 })
    chmodSync(to, 0o700)
  })
  try {
    const report = await copyAll(data, to, version)
    if (report.audit.findings.length === 0) noteBackup(data, report.folder)
    return report
  } catch (fault) {
    // The folder was empty before, so all of its files come from this incomplete backup.
    for (const name of readdirSync(to)) rmSync(join(to, name), { recursive: true })
    throw new FolderError(`No backup was made. ${(fault as Error).message}`)
  }
}

const LAST_BACKUP = 'last-backup.json'

/** Notes the time of the backup in the data folder, for `weir doctor`. A failure here does not spoil the backup. */
function noteBackup(data: string, folder: string): void {
  try {
    writeFileDurably(join(data, LAST_BACKUP), `${JSON.stringify({ madeAt: new Date().toISOString(), folder })}\n`)
  } catch {
    // `weir doctor` will ask for another backup.
  }
}

/** Returns when this data folder was last backed up completely; undefined where no such time is noted. */
export function readLastBackupMs(data: string): number | undefined {
  try {
    const { madeAt } = JSON.parse(readFileSync(join(data, LAST_BACKUP), 'utf8')) as { madeAt: string }
    return Date.parse(madeAt) || undefined
  } catch {
    return undefined
  }
}

/** Runs a function and turns its errors into a FolderError that begins with `problem`. */
function withProblem<T>(problem: string, run: () => T): T {
  try {
    return run()
  } catch (fault) {
    throw fault instanceof FolderError ? fault : new FolderError(`${problem}: ${(fault as Error).message}.`)
  }
}

async function copyAll(data: string, to: string, version: string): Promise<BackupReport> {
  const secretsBefore = readSecrets(data)
  for (const name of DATABASES) {
    if (!existsSync(join(data, name))) continue
    try {
      await inThread('copy', { from: join(data, name), to: join(to, name) })
    } catch (fault) {
      if (name !== STATISTICS_FILE) throw fault
      rmSync(join(to, `${name}.part`), { force: true })
      continue // the gateway can rebuild the statistics from the records
    }
    chmodSync(join(to, name), 0o600)
  }
  const secretsAfter = readSecrets(data)
  for (const name of SECRETS) {
    // The copy may need a secret that was retired while the databases were copied.
    const both = [...(secretsAfter.get(name) ?? []), ...(secretsBefore.get(name) ?? [])]
    const secrets = new Map(both.map(secret => [secret.reveal(), secret]))
    if (secrets.size > 0) writeFileDurably(join(to, name), secretLines([...secrets.values()]))
  }
  const path = join(to, DATABASE)
  const audit = await auditDatabase(path, { deep: true })
  const schema = schemaOf(path)
  const agrees = audit.findings.length === 0
  const { accounts, transfers, records, holds } = audit
  const rows = { accounts, transfers, records, holds }
  const madeAt = new Date().toISOString()
  const note = { version, schema, madeAt, booksAgree: agrees, rows, files: await digestsOf(to) }
  writeFileDurably(join(to, NOTE), `${JSON.stringify(note, null, 2)}\n`)
  syncFolder(to)
  const folder = agrees ? to : badName(to, madeAt)
  if (!agrees) renameSync(to, folder)
  return { folder, schema, bytes: statSync(join(folder, DATABASE)).size, audit }
}

/**
 * The SHA-256 digests of the databases of a backup, by their names. Secrets have none: an operator may keep them elsewhere,
 * and those that the data needs are known by their marks.
 */
async function digestsOf(folder: string): Promise<Readonly<Record<string, string>>> {
  const digests: Record<string, string> = {}
  for (const name of DATABASES) {
    if (existsSync(join(folder, name))) digests[name] = await inThread('digest', join(folder, name))
  }
  return digests
}

/** Reads the secret files of a folder, by their file names. */
const readSecrets = (folder: string): ReadonlyMap<string, readonly Secret[]> =>
  new Map(
    SECRETS.filter(name => existsSync(join(folder, name))).map(name => [name, readSecretFile(join(folder, name)).all]),
  )

function badName(to: string, madeAt: string): string {
  const name = `${to}-books-do-not-agree`
  return existsSync(name) ? `${name}-${inName(madeAt)}` : name
}

/** Writes a time so that it can be part of a file name. */
const inName = (time: string): string => time.replaceAll(':', '-')

const countedTables = ['accounts', 'transfers', 'records', 'holds'] as const

interface BackupNote {
  readonly schema?: number
  /** Without a table that could not be read. */
  readonly rows?: Readonly<Partial<Record<(typeof countedTables)[number], number | undefined>>>
  /** Backups of earlier versions have none. */
  readonly files?: Readonly<Record<string, string>>
}

/** The data folder that a backup is restored to, and the environment of its gateway. */
export interface RestoreDestination {
  readonly data: string
  readonly env: EnvironmentVariables
}

/**
 * Verifies a backup: returns the audit of its ledger, or undefined where its schema has no ledger yet. Throws a
 * FolderError when the folder has no complete backup.
 */
export async function verifyBackup(folder: string, into: RestoreDestination): Promise<AuditReport | undefined> {
  const path = join(folder, DATABASE)
  if (!existsSync(join(folder, NOTE)) || !existsSync(path)) {
    throw new FolderError(`There is no complete backup in ${folder}: it must contain both ${NOTE} and ${DATABASE}.`)
  }
  const secrets = secretsAfterRestore(folder, into)
  const note = withProblem(`${NOTE} of the backup is damaged`, () => readNote(join(folder, NOTE)))
  try {
    const report = await verifyDatabase(path, note)
    if (report === undefined) return undefined
    const others = [...missingSecretFindings(folder, secrets), ...(await changedFileFindings(folder, note))]
    return { ...report, findings: [...report.findings, ...others] }
  } catch (fault) {
    if (fault instanceof FolderError) throw fault
    throw new FolderError(`The database of the backup cannot be read: ${(fault as Error).message}.`)
  }
}

/**
 * The secrets with which the restored backup would be used: those of the environment, else those of the backup, else
 * those of the present data folder.
 */
function secretsAfterRestore(folder: string, { data, env }: RestoreDestination): GatewaySecrets {
  const ringOf = (kind: SecretKind): SecretRing => {
    const files = [folder, data].map(parent => join(parent, secretSources[kind].file))
    const file = files.find(path => existsSync(path))
    return readSecretVariable(kind, env) ?? (file === undefined ? new SecretRing([]) : readSecretFile(file))
  }
  return { pepper: ringOf('pepper'), jwt: ringOf('jwt'), encryption: ringOf('encryption') }
}

function missingSecretFindings(folder: string, secrets: GatewaySecrets): readonly AuditFinding[] {
  const paths = { database: join(folder, DATABASE), bodies: join(folder, 'bodies.db') }
  const needed = findMissingSecrets({ ...paths, secrets }).filter(absent => absent.needed)
  return needed.map(absent =>
    createFinding({ check: 'file', key: absent.kind, hint: forOperator(missingSecretText(absent, folder)) }),
  )
}

const readNote = (path: string): BackupNote => (JSON.parse(readFileSync(path, 'utf8')) as BackupNote | null) ?? {}

async function verifyDatabase(path: string, note: BackupNote): Promise<AuditReport | undefined> {
  const schema = schemaOf(path)
  if (schema > readMigrations().length) {
    throw new FolderError(
      `The backup was made by a later version of Weir (schema ${schema}). Restore it with that version.`,
    )
  }
  // SQLite opens an empty file as a database of schema 0.
  if (schema === 0 || (note.schema !== undefined && note.schema !== schema)) {
    throw new FolderError(`${DATABASE} is not the database that was backed up: it has schema ${schema}.`)
  }
  if (schema < LEDGER_SCHEMA) return verifyOldDatabase(path)
  const report = await auditDatabase(path, { deep: true })
  return { ...report, findings: [...report.findings, ...rowCountFindings(report, note)] }
}

function verifyOldDatabase(path: string): undefined {
  const db = openReader(path)
  try {
    const [wrong] = schemaFindings(db)
    if (wrong !== undefined) throw new FolderError(`The database of the backup is damaged: ${wrong.text}.`)
  } finally {
    db.close()
  }
}

/** Findings for databases that are missing or have other bytes than when the backup was made. */
async function changedFileFindings(folder: string, { files = {} }: BackupNote): Promise<readonly AuditFinding[]> {
  const present = await digestsOf(folder)
  return Object.keys(files)
    .filter(name => present[name] !== files[name])
    .map(name => createFinding({ check: 'file', key: name, hint: hintOf('found_backup_file', { file: name }) }))
}

/** Findings for a database that is consistent in itself but has other numbers of rows than the backup noted. */
function rowCountFindings(report: AuditReport, { rows = report }: BackupNote): readonly AuditFinding[] {
  return countedTables.flatMap(name => {
    const [found, noted] = [report[name], rows[name]]
    if (found === undefined || noted === undefined || found === noted) return []
    const hint = hintOf('found_backup_rows', { found, table: name, noted })
    return [createFinding({ check: 'file', key: name, hint })]
  })
}

/**
 * Replaces the present data with a backup, and moves the present data into a separate folder, whose path it returns.
 * The caller holds the lock. All files are copied before any file is moved, so that a full disk changes nothing. A
 * restore that is killed while it moves files leaves a note: no gateway starts then, and the restore can be run again.
 */
export function restoreBackup(backup: string, data: string): string | undefined {
  const staging = restoreFolderOf(data)
  const names = [...DATABASES, ...SECRETS].filter(name => existsSync(join(backup, name)))
  const aside = join(
    data,
    withProblem('The backup cannot be copied', () => stageFiles(backup, data, names)),
  )
  for (const name of presentFiles(data, names)) {
    mkdirSync(aside, { recursive: true, mode: 0o700 })
    // A file that is there already was moved by an interrupted restore; then this file is from that restore.
    if (existsSync(join(aside, name))) rmSync(join(data, name))
    else renameSync(join(data, name), join(aside, name))
  }
  for (const name of names) renameSync(join(staging, name), join(data, name))
  syncFolder(data)
  rmSync(staging, { recursive: true })
  syncFolder(data)
  return existsSync(aside) ? aside : undefined
}

/**
 * Copies the files of the backup into the restore folder and writes the note. Returns the name of the folder for the
 * replaced data; an interrupted restore before this one has chosen it already.
 */
function stageFiles(backup: string, data: string, names: readonly string[]): string {
  const staging = restoreFolderOf(data)
  const notePath = restoreNoteOf(data)
  // An empty note was interrupted itself, before any file was moved.
  const former = existsSync(notePath) ? readFileSync(notePath, 'utf8') : ''
  const name = former === '' ? newAsideName() : former
  try {
    mkdirSync(staging, { recursive: true, mode: 0o700 })
    for (const file of names) {
      copyFileSync(join(backup, file), join(staging, file))
      chmodSync(join(staging, file), 0o600)
      syncFile(join(staging, file))
    }
    writeFileDurably(`${notePath}.part`, name)
    renameSync(`${notePath}.part`, notePath)
    syncFolder(staging)
    syncFolder(data)
    return name
  } catch (fault) {
    if (former === '') rmSync(staging, { recursive: true, force: true })
    throw fault
  }
}

const newAsideName = (): string => `before-restore-${inName(new Date().toISOString())}`

/** The present databases with their WAL files, and the present secrets that the backup replaces. */
function presentFiles(data: string, replacements: readonly string[]): readonly string[] {
  const databases = DATABASES.flatMap(name => [name, `${name}-wal`, `${name}-shm`])
  const secrets = SECRETS.filter(name => replacements.includes(name))
  return [...databases, ...secrets].filter(name => existsSync(join(data, name)))
}

function inThread<Name extends keyof CopyThreadMethods>(
  name: Name,
  input: Parameters<CopyThreadMethods[Name]>[0],
): Promise<ReturnType<CopyThreadMethods[Name]>> {
  const thread = new Thread<CopyThreadMethods>({
    url: new URL('./copy-thread.ts', import.meta.url),
    onFailure: detail => new FolderError(`The copy failed: ${detail}`),
  })
  return thread.run(name, input).finally(() => thread.stop())
}

function writeFileDurably(path: string, content: string | Buffer): void {
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
