// The files of a data folder whose data was moved to another database (postgres/move.ts), or is being moved to here.
// Without weir.db a start would create an empty database: then all accounts and their money would seem to be gone.

import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { syncToDisk } from './database.ts'
import { bodiesOf, databaseOf, FolderError, hasData, STATISTICS_FILE } from './folder.ts'

/** The ledger is the first: whether it is there decides whether the folder can be used. */
export const dataFilesOf = (folder: string): readonly string[] => [
  databaseOf(folder),
  join(folder, STATISTICS_FILE),
  bodiesOf(folder),
]

export interface MoveNote {
  /** The same id is in `move_state` of the other database. */
  readonly id: string
  /** The other database, without its password. */
  readonly place: string
}

const noteOf = (folder: string): string => join(folder, 'moved.json')
const movedOf = (file: string): string => `${file}.moved`

/** The folder in which new files are made while data is moved to here. */
export const stagingOf = (folder: string): string => join(folder, 'moving')
const stagingNoteOf = (folder: string): string => join(stagingOf(folder), 'complete.json')

/** The note of a folder whose data was moved away. */
export const readMoveNote = (folder: string): MoveNote | undefined =>
  existsSync(movedOf(databaseOf(folder))) ? readNote(noteOf(folder)) : undefined

/** The note of files that are complete, and not in their places yet. */
export const readStagingNote = (folder: string): MoveNote | undefined => readNote(stagingNoteOf(folder))

function readNote(path: string): MoveNote | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as MoveNote
  } catch {
    return undefined
  }
}

/** Throws where the folder has no data because it was moved. */
export function refuseMovedData(folder: string): void {
  if (existsSync(databaseOf(folder))) return
  if (existsSync(stagingOf(folder))) {
    throw new FolderError(
      `A move of data to ${folder} was interrupted. Run it again: weir migrate-to sqlite ${folder}.`,
    )
  }
  if (!existsSync(movedOf(databaseOf(folder)))) return
  const place = readMoveNote(folder)?.place ?? 'another database'
  throw new FolderError(
    `The data of ${folder} was moved to ${place}: set WEIR_DATABASE_URL to use it there, or move it back with ` +
      `"weir migrate-to sqlite". The files that end with .moved are the state before the move.`,
  )
}

/** Throws where the folder has data that would not be used, because the gateway uses another database. */
export function refuseUnmovedData(folder: string): void {
  if (!hasData(folder)) return
  throw new FolderError(
    `WEIR_DATABASE_URL is set, and ${folder} has data that is not in PostgreSQL. Move it with "weir migrate-to ` +
      'postgres", or set WEIR_DATA to another folder.',
  )
}

/** Renames the files after their data was moved, so that no gateway uses them. It can be killed and run again. */
export function setAside(folder: string, note: MoveNote): void {
  writeNote(noteOf(folder), note)
  for (const file of dataFilesOf(folder)) {
    if (!existsSync(file)) continue
    // The log is empty after the last connection has closed. Rows in it would be left behind.
    if (existsSync(`${file}-wal`) && statSync(`${file}-wal`).size > 0)
      throw new FolderError(`${file} is still in use: its log is not empty.`)
    for (const end of ['-wal', '-shm']) rmSync(file + end, { force: true })
    if (existsSync(movedOf(file))) renameSync(movedOf(file), `${movedOf(file)}-${nameOfTime(movedOf(file))}`)
    renameSync(file, movedOf(file))
    syncToDisk(folder)
  }
}

const nameOfTime = (file: string): string => statSync(file).mtime.toISOString().replaceAll(':', '-')

/** Makes an empty folder for new files. */
export function openStaging(folder: string): string {
  const staging = stagingOf(folder)
  rmSync(staging, { recursive: true, force: true })
  mkdirSync(staging, { mode: 0o700 })
  return staging
}

/** Notes that the new files are complete. */
export function closeStaging(folder: string, note: MoveNote): void {
  for (const file of dataFilesOf(stagingOf(folder))) if (existsSync(file)) syncToDisk(file)
  writeNote(stagingNoteOf(folder), note)
}

/** Puts new files into their places, the ledger last. It can be killed and run again. */
export function takeStaged(folder: string): void {
  for (const file of dataFilesOf(stagingOf(folder)).toReversed()) {
    if (existsSync(file)) renameSync(file, join(folder, basename(file)))
  }
  syncToDisk(folder)
  rmSync(stagingOf(folder), { recursive: true, force: true })
  syncToDisk(folder)
}

function writeNote(path: string, note: MoveNote): void {
  writeFileSync(`${path}.part`, `${JSON.stringify(note)}\n`, { mode: 0o600 })
  syncToDisk(`${path}.part`)
  renameSync(`${path}.part`, path)
  syncToDisk(dirname(path))
}
