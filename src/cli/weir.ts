// weir <command>. Each command is a row; what it prints goes to stdout, what went wrong to stderr. It ends with 0, with
// 1 if it could not be done or is bad news, and with 2 if it is not written as it must be.

import { say } from './commands/command.ts'
import { rows } from './commands/commands.ts'
import { UsageProblem } from './connect.ts'
import { helpLines, helpOn, notACommand, usageLines } from './help.ts'
import { harmlessLines } from './print.ts'

const asksForHelp = (arg: string | undefined): boolean => arg === '--help' || arg === '-h'

const sayAll = (lines: readonly string[]): void => lines.forEach(say)

async function main(argv: readonly string[]): Promise<void> {
  if (argv[0] === '--version') return await rows.version!.run(argv.slice(1))
  const name = Object.keys(rows).find(candidate => argv.slice(0, candidate.split(' ').length).join(' ') === candidate)
  if (name === undefined) {
    const words = argv.filter(arg => !asksForHelp(arg))
    const isHelp = words[0] === 'help'
    if (words.length === 0 || (isHelp && words.length === 1)) return sayAll(helpLines())
    if (isHelp || words.length < argv.length) return sayAll(helpOn(isHelp ? words.slice(1) : words))
    throw notACommand(argv)
  }
  const row = rows[name]!
  const args = argv.slice(name.split(' ').length)
  if (args.some(asksForHelp)) return sayAll(usageLines(row))
  await row.run(args)
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
  // What it says beyond the first sentence is about options that look like values.
  if (isAboutArguments(fault)) return `${fault.message.split('. ')[0]!}. See: weir help`
  return plain.has(fault.constructor.name) ? fault.message : String(fault.stack)
}

// Whoever reads only the first lines of a list has what they wanted.
process.stdout.on('error', (fault: { code?: string }) => process.exit(fault.code === 'EPIPE' ? 0 : 1))
process.umask(0o077) // whatever is made in the data folder is its owner's alone
main(process.argv.slice(2)).catch((fault: Error) => {
  process.stderr.write(`weir: ${harmlessLines(tellingOf(fault))}\n`)
  process.exit(fault instanceof UsageProblem || isAboutArguments(fault) ? 2 : 1)
})
