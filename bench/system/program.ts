// Runs a program of the benchmark on the subject's core, and returns its output.

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { root, SUBJECT_CORE } from './workbench.ts'

const MS_MAX = 900_000

/** `name` is the path of the program below bench/. */
export function runProgram(name: string, args: readonly (string | number)[]): string {
  const command = ['-c', String(SUBJECT_CORE), join(root, 'bin/weir-bun'), join(root, 'bench', name)]
  const options = { encoding: 'utf8', cwd: root, timeout: MS_MAX } as const
  const { status, stdout, stderr } = spawnSync('taskset', [...command, ...args.map(String)], options)
  if (status !== 0) throw new Error(`${name}: ${stderr}`)
  return stdout.trim()
}
