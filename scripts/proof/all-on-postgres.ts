// Runs all tests of whole gateways with their data in PostgreSQL. npm test runs a part of them in this way
// (scripts/test.ts). Exits with 1 if one fails.
//
//   bin/weir-bun scripts/proof/all-on-postgres.ts [text of paths …]

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { missing } from '../../test/support/postgres-programs.ts'

const root = join(import.meta.dir, '../..')
const HUNG_MS = 300_000
const HARNESS = /support\/(gateway|management|people)\.ts'/

/** Tests that start gateways and are about SQLite, with the reason. */
const onSqliteOnly: Readonly<Record<string, string>> = {}

const wanted = process.argv.slice(2)
const paths = [...new Bun.Glob('**/*.test.ts').scanSync(join(root, 'test'))]
  .filter(path => HARNESS.test(readFileSync(join(root, 'test', path), 'utf8')))
  .filter(path => !/^(postgres|redis|shared)\//.test(path) && !(path in onSqliteOnly))
  .filter(path => wanted.length === 0 || wanted.some(text => path.includes(text)))
  .sort()

if (missing !== undefined) throw new Error(missing)
const failed: string[] = []
for (const path of paths) {
  const sinceMs = performance.now()
  const child = Bun.spawn([process.execPath, 'test', '--timeout', String(HUNG_MS), `./test/${path}`], {
    cwd: root,
    stdout: 'ignore',
    stderr: 'pipe',
    env: { ...process.env, NO_COLOR: '1', WEIR_TEST_DATABASE: 'postgres' },
  })
  const [report, exitCode] = await Promise.all([child.stderr.text(), child.exited])
  const seconds = ((performance.now() - sinceMs) / 1_000).toFixed(0)
  const counts = ['pass', 'fail', 'skip'].flatMap(word => new RegExp(`^ *(\\d+ ${word})$`, 'm').exec(report)?.[1] ?? [])
  process.stdout.write(`${path.padEnd(48)} ${seconds.padStart(4)} s  ${counts.join(', ')}\n`)
  if (exitCode === 0) continue
  failed.push(path)
  process.stdout.write(report.slice(-8_000))
}
process.stdout.write(`${paths.length - failed.length} of ${paths.length} files pass\n`)
if (failed.length > 0) process.stdout.write(`failed: ${failed.join(' ')}\n`)
process.exit(failed.length === 0 ? 0 : 1)
