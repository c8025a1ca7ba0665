// The folders in which npm run bench:ab runs two versions, and that nothing of them is left.

import { afterAll, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { hasOtherPackages, makeTree } from '../../bench/ab/trees.ts'

const ROOT = join(import.meta.dir, '..', '..')
const hasGit = Bun.which('git') !== null
const folders: string[] = []
afterAll(() => folders.forEach(folder => rmSync(folder, { recursive: true, force: true })))

function temporary(parent = tmpdir()): string {
  const folder = mkdtempSync(join(parent, 'weir-ab-'))
  folders.push(folder)
  return folder
}

function git(cwd: string, ...args: readonly string[]): string {
  const identity = ['-c', 'user.name=bench', '-c', 'user.email=bench@localhost', '-c', 'commit.gpgsign=false']
  const { status, stdout, stderr } = spawnSync('git', [...identity, ...args], { cwd, encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  return stdout.trim()
}

/** Two commits, then a change, a new file, a deleted one and an ignored one. */
function makeRepository(): string {
  const folder = temporary()
  const write = (name: string, text: string): void => writeFileSync(join(folder, name), text)
  git(folder, 'init', '--quiet')
  mkdirSync(join(folder, 'bin'))
  write('.gitignore', 'node_modules/\ndata/\n')
  write('package-lock.json', '{}')
  write('changed.ts', 'one')
  write('deleted.ts', 'one')
  write('bin/weir', '#!/bin/sh')
  chmodSync(join(folder, 'bin/weir'), 0o755)
  symlinkSync('changed.ts', join(folder, 'link.ts'))
  git(folder, 'add', '-A')
  git(folder, 'commit', '--quiet', '-m', 'test: begin')
  write('changed.ts', 'two')
  git(folder, 'commit', '--quiet', '-a', '-m', 'test: go on')
  write('changed.ts', 'three')
  write('new.ts', 'new')
  rmSync(join(folder, 'deleted.ts'))
  mkdirSync(join(folder, 'data'))
  write('data/secret', 'secret')
  mkdirSync(join(folder, 'node_modules'))
  write('node_modules/package', 'package')
  return folder
}

const textsOf = (folder: string): Record<string, string> =>
  Object.fromEntries(
    ['changed.ts', 'link.ts', 'deleted.ts', 'new.ts', 'data/secret', 'node_modules/package'].map(name => {
      const file = join(folder, name)
      return [name, existsSync(file) ? readFileSync(file, 'utf8') : 'not there']
    }),
  )

test.skipIf(!hasGit)(
  'a commit is copied as it was, the working tree with its changes, and the repository stays as it is',
  () => {
    const repository = makeRepository()
    const before = [
      git(repository, 'status', '--porcelain'),
      git(repository, 'count-objects'),
      git(repository, 'worktree', 'list'),
    ]
    const out = temporary()
    const first = makeTree(repository, 'HEAD~1', join(out, 'a'))
    const last = makeTree(repository, undefined, join(out, 'b'))
    expect(first.title).toMatch(/^[0-9a-f]{7,} test: begin$/)
    expect(last.title).toMatch(/^the working tree: [0-9a-f]{7,} with changes that are not committed$/)
    expect(textsOf(first.folder)).toEqual({
      ...{ 'changed.ts': 'one', 'link.ts': 'one', 'deleted.ts': 'one', 'new.ts': 'not there' },
      ...{ 'data/secret': 'not there', 'node_modules/package': 'package' },
    })
    expect(textsOf(last.folder)).toEqual({
      ...{ 'changed.ts': 'three', 'link.ts': 'three', 'deleted.ts': 'not there', 'new.ts': 'new' },
      ...{ 'data/secret': 'not there', 'node_modules/package': 'package' },
    })
    for (const { folder } of [first, last]) expect(statSync(join(folder, 'bin/weir')).mode & 0o777).toBe(0o755)
    const after = [
      git(repository, 'status', '--porcelain'),
      git(repository, 'count-objects'),
      git(repository, 'worktree', 'list'),
    ]
    expect(after).toEqual(before)
  },
)

test.skipIf(!hasGit)('a commit that is not there is refused, and other packages are noticed', () => {
  const repository = makeRepository()
  const out = temporary()
  expect(() => makeTree(repository, 'nothing', join(out, 'a'))).toThrow(
    'There is no commit "nothing" in this repository.',
  )
  const tree = makeTree(repository, 'HEAD', join(out, 'b'))
  expect(hasOtherPackages(repository, tree)).toBe(false)
  writeFileSync(join(repository, 'package-lock.json'), '{"packages":{}}')
  expect(hasOtherPackages(repository, tree)).toBe(true)
})

const canRun = hasGit && process.platform === 'linux' && availableParallelism() > 1 && existsSync(join(ROOT, '.git'))

/** Processes whose command names the folder. */
const runningIn = (folder: string): readonly string[] =>
  readdirSync('/proc').filter(pid => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(folder)
    } catch {
      return false
    }
  })

test.skipIf(!canRun)('after Ctrl-C no folder and no process of a comparison is left', async () => {
  const folder = temporary('/var/tmp') // not in memory, where a comparison does not work
  const command = [process.execPath, join(ROOT, 'bench/ab/ab.ts'), 'HEAD', '--only', 'choice', '--quick']
  const child = Bun.spawn(command, {
    cwd: ROOT,
    env: { ...process.env, TMPDIR: folder },
    stdout: 'ignore',
    stderr: 'ignore',
  })
  while (runningIn(folder).length === 0 && child.exitCode === null) await Bun.sleep(10)
  expect(readdirSync(folder)).toHaveLength(1)
  child.kill('SIGINT')
  expect(await child.exited).toBe(130)
  while (runningIn(folder).length > 0) await Bun.sleep(10)
  expect(readdirSync(folder)).toEqual([])
})
