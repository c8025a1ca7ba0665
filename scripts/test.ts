// npm test: the checks of `npm run check`, then every test, then one line with the number of passed tests. Exits with 1
// if anything failed.
//
// Three processes at the same time, each with one folder of tests after the other, and the checks beside them. Three
// processes on two cores, because many tests wait: with two, a quarter of the CPU time was unused.

import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { missing as missingPostgres } from '../test/support/postgres-programs.ts'
import { BUNDLES_VARIABLE, bundleThreads } from '../test/support/thread-bundles.ts'
import { check } from './check.ts'

const root = join(import.meta.dir, '..')

/** The folders that take longest, in this order. They run first, so that only short ones are left at the end. */
const long = [
  ...['test/console', 'test/dialects', 'test/postgres', 'src', 'test/management', 'test/front', 'test/ledger'],
  ...['test/forwarding', 'test/shared', 'test/crash', 'test/routing', 'test/cli', 'test/secrets', 'test/rules'],
]

const tests = [...new Bun.Glob('**/*.test.ts').scanSync(join(root, 'test'))]
const folders = new Set([...long, ...tests.map(path => `test/${path.split('/')[0]!}`).sort(), 'tools', 'console/src'])

/** Tests of whole gateways, which run a second time with the data of the gateways in PostgreSQL. */
const onPostgres: Group = {
  paths: [
    'channels/live',
    'ledger/exactly-once',
    'ledger/unsettled',
    'webhooks/webhooks',
    'webhooks/management',
    'races/gateway',
    'forwarding/idempotency',
    'forwarding/money',
    'limits/many-keys',
    'management/accounts',
    'management/audit-log',
    'management/canary',
    'management/codes',
    'management/keys',
    'management/ledger',
    'management/mass-assignment',
    'management/people',
    'management/prices',
    'management/service-tokens',
    'management/settings',
    'management/sign-in',
    'management/tiers',
    'rules/live',
  ].map(name => `./test/${name}.test.ts`),
  env: { WEIR_TEST_DATABASE: 'postgres' },
}

/** Processes at the same time. */
const LANES = 3

/** A test that takes longer hangs. This is no speed limit: a busy machine may be very slow. */
const HUNG_MS = 120_000

const FAILURE_CHARS_MAX = 4_000

interface Group {
  readonly paths: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

interface Ran {
  readonly paths: readonly string[]
  readonly report: string
  readonly exitCode: number
}

/** bun test writes its report to stderr. A report of a folder is printed as a whole, so that two do not mix. */
async function run({ paths, env }: Group): Promise<Ran> {
  const child = Bun.spawn([process.execPath, 'test', '--timeout', String(HUNG_MS), ...paths], {
    cwd: root,
    stdout: 'pipe',
    stderr: 'pipe',
    env: { ...process.env, NO_COLOR: '1', [BUNDLES_VARIABLE]: bundles, ...env },
  })
  const [output, report, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  process.stdout.write(output)
  process.stderr.write(report)
  return { paths, report, exitCode }
}

/** Runs one group after the other until none is left. `next` returns undefined then. */
async function runEach(next: () => Group | undefined): Promise<Ran[]> {
  const ran: Ran[] = []
  for (let group = next(); group !== undefined; group = next()) ran.push(await run(group))
  return ran
}

async function runAll(): Promise<Ran[]> {
  const left = [...folders].map((folder): Group => ({ paths: [`./${folder}`] }))
  if (missingPostgres === undefined) left.unshift(onPostgres)
  else console.warn(`NOT TESTED with gateways on PostgreSQL: ${missingPostgres}.`)
  const lanes = Array.from({ length: LANES }, () => runEach(() => left.shift()))
  const [isChecked, ...ran] = await Promise.all([check(), ...lanes])
  checked = isChecked
  return ran.flat()
}

/** Each failed test once, with its output: an error is printed before the line of its test. */
function failuresOf(report: string): readonly string[] {
  const failures = new Map<string, string>()
  let printed: string[] = []
  for (const line of report.split('\n')) {
    const isResult = /^\((pass|fail|skip|todo)\) /.test(line)
    if (!isResult) printed.push(line)
    else {
      const isNewFailure = line.startsWith('(fail)') && !failures.has(line)
      if (isNewFailure)
        failures.set(line, [printed.join('\n').slice(-FAILURE_CHARS_MAX), line.slice(0, 300)].join('\n'))
      printed = []
    }
  }
  return [...failures.values()]
}

const paths = process.argv.slice(2)
let checked = true
const bundles = mkdtempSync(join(root, 'node_modules', '.threads-')) // where the bundles find the packages
await bundleThreads(bundles)
const ran = paths.length > 0 ? [await run({ paths })] : await runAll()
rmSync(bundles, { recursive: true, force: true })

const countIn = (report: string, word: string): number =>
  Number(new RegExp(`^ *(\\d+) ${word}$`, 'm').exec(report)?.[1] ?? 0)
const count = (word: string): number => ran.reduce((sum, { report }) => sum + countIn(report, word), 0)
const skipped = count('skip')
const failed = count('fail') + (checked ? 0 : 1)
const isWhole = ran.every(({ report, exitCode }) => exitCode === 0 && countIn(report, 'pass') > 0)
const ok = failed === 0 && isWhole

// The reports are long, so the failed tests are printed again at the end.
for (const text of ran.flatMap(({ report }) => failuresOf(report))) process.stdout.write(`${text}\n`)
if (!checked) process.stdout.write('npm run check found problems: see above\n')
const unfinished = ran.filter(({ report, exitCode }) => exitCode !== 0 && countIn(report, 'fail') === 0)
for (const { paths, exitCode } of unfinished) process.stdout.write(`${paths.join(' ')}: exit code ${exitCode}\n`)

const closing = `${count('pass')} passed, ${ok ? 0 : Math.max(1, failed)} failed`
process.stdout.write(`\n${closing}${skipped ? `, ${skipped} skipped` : ''}\n`)
process.exit(ok ? 0 : 1)
