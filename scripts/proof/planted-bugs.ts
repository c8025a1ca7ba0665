// Plants each bug of bugs/table.ts into a copy of the project and runs the tests that must notice it. Run it before and
// after a large change of the code: the tests are as strong as before only if they notice every bug again.
//
// bin/weir-bun scripts/proof/planted-bugs.ts [text in the name of a file]

import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PlantedBug } from './bugs/table.ts'
import { plantedBugs } from './bugs/table.ts'

const root = join(import.meta.dir, '..', '..')
const PARTS = [
  'bin',
  'console',
  'docs',
  'providers',
  'scripts',
  'src',
  'test',
  'tools',
  'package.json',
  'tsconfig.json',
  'README.md',
]

function copyProject(): string {
  const copy = mkdtempSync(join(tmpdir(), 'weir-bugs-'))
  for (const part of PARTS) cpSync(join(root, part), join(copy, part), { recursive: true })
  symlinkSync(realpathSync(join(root, 'node_modules')), join(copy, 'node_modules'))
  return copy
}

function passes(copy: string, tests: readonly string[]): boolean {
  const bun = [join(copy, 'bin', 'weir-bun'), 'test', '--bail', '--timeout', '120000', ...tests]
  return Bun.spawnSync(bun, { cwd: copy, stdout: 'ignore', stderr: 'ignore' }).exitCode === 0
}

const healthy = new Set<string>()

/** Tests that fail without a bug prove nothing. */
function checkHealth(copy: string, tests: readonly string[]): void {
  const key = tests.join(' ')
  if (healthy.has(key)) return
  if (!passes(copy, tests)) throw new Error(`these tests fail without any bug: ${key}`)
  healthy.add(key)
}

function isCaught(copy: string, { file, find, replace, tests }: PlantedBug): boolean {
  checkHealth(copy, tests)
  const path = join(copy, file)
  const text = readFileSync(path, 'utf8')
  const parts = text.split(find)
  if (parts.length !== 2) throw new Error(`${file}: "${find}" occurs ${parts.length - 1} times, not once`)
  writeFileSync(path, parts.join(replace))
  const wasCaught = !passes(copy, tests)
  writeFileSync(path, text)
  return wasCaught
}

const chosen = plantedBugs.filter(({ file }) => file.includes(process.argv[2] ?? ''))
const copy = copyProject()
let caught = 0
for (const bug of chosen) {
  const sinceMs = performance.now()
  const wasCaught = isCaught(copy, bug)
  if (wasCaught) caught++
  const seconds = ((performance.now() - sinceMs) / 1_000).toFixed(0)
  process.stdout.write(
    `${wasCaught ? 'caught' : 'MISSED'} ${seconds.padStart(4)} s  ${bug.file}: ${bug.find.split('\n')[0]}\n`,
  )
}
rmSync(copy, { recursive: true, force: true })
process.stdout.write(`${caught} of ${chosen.length} bugs were caught\n`)
process.exit(caught === chosen.length ? 0 : 1)
