// Commands about the gateway itself: check, doctor, version.

import packageJson from '../../../package.json'
import { readMigrations } from '../../store/engine/database.ts'
import type { Wanted } from '../checks/problem.ts'
import type { Fields } from '../connect.ts'
import { fieldLines, jsonText } from '../print.ts'
import type { Row } from './command.ts'
import { onlyJson, say } from './command.ts'

const CHECK_USAGE = 'check'
const DOCTOR_USAGE = 'doctor'
const VERSION_USAGE = 'version'

export const systemRows: Readonly<Record<string, Row>> = {
  'check': {
    usage: CHECK_USAGE,
    about:
      'report everything that would stop Weir from starting: reads settings, provider files, secrets and rules as a ' +
      'start does; exit code 1 if there is a problem',
    run: async args => (await import('../checks/check.ts')).check(onlyJson(args, CHECK_USAGE), say),
  },
  'doctor': {
    usage: DOCTOR_USAGE,
    about: 'examine the gateway and its data, report what is wrong and what to do; exit code 1 if there is a problem',
    run: async args => (await import('../checks/doctor.ts')).doctor(onlyJson(args, DOCTOR_USAGE), say),
  },
  'version': {
    usage: VERSION_USAGE,
    about: 'print the versions of Weir, of Bun and of the database schema',
    run: async args => printVersion(onlyJson(args, VERSION_USAGE)),
  },
}

function printVersion({ json }: Wanted): void {
  const versions: Fields = { weir: packageJson.version, bun: process.versions.bun, schema: readMigrations().length }
  if (json) say(jsonText(versions))
  else for (const line of fieldLines(versions)) say(line)
}
