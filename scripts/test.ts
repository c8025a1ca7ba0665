// npm test: the checks of `npm run check`, then every test, then one line that says how many passed. Ends non-zero if anything failed.
//
// Two processes at once, each with one folder of tests after the other. One process begins with the folders whose tests
// mostly wait for processes that they start and kill; the other begins at the opposite end of the list.

import { join } from 'node:path'
import { missing as missingPostgres } from '../test/support/postgres-programs.ts'
import { check } from './check.ts'

const root = join(import.meta.dir, '..')

/** Folders of tests that start processes of their own. */
const waiting: readonly string[] = ['crash', 'ledger', 'front', 'cli', 'secrets', 'rules']
/** The longest folders that do not, so that none of them is the last to begin. */
const long: readonly string[] = ['forwarding', 'routing', 'management', 'dialects']

const tests = [...new Bun.Glob('**/*.test.ts').scanSync(join(root, 'test'))]
const others = [...new Set(tests.map(path => path.split('/')[0]!))].filter(
  name => !waiting.includes(name) && !long.includes(name),
)
const folders = [...waiting, ...others.sort(), ...long].map(name => `./test/${name}`)

/** Tests of whole gateways, which run a second time with the data of the gateways in PostgreSQL. */
const onPostgres: Group = {
  paths: [
    'ledger/exactly-once',
    'ledger/unsettled',
    'webhooks/webhooks',
    'webhooks/management',
    'races/gateway',
    'forwarding/idempotency',
    'forwarding/money',
    'management/accounts',
    'management/codes',
    'management/keys',
    'management/ledger',
    'management/mass-assignment',
    'management/service-tokens',
    'management/tiers',
  ].map(name => `./test/${name}.test.ts`),
  env: { WEIR_TEST_DATABASE: 'postgres' },
}

/** A test that takes longer hangs. It is no bound on speed: a busy machine may be very slow. */
const HUNG_MS = 120_000

interface Group {
  readonly paths: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

interface Ran {
  readonly report: string
  readonly exitCode: number
}

/** bun test writes its report to stderr. A report of a folder is printed as a whole, so that two do not mix. */
async function run({ paths, env }: Group): Promise<Ran> {
  const child = Bun.spawn([process.execPath, 'test', '--timeout', String(HUNG_MS), ...paths], {
    cwd: root,
    stdout: 'pipe',
    stderr: 'pipe',
    env: { ...process.env, NO_COLOR: '1', ...env },
  })
  const [output, report, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  process.stdout.write(output)
  process.stderr.write(report)
  return { report, exitCode }
}

/** Runs one group after the other until none is left. `next` returns undefined then. */
async function runEach(next: () => Group | undefined): Promise<Ran[]> {
  const ran: Ran[] = []
  for (let group = next(); group !== undefined; group = next()) ran.push(await run(group))
  return ran
}

async function runAll(): Promise<Ran[]> {
  const alone = [...folders, './tools', './src'].map((folder): Group => ({ paths: [folder] }))
  const left = missingPostgres === undefined ? [onPostgres, ...alone] : alone
  if (missingPostgres !== undefined) console.warn(`NOT TESTED with gateways on PostgreSQL: ${missingPostgres}.`)
  const both = await Promise.all([runEach(() => left.shift()), runEach(() => left.pop())])
  return both.flat()
}

const paths = process.argv.slice(2)
const checked = paths.length > 0 || (await check())
const ran = paths.length > 0 ? [await run({ paths })] : await runAll()

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
