// Finds the configuration files of another program and writes them: with a copy of the old file, in one step, and
// readable for their owner alone if they have a key.

import {
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { Problem } from '../problem.ts'
import type { EditedFile } from './edit-file.ts'
import { editFile, readFields } from './edit-file.ts'
import type { ProgramFile } from './program.ts'

/** No program has a larger file of settings. */
const FILE_BYTES_MAX = 1024 * 1024
const OWNER_ONLY = 0o600
const OTHERS = 0o077

export interface PlannedFile extends EditedFile {
  readonly path: string
  /** The file behind the links of `path`. This is the file that is written. */
  readonly realPath: string
  /** The folder of the version control that the file is in. */
  readonly repository: string | undefined
  /** What the file has now; undefined: it does not exist. */
  readonly before: string | undefined
  /** Who may read the file now. */
  readonly mode: number | undefined
  readonly holdsKey: boolean
  /** Whether others can read the file now. It gets another mode then, even if its text stays. */
  readonly needsMode: boolean
}

export const pathOf = ({ folder: [variable, otherwise], names }: ProgramFile): string => {
  const moved = variable === '' ? undefined : process.env[variable]?.trim()
  const folder = moved || join(process.env.HOME || homedir(), otherwise)
  return names.map(name => join(folder, name)).find(isThere) ?? join(folder, names[0])
}

/** Also true for a link to nothing. */
const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined

/** The path without links. What does not exist yet has no links. */
function realPathOf(path: string): string {
  if (isThere(path)) return realpathSync(path)
  const folder = dirname(path)
  return folder === path ? path : join(realPathOf(folder), basename(path))
}

const REPOSITORY_FOLDERS = ['.git', '.hg', '.jj']

/** The nearest folder above a file that version control keeps. */
function findRepository(file: string): string | undefined {
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    if (REPOSITORY_FOLDERS.some(name => existsSync(join(folder, name)))) return folder
    if (folder === dirname(folder)) return undefined
  }
}

/** What a file has now. */
export function fieldsOfFile(file: ProgramFile): Record<string, unknown> {
  const path = pathOf(file)
  return readFields(file.format, readExisting(path).text, path)
}

export function planFile(file: ProgramFile, key: string): PlannedFile {
  const path = pathOf(file)
  const { text: before, mode } = readExisting(path)
  const hidden = file.hides === undefined ? undefined : join(dirname(path), file.hides.name)
  if (before === undefined && hidden !== undefined && isThere(hidden)) {
    throw new Problem(`${hidden} has your settings, and a new ${basename(path)} would hide it. ${file.hides!.remedy}`)
  }
  const edited = editFile(file, before, path)
  const holdsKey = edited.text.includes(key)
  const needsMode = holdsKey && mode !== undefined && (mode & OTHERS) !== 0
  const realPath = realPathOf(path)
  return { ...edited, path, realPath, repository: findRepository(realPath), before, mode, holdsKey, needsMode }
}

function readExisting(path: string): { readonly text?: string; readonly mode?: number } {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined && isThere(path)) {
    throw new Problem(
      `${path} is a link to ${readlinkSync(path)}, which does not exist. Create it, or remove the link.`,
    )
  }
  if (stats === undefined) return {}
  if (!stats.isFile()) throw new Problem(`${path} is not a file.`)
  if (stats.size > FILE_BYTES_MAX)
    throw new Problem(`${path} is larger than 1 MiB, so it cannot be a file of settings.`)
  let bytes: Uint8Array
  try {
    bytes = readFileSync(path)
  } catch (fault) {
    throw new Problem(`${path} cannot be read: ${(fault as Error).message}.`)
  }
  return { text: decode(bytes, path), mode: stats.mode & 0o777 }
}

/** Bytes that are not UTF-8 could not be written back as they were. */
function decode(bytes: Uint8Array, path: string): string {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    // UTF-16 without a mark at its start.
    if (!text.includes('\0')) return text
  } catch {
    // Said below.
  }
  throw new Problem(`${path} is not UTF-8, so it cannot be changed without risk. Save it as UTF-8 first.`)
}

/** Writes the file and returns the path of the copy of the old one, if there was one. */
export function writePlannedFile(planned: PlannedFile): string | undefined {
  const { path, realPath, text, before, mode, holdsKey, changes } = planned
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    // Dotfiles are often links: the link stays, and the file behind it changes.
    const target = realPathOf(path)
    if (target !== realPath) throw new Problem(`${path} was changed meanwhile. Run the command again.`)
    const newMode = holdsKey ? OWNER_ONLY : (mode ?? 0o644)
    if (changes.length === 0) return void chmodSync(target, newMode)
    if (readExisting(path).text !== before) throw new Problem(`${path} was changed meanwhile. Run the command again.`)
    const copy = before === undefined ? undefined : copyAside(target)
    const part = `${target}.${process.pid}.part`
    try {
      writeFileSync(part, text, { mode: OWNER_ONLY, flag: 'wx', flush: true })
      chmodSync(part, newMode)
      renameSync(part, target)
    } finally {
      rmSync(part, { force: true })
    }
    return copy
  } catch (fault) {
    if (fault instanceof Problem) throw fault
    throw new Problem(`${path} cannot be written: ${(fault as Error).message}.`)
  }
}

/** Copies a file beside itself, without replacing an older copy. */
function copyAside(path: string): string {
  for (let count = 1; ; count++) {
    const copy = `${path}.before-weir${count === 1 ? '' : `-${count}`}`
    try {
      copyFileSync(path, copy, constants.COPYFILE_EXCL)
      chmodSync(copy, OWNER_ONLY)
      return copy
    } catch (fault) {
      if ((fault as { code?: string }).code !== 'EEXIST') throw fault
    }
  }
}
