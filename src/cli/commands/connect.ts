// The command that points other programs at the gateway.

import { programs } from '../programs/programs.ts'
import type { CliCommand } from './command.ts'
import { defineOwnCommand } from './command.ts'

export const connectRows: Readonly<Record<string, CliCommand>> = {
  connect: defineOwnCommand(
    {
      usage:
        'connect [program] [--model gpt-5] [--key wk-…] [--url https://weir.example.com] [--write] [--dry-run] [--into-repository]',
      description:
        'point a coding agent, an editor or a library at the gateway: prints its settings; without a program, lists the ' +
        'programs; --write changes the configuration files of the program, prints what changes and keeps copies of the ' +
        'old files; --dry-run prints only what --write would change; a file with a key in a folder of git is only ' +
        'written with --into-repository; the key is that of WEIR_KEY if --key is missing, ' +
        'and --key - reads it from standard input',
      positionals: ['program?'],
      options: ['model', 'key', 'url'],
      flags: ['write', 'dry-run', 'into-repository'],
      values: { program: Object.entries(programs).flatMap(([id, { aliases = [] }]) => [id, ...aliases]) },
    },
    async input => (await import('../programs/connect-program.ts')).connectProgram(input),
  ),
}
