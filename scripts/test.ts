// npm test: types, then every test, then one line that says how many passed. Ends non-zero if anything failed.

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const root = join(import.meta.dir, '..')

const types = spawnSync(join(root, 'node_modules', '.bin', 'tsc'), ['--noEmit'], { cwd: root, stdio: 'inherit' })

const tests = Bun.spawn([process.execPath, 'test', '--timeout', '30000', ...process.argv.slice(2)], {
  cwd: root,
  stdout: 'inherit',
  stderr: 'pipe',
  env: { ...process.env, NO_COLOR: '1' },
})

// bun test writes its report to stderr; it is passed on as it comes and its closing counts are read from it.
let report = ''
const decoder = new TextDecoder()
for await (const chunk of tests.stderr) {
  const text = decoder.decode(chunk, { stream: true })
  process.stderr.write(text)
  report += text
}
const exitCode = await tests.exited

const count = (word: string): number => Number(new RegExp(`^ *(\\d+) ${word}$`, 'm').exec(report)?.[1] ?? 0)
const skipped = count('skip')
const failed = count('fail') + (types.status === 0 ? 0 : 1)
const ok = failed === 0 && exitCode === 0 && count('pass') > 0

const closing = `${count('pass')} passed, ${ok ? 0 : Math.max(1, failed)} failed`
process.stdout.write(`\n${closing}${skipped ? `, ${skipped} skipped` : ''}\n`)
process.exit(ok ? 0 : 1)
