// Commands about the secrets of the gateway itself.

import { secretKinds } from '../../store/secrets/secret-kinds.ts'
import type { CommandFields } from '../connect.ts'
import { parseEither } from '../input.ts'
import { fieldLines } from '../print.ts'
import type { CliCommand } from './command.ts'
import { defineCommand } from './command.ts'

export const secretRows: Readonly<Record<string, CliCommand>> = {
  'rotate': defineCommand({
    usage: 'rotate <jwt|pepper|encryption> [--status | --finish [--force]]',
    description:
      'create a new secret and continue to accept the old ones; --status shows what still uses each secret, ' +
      '--finish removes old secrets that nothing uses, --finish --force also those that are still in use',
    positionals: ['kind'],
    values: { kind: secretKinds },
    flags: ['status', 'finish', 'force'],
    prepare(input) {
      parseEither(input, 'status', 'finish')
      return input
    },
    ask: (input, send) => send.machine('rotate', input),
    connects: ({ finish, force }) => ({ ignoresLostSecrets: finish === true && force === true }),
    print: answer => fieldLines(readable(answer)),
  }),
}

/** Shows the uses of each secret as text, such as "3 keys". */
function readable({ secrets, keys, ...answer }: CommandFields): CommandFields {
  if (secrets === undefined) return answer
  const rows = (secrets as CommandFields[]).map(row => ({
    ...row,
    rests: countsIn(row.rests as Record<string, number>),
  }))
  return { ...answer, secrets: rows, keys }
}

const countsIn = (rests: Readonly<Record<string, number>>): string =>
  Object.entries(rests)
    .map(([name, count]) => `${count} ${name}`)
    .join(', ') || '-'
