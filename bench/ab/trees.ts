// Copies a commit, or the working tree with all its changes, into its own folder, so that edits during a comparison do not
// disturb it. They are plain copies, so that nothing is left in the repository, however the comparison ends.

import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, lstatSync, mkdirSync, readFileSync, readlinkSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'

export interface Tree {
  readonly folder: string
  /** The name in the report. */
  readonly title: string
}

/** Without `commit`, the working tree is copied. Every tree uses the packages of the repository. */
export function makeTree(repository: string, commit: string | undefined, folder: string): Tree {
  mkdirSync(folder)
  const title = commit === undefined ? copyWorkingTree(repository, folder) : copyCommit(repository, commit, folder)
  symlinkSync(join(repository, 'node_modules'), join(folder, 'node_modules'))
  build(folder)
  return { folder, title }
}

/** Builds the tree, because users run the build. A commit without a build script runs its sources. */
function build(folder: string): void {
  if (!existsSync(join(folder, 'scripts', 'build.ts'))) return
  const { status, stderr } = spawnSync(join(folder, 'bin', 'weir-bun'), ['scripts/build.ts'], { cwd: folder })
  if (status !== 0) throw new Error(`The program could not be built: ${stderr}`)
}

function copyCommit(repository: string, commit: string, folder: string): string {
  const id = git(repository, ['rev-parse', '--verify', '--quiet', `${commit}^{commit}`])
  if (id === undefined) throw new Error(`There is no commit "${commit}" in this repository.`)
  const env = { GIT_INDEX_FILE: `${folder}.index` }
  git(repository, ['read-tree', id], env)
  git(repository, ['checkout-index', '--all', `--prefix=${folder}/`], env)
  return git(repository, ['log', '-1', '--format=%h %s', id])!
}

function copyWorkingTree(repository: string, folder: string): string {
  const listed = git(repository, ['ls-files', '-z', '--cached', '--others', '--exclude-standard'])!
  for (const name of new Set(listed.split('\0'))) {
    const file = join(repository, name)
    if (name === '' || !existsSync(file)) continue // deleted, but not committed
    const copy = join(folder, name)
    mkdirSync(dirname(copy), { recursive: true })
    if (lstatSync(file).isSymbolicLink()) symlinkSync(readlinkSync(file), copy)
    else copyFileSync(file, copy)
  }
  const head = git(repository, ['rev-parse', '--short', 'HEAD'])!
  const isChanged = git(repository, ['status', '--porcelain']) !== ''
  return `the working tree: ${head}${isChanged ? ' with changes that are not committed' : ''}`
}

/** Whether the lock file of a tree differs from that of the repository. */
export const hasOtherPackages = (repository: string, { folder }: Tree): boolean =>
  readLock(repository) !== readLock(folder)

const readLock = (folder: string): string => readFileSync(join(folder, 'package-lock.json'), 'utf8')

/** Undefined only if a command with --quiet has no result; any other failure is an error. */
function git(cwd: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): string | undefined {
  const options = { cwd, encoding: 'utf8', maxBuffer: 64 << 20, env: { ...process.env, ...env } } as const
  const { status, stdout, stderr } = spawnSync('git', args, options)
  if (status === 0) return stdout.trim()
  if (args.includes('--quiet')) return undefined
  throw new Error(`git ${args.join(' ')}: ${stderr.trim()}`)
}
