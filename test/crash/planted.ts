// Plants a bug into a copy of the gateway, and runs the harness on the copy.

import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Bug, Edit } from './bugs.ts'
import { ROOT } from './gateway-child.ts'
import { runCrashes } from './harness.ts'

/** A directed load shows its bug at the first kill, or at one of the next few. */
const KILLS_MAX = 50
const ROUNDS = 5

export interface Caught {
  readonly bug: string
  /** How many kills or rounds of races it took; undefined if the bug was not detected. */
  readonly after: number | undefined
  /** The expected violation, or else the first other violation. */
  readonly violation: string
  readonly seconds: number
}

/** Plants the bug into the copy until it is detected. */
export async function catchBug(bug: Bug, seed: number, copy: GatewayCopy): Promise<Caught> {
  const startMs = performance.now()
  const { root } = copy
  const undo = copy.plant(bug.edits)
  try {
    const { violations, tries } = bug.by === 'kills' ? await byKills(bug, root, seed) : await byRaces(root, seed)
    const violation = violations.find(each => bug.expects.test(each))
    const seconds = (performance.now() - startMs) / 1_000
    if (violation !== undefined) return { bug: bug.name, after: tries, violation, seconds }
    return { bug: bug.name, after: undefined, violation: violations[0] ?? 'no violation', seconds }
  } finally {
    undo()
  }
}

interface RunResult {
  readonly violations: readonly string[]
  readonly tries: number
}

async function byKills(bug: Bug, root: string, seed: number): Promise<RunResult> {
  const { upgrades = 0, load } = bug
  const { violations, kills } = await runCrashes({ kills: KILLS_MAX, seed, root, upgrades, ...(load && { load }) })
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
  const copy = copyGateway()
  copy.plant(edits)
  return copy
}

export interface GatewayCopy {
  readonly root: string
  /** Applies the edits, and returns a function that undoes them. */
  plant(edits: readonly Edit[]): () => void
  remove(): void
}

export function copyGateway(): GatewayCopy {
  const root = mkdtempSync(join(tmpdir(), 'weir-planted-'))
  for (const part of ['bin', 'providers', 'src', 'tools', 'test/crash', 'test/races', 'test/support', 'package.json']) {
    cpSync(join(ROOT, part), join(root, part), { recursive: true })
  }
  symlinkSync(realpathSync(join(ROOT, 'node_modules')), join(root, 'node_modules'))
  return {
    root,
    plant(edits) {
      for (const edit of edits) {
        const path = join(root, edit.file)
        writeFileSync(path, applied(edit, readFileSync(path, 'utf8')))
      }
      return () => {
        for (const { file } of edits) writeFileSync(join(root, file), readSource(file))
      }
    },
    remove: () => rmSync(root, { recursive: true, force: true }),
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
