// Commands about the gateway itself: check, doctor, version.

import packageJson from '../../../package.json'
import { readMigrations } from '../../store/engine/database.ts'
import type { OutputOptions } from '../checks/findings.ts'
import type { CommandFields } from '../connect.ts'
import { fieldLines, jsonText } from '../print.ts'
import type { CliCommand } from './command.ts'
import { printLine, readJsonFlag } from './command.ts'

const CHECK_USAGE = 'check'
const DOCTOR_USAGE = 'doctor'
const VERSION_USAGE = 'version'

export const systemRows: Readonly<Record<string, CliCommand>> = {
  'check': {
    usage: CHECK_USAGE,
    description:
      'report everything that would stop Weir from starting: reads settings, provider files, secrets and rules as a ' +
      'start does; exit code 1 if there is a problem',
    run: async args => (await import('../checks/check.ts')).check(readJsonFlag(args, CHECK_USAGE), printLine),
  },
  'doctor': {
    usage: DOCTOR_USAGE,
    description:
      'examine the gateway and its data, report what is wrong and what to do; exit code 1 if there is a problem',
    run: async args => (await import('../checks/doctor.ts')).doctor(readJsonFlag(args, DOCTOR_USAGE), printLine),
  },
  'version': {
    usage: VERSION_USAGE,
    description: 'print the versions of Weir, of Bun and of the database schema',
    run: async args => printVersion(readJsonFlag(args, VERSION_USAGE)),
  },
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
