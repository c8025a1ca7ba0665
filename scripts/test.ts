// npm test: the checks of `npm run check`, then every test, then one line that says how many passed. Ends non-zero if anything failed.
//
// Two processes at once: one has the tests that mostly wait for processes that they start and kill; the other the rest.

import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { check } from './check.ts'

const root = join(import.meta.dir, '..')

/** Folders of tests that start processes of their own. */
const waiting: readonly string[] = ['cli', 'crash', 'front', 'ledger', 'rules', 'secrets']

const isTest = (name: string): boolean => !name.includes('.') || name.endsWith('.test.ts')
const others = readdirSync(join(root, 'test')).filter(name => isTest(name) && !waiting.includes(name))

const shares: readonly (readonly string[])[] =
  process.argv.length > 2
    ? [process.argv.slice(2)]
    : [waiting.map(name => `./test/${name}`), ['./src', './tools', ...others.map(name => `./test/${name}`)]]

/** A test that takes longer hangs. It is no bound on speed: a busy machine may be very slow. */
const HUNG_MS = 120_000

interface Ran {
  readonly report: string
  readonly exitCode: number
}

/** bun test writes its report to stderr; it is passed on as it comes and its closing counts are read from it. */
async function run(paths: readonly string[]): Promise<Ran> {
  const tests = Bun.spawn([process.execPath, 'test', '--timeout', String(HUNG_MS), ...paths], {
    cwd: root,
    stdout: 'inherit',
    stderr: 'pipe',
    env: { ...process.env, NO_COLOR: '1' },
  })
  let report = ''
  const decoder = new TextDecoder()
  for await (const chunk of tests.stderr) {
    const text = decoder.decode(chunk, { stream: true })
    process.stderr.write(text)
    report += text
  }
  return { report, exitCode: await tests.exited }
}

const checked = process.argv.length > 2 || (await check())
const ran = await Promise.all(shares.map(run))

const countIn = (report: string, word: string): number =>
  Number(new RegExp(`^ *(\\d+) ${word}$`, 'm').exec(report)?.[1] ?? 0)
const count = (word: string): number => ran.reduce((sum, { report }) => sum + countIn(report, word), 0)
const skipped = count('skip')
const failed = count('fail') + (checked ? 0 : 1)
const isWhole = ran.every(({ report, exitCode }) => exitCode === 0 && countIn(report, 'pass') > 0)
const ok = failed === 0 && isWhole

const closing = `${count('pass')} passed, ${ok ? 0 : Math.max(1, failed)} failed`
process.stdout.write(`\n${closing}${skipped ? `, ${skipped} skipped` : ''}\n`)
process.exit(ok ? 0 : 1)
