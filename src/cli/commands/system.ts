// Commands about the gateway itself: migrate, check, doctor, version.

import packageJson from '../../../package.json'
import { readMigrations } from '../../store/engine/database.ts'
import type { OutputOptions } from '../checks/findings.ts'
import type { CommandFields } from '../connect.ts'
import { fieldLines, jsonText } from '../print.ts'
import type { CliCommand } from './command.ts'
import { defineMachineCommand, defineOwnCommand, printLine } from './command.ts'

const outputOf = ({ json }: CommandFields): OutputOptions => ({ json: json === true })

export const systemRows: Readonly<Record<string, CliCommand>> = {
  'migrate': defineMachineCommand(
    {
      usage: 'migrate',
      description:
        'create or upgrade the tables in the PostgreSQL database; a start does it, too; the only setting that it ' +
        'needs is WEIR_DATABASE_URL',
    },
    async input => (await import('../migrate.ts')).migrate(outputOf(input), printLine),
  ),
  'check': defineOwnCommand(
    {
      usage: 'check',
      description:
        'report what would stop Weir from starting, and other faults in its settings and data: reads settings, provider ' +
        'files, secrets and rules as a start does; exit code 1 if there is a problem',
    },
    async input => (await import('../checks/check.ts')).check(outputOf(input), printLine),
  ),
  'doctor': defineOwnCommand(
    {
      usage: 'doctor',
      description:
        'examine the gateway and its data, report what is wrong and what to do; exit code 1 if there is a problem',
    },
    async input => (await import('../checks/doctor.ts')).doctor(outputOf(input), printLine),
  ),
  'version': defineOwnCommand(
    { usage: 'version', description: 'print the versions of Weir, of Bun and of the database schema' },
    input => printVersion(outputOf(input)),
  ),
}

function printVersion({ json }: OutputOptions): void {
  const versions: CommandFields = {
    weir: packageJson.version,
    bun: process.versions.bun,
    schema: readMigrations().length,
  }
  if (json) printLine(jsonText(versions))
  else for (const line of fieldLines(versions)) printLine(line)
}
