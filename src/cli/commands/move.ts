// The command that moves all data between SQLite and PostgreSQL.

import type { CliCommand } from './command.ts'
import { defineMachineCommand, printLine } from './command.ts'

export const moveRows: Readonly<Record<string, CliCommand>> = {
  'migrate-to': defineMachineCommand(
    {
      usage: 'migrate-to <postgres://… | postgres | sqlite> [<data folder>] [--check]',
      description:
        'move all data from the data folder to a PostgreSQL database, or back with "sqlite"; "postgres" takes the ' +
        'database of WEIR_DATABASE_URL, so that its password is in no list of processes; Weir must not be running; ' +
        'with --check, only count the rows and estimate the time',
      positionals: ['target', 'folder?'],
      flags: ['check'],
    },
    async input => (await import('../migrate-to.ts')).migrateTo(input, printLine),
  ),
}
