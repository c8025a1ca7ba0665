// Plants a bug into a copy of the gateway, and runs the harness on the copy.

import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Bug, Edit } from './bugs.ts'
import { ROOT } from './gateway-child.ts'
import { runCrashes } from './harness.ts'

/** Most bugs are detected within a few kills; a bug that needs a checkpoint and a kill at the right moment takes longer. */
const KILLS_MAX = 300
const ROUNDS = 5

export interface Caught {
  readonly bug: string
  /** How many kills or rounds of races it took; undefined if the bug was not detected. */
  readonly after: number | undefined
  /** The expected violation, or else the first other violation. */
  readonly violation: string
  readonly seconds: number
}

export async function catchBug(bug: Bug, seed: number): Promise<Caught> {
  const startMs = performance.now()
  const { root, remove } = plantedCopy(bug.edits)
  try {
    const { violations, tries } = bug.by === 'kills' ? await byKills(bug, root, seed) : await byRaces(root, seed)
    const violation = violations.find(each => bug.expects.test(each))
    const seconds = (performance.now() - startMs) / 1_000
    if (violation !== undefined) return { bug: bug.name, after: tries, violation, seconds }
    return { bug: bug.name, after: undefined, violation: violations[0] ?? 'no violation', seconds }
  } finally {
    remove()
  }
}

interface RunResult {
  readonly violations: readonly string[]
  readonly tries: number
}

async function byKills(bug: Bug, root: string, seed: number): Promise<RunResult> {
  const { upgrades = 0, startKillEach, longLoadEach } = bug
  const often = { ...(startKillEach && { startKillEach }), ...(longLoadEach && { longLoadEach }) }
  const options = { kills: KILLS_MAX, seed, root, upgrades, ...often }
  const { violations, kills } = await runCrashes(options)
  return { violations, tries: kills }
}

async function byRaces(root: string, seed: number): Promise<RunResult> {
  const program = join(root, 'test', 'races', 'process.ts')
  const child = Bun.spawn([process.execPath, program, String(ROUNDS), String(seed)], { stdout: 'pipe', stderr: 'pipe' })
  const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  if (output === '') throw new Error(`the races did not run: ${errors}`)
  return { violations: JSON.parse(output) as string[], tries: ROUNDS }
}

/** A copy of the gateway with a bug. */
export function plantedCopy(edits: readonly Edit[]): { readonly root: string; remove(): void } {
  const root = mkdtempSync(join(tmpdir(), 'weir-planted-'))
  plant(edits, root)
  return { root, remove: () => rmSync(root, { recursive: true, force: true }) }
}

/** Creates the copy and applies the edits. */
function plant(edits: readonly Edit[], root: string): void {
  for (const part of ['bin', 'providers', 'src', 'tools', 'test/crash', 'test/races', 'test/support', 'package.json']) {
    cpSync(join(ROOT, part), join(root, part), { recursive: true })
  }
  symlinkSync(realpathSync(join(ROOT, 'node_modules')), join(root, 'node_modules'))
  for (const edit of edits) {
    const path = join(root, edit.file)
    writeFileSync(path, applied(edit, readFileSync(path, 'utf8')))
  }
}

/** Throws if the text to replace does not occur exactly once. */
export function applied({ file, find, replace }: Edit, text: string): string {
  const parts = text.split(find)
  if (parts.length !== 2) throw new Error(`"${find.trim()}" stands ${parts.length - 1} times in ${file}, not once`)
  return parts.join(replace)
}

export function readSource(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8')
}
