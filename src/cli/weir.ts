// weir <command>. Each command is a row; what it prints goes to stdout, what went wrong to stderr. It ends with 0, with
// 1 if it could not be done or is bad news, and with 2 if it is not written as it must be.

import { readConfig } from '../config.ts'
import { UsageProblem } from './asking.ts'
import { fakeUpstream, usage as fakeUpstreamUsage } from './fake-upstream.ts'
import { harmlessLines } from './printing.ts'
import type { Row } from './row.ts'
import { alone, say } from './row.ts'
import { bookRows } from './rows-books.ts'
import { keyRows } from './rows-keys.ts'
import { moneyRows } from './rows-money.ts'
import { peopleRows } from './rows-people.ts'
import { remoteRows } from './rows-remote.ts'
import { ruleRows } from './rows-rules.ts'
import { secretRows } from './rows-secrets.ts'
import { systemRows } from './rows-system.ts'
import { serve } from './serve.ts'

const rows: Readonly<Record<string, Row>> = {
  'serve': {
    usage: 'serve',
    about: 'start the gateway',
    run: alone('serve', () => serve(readConfig(process.env), say)),
  },
  ...keyRows,
  ...moneyRows,
  ...bookRows,
  ...ruleRows,
  ...secretRows,
  ...systemRows,
  ...peopleRows,
  ...remoteRows,
  'fake-upstream': {
    usage: fakeUpstreamUsage,
    about: 'a provider that commits faults, to rehearse bad days with; --list says which. Ends on a signal',
    run: args => fakeUpstream(args, say),
  },
}

function help(): void {
  say('weir <command>\n')
  for (const { usage, about } of Object.values(rows)) say(`  ${usage}\n      ${about}`)
  say('\nAny command that answers takes --json. Settings come from the environment; .env.example lists them.')
  say('A command ends with 0; with 1 if it could not be done or is bad news; with 2 if it is not written like this.')
}

/** Of one command, or of all that begin so. */
function helpOn(words: readonly string[]): void {
  const asked = words.join(' ')
  const found = Object.entries(rows).filter(([name]) => name === asked || name.startsWith(`${asked} `))
  if (found.length === 0) throw new UsageProblem('There is no such command. See: weir help')
  for (const [, { usage, about }] of found) say(`weir ${usage}\n    ${about}`)
}

const asksForHelp = (arg: string | undefined): boolean => arg === '--help' || arg === '-h'

async function main(argv: readonly string[]): Promise<void> {
  if (argv[0] === '--version') return await rows.version!.run(argv.slice(1))
  const name = Object.keys(rows).find(candidate => argv.slice(0, candidate.split(' ').length).join(' ') === candidate)
  if (name === undefined) {
    if (argv[0] === 'help' && argv.length > 1) return helpOn(argv.slice(1))
    if (argv.length === 0 || argv[0] === 'help' || argv.some(asksForHelp)) return help()
    // What does not look like a command may be a key in the wrong place.
    const named = /^[a-z-]{1,20}$/.test(argv[0]!) ? `command "${argv[0]}"` : 'such command'
    throw new UsageProblem(`There is no ${named}${argv.length > 1 ? ', or not like this' : ''}. See: weir help`)
  }
  const { usage, about, run } = rows[name]!
  const args = argv.slice(name.split(' ').length)
  if (args.length === 1 && asksForHelp(args[0])) return say(`weir ${usage}\n    ${about}`)
  await run(args)
}

/** These say what to do; anything else is a bug and shows where it is. */
const plain = new Set([
  ...['ConfigError', 'Problem', 'OperatorError', 'ControlLost', 'FolderError', 'ProviderFileError', 'StoreError'],
  ...['Refusal', 'UsageProblem'],
])

/** parseArgs says what is wrong with the arguments in a TypeError of a code of its own. */
const isAboutArguments = (fault: Error): boolean => 'code' in fault && String(fault.code).startsWith('ERR_PARSE_ARGS')

/** SQLite's own words for a file that it cannot read. */
const isAboutDamage = (fault: Error & { readonly code?: unknown }): boolean =>
  fault.code === 'SQLITE_CORRUPT' || fault.code === 'SQLITE_NOTADB'

function tellingOf(fault: Error): string {
  if (isAboutDamage(fault)) return `The database is damaged: ${fault.message}. Bring back a backup: weir restore.`
  return plain.has(fault.constructor.name) || isAboutArguments(fault) ? fault.message : String(fault.stack)
}

// Whoever reads only the first lines of a list has what they wanted.
process.stdout.on('error', (fault: { code?: string }) => process.exit(fault.code === 'EPIPE' ? 0 : 1))
process.umask(0o077) // whatever is made in the data folder is its owner's alone
main(process.argv.slice(2)).catch((fault: Error) => {
  process.stderr.write(`weir: ${harmlessLines(tellingOf(fault))}\n`)
  process.exit(fault instanceof UsageProblem || isAboutArguments(fault) ? 2 : 1)
})
