// The main program of the CLI: finds the command and runs it. Answers go to stdout, errors to stderr. Exit codes: 0
// success, 1 the command failed or found a problem, 2 wrong usage.

import { storageMessage } from '../store/engine/folder-error.ts'
import { printLine } from './commands/command.ts'
import { cliCommands } from './commands/commands.ts'
import { describeCommands, helpLines, unknownCommandError, usageLines } from './help.ts'
import { harmlessLines } from './print.ts'
import { UsageProblem } from './problem.ts'

const asksForHelp = (arg: string | undefined): boolean => arg === '--help' || arg === '-h'

const sayAll = (lines: readonly string[]): void => lines.forEach(printLine)

async function main(argv: readonly string[]): Promise<void> {
  if (argv[0] === '--version') return await cliCommands.version!.run(argv.slice(1))
  const name = Object.keys(cliCommands).find(
    candidate => argv.slice(0, candidate.split(' ').length).join(' ') === candidate,
  )
  if (name === undefined) {
    const words = argv.filter(arg => !asksForHelp(arg))
    const isHelp = words[0] === 'help'
    if (words.length === 0 || (isHelp && words.length === 1)) return sayAll(helpLines())
    if (isHelp || words.length < argv.length) return sayAll(describeCommands(isHelp ? words.slice(1) : words))
    throw unknownCommandError(argv)
  }
  const row = cliCommands[name]!
  const args = argv.slice(name.split(' ').length)
  if (args.some(asksForHelp)) return sayAll(usageLines(row))
  await row.run(args)
}

/** Names of error classes whose messages tell the user what to do. Any other error is a bug and prints its stack. */
const userErrors = new Set([
  'ConfigError',
  'ConfigApplyError',
  'ConfigFileError',
  'Problem',
  'ControlConnectionLost',
  'FolderError',
  'ProviderFileError',
  'StoreError',
  'Refusal',
  'UsageProblem',
])

/** Also for subclasses, such as the errors about one channel. */
function isUserError(fault: Error): boolean {
  for (let type: unknown = fault.constructor; typeof type === 'function'; type = Object.getPrototypeOf(type)) {
    if (userErrors.has(type.name)) return true
  }
  return false
}

function errorMessage(fault: Error): string {
  return isUserError(fault) ? fault.message : (storageMessage(fault) ?? String(fault.stack))
}

process.stdout.on('error', (fault: { code?: string; message: string }) => {
  if (fault.code === 'EPIPE') process.exit(0) // no error: a reader such as `head` closed the pipe
  process.stderr.write(`weir: The output cannot be written: ${fault.message}.\n`)
  process.exit(1)
})
process.umask(0o077) // only the owner may read new files of the data folder
main(process.argv.slice(2)).catch((fault: Error) => {
  process.stderr.write(`weir: ${harmlessLines(errorMessage(fault))}\n`)
  process.exit(fault instanceof UsageProblem ? 2 : 1)
})
