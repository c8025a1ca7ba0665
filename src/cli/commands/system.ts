// Commands about the gateway itself: whether it can start, what is wrong with it, which one it is.

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
      'say all that would keep Weir from starting: reads settings, provider files, secrets and rules as a start ' +
      'does; ends with 1 if anything is wrong',
    run: async args => (await import('../checks/check.ts')).check(onlyJson(args, CHECK_USAGE), say),
  },
  'doctor': {
    usage: DOCTOR_USAGE,
    about: 'look at the gateway and its data, say what is wrong and what to do; ends with 1 if anything is',
    run: async args => (await import('../checks/doctor.ts')).doctor(onlyJson(args, DOCTOR_USAGE), say),
  },
  'version': {
    usage: VERSION_USAGE,
    about: 'say which version this is, of Bun, and of the data that it keeps',
    run: async args => printVersion(onlyJson(args, VERSION_USAGE)),
  },
}

function printVersion({ json }: Wanted): void {
  const told: Fields = { weir: packageJson.version, bun: process.versions.bun, schema: readMigrations().length }
  if (json) say(jsonText(told))
  else for (const line of fieldLines(told)) say(line)
}
