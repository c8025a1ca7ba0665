// Runs the type check over proofs.ts twice: unchanged it passes, and without its expectations every forbidden line is
// an error. So the compiler forbids each of them.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dir, '..', '..')
const source = readFileSync(join(import.meta.dir, 'proofs.ts'), 'utf8')
const expectation = /^ *\/\/ @ts-expect-error .*$/

let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'weir-types-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The lines at which the compiler finds an error. */
function errorLines(text: string): readonly number[] {
  const file = join(folder, 'proofs.ts')
  writeFileSync(file, text.replaceAll("'../../src/", `'${root}/src/`))
  const compilerOptions = { typeRoots: [join(root, 'node_modules', '@types')] }
  const config = { extends: join(root, 'tsconfig.json'), include: ['proofs.ts'], compilerOptions }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  const compiler = join(root, 'node_modules', '.bin', 'tsc')
  const run = Bun.spawnSync([compiler, '--noEmit', '--pretty', 'false', '-p', folder], { cwd: root })
  const errors = run.stdout.toString().matchAll(/^\S*proofs\.ts\((\d+),\d+\): error/gm)
  const lines = Array.from(errors, ([, line]) => Number(line))
  if (lines.length === 0 && run.exitCode !== 0) throw new Error(run.stdout.toString() + run.stderr.toString())
  return [...new Set(lines)]
}

test('the proofs compile', () => {
  expect(errorLines(source)).toEqual([])
})

test('each forbidden line is an error without its expectation', () => {
  const lines = source.split('\n')
  const forbidden = lines.flatMap((line, index) => (expectation.test(line) ? [index + 2] : []))
  expect(forbidden.length).toBeGreaterThan(15)
  expect(errorLines(lines.map(line => line.replace(expectation, '//')).join('\n'))).toEqual(forbidden)
})
