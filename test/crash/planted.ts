// Plants a bug into a private copy of the gateway, and lets the harness look for it.

import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Bug, Edit } from './bugs.ts'
import { ROOT } from './gateway-child.ts'
import { runCrashes } from './harness.ts'

/** Most are seen within a few; what needs a checkpoint and then a kill at the right moment may take longer. */
const KILLS_MAX = 150
const ROUNDS = 5

export interface Caught {
  readonly bug: string
  /** Kills, or rounds of races, that it took; undefined when it got away. */
  readonly after: number | undefined
  /** The violation that was expected, or else what was seen instead. */
  readonly said: string
  readonly seconds: number
}

export async function catchBug(bug: Bug, seed: number): Promise<Caught> {
  const sinceMs = performance.now()
  const root = mkdtempSync(join(tmpdir(), 'weir-planted-'))
  try {
    plant(bug.edits, root)
    const { violations, tries } = bug.by === 'kills' ? await byKills(bug, root, seed) : await byRaces(root, seed)
    const said = violations.find(violation => bug.expects.test(violation))
    const seconds = (performance.now() - sinceMs) / 1_000
    if (said !== undefined) return { bug: bug.name, after: tries, said, seconds }
    return { bug: bug.name, after: undefined, said: violations[0] ?? 'no violation', seconds }
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

interface Seen {
  readonly violations: readonly string[]
  readonly tries: number
}

async function byKills(bug: Bug, root: string, seed: number): Promise<Seen> {
  const { upgrades = 1, startKillEach, longLoadEach } = bug
  const often = { ...(startKillEach && { startKillEach }), ...(longLoadEach && { longLoadEach }) }
  const options = { kills: KILLS_MAX, seed, root, upgrades, ...often }
  const { violations, kills } = await runCrashes(options)
  return { violations, tries: kills }
}

async function byRaces(root: string, seed: number): Promise<Seen> {
  const program = join(root, 'test', 'races', 'process.ts')
  const child = Bun.spawn([process.execPath, program, String(ROUNDS), String(seed)], { stdout: 'pipe', stderr: 'pipe' })
  const [said, complaint] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  if (said === '') throw new Error(`the races did not run: ${complaint}`)
  return { violations: JSON.parse(said) as string[], tries: ROUNDS }
}

/** Makes the copy. */
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

/** Throws when the bug cannot be planted any more. */
export function applied({ file, find, replace }: Edit, text: string): string {
  const parts = text.split(find)
  if (parts.length !== 2) throw new Error(`"${find.trim()}" stands ${parts.length - 1} times in ${file}, not once`)
  return parts.join(replace)
}

export function readSource(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8')
}
