// Commands about the secrets that Weir keeps for itself.

import type { Fields } from '../connect.ts'
import { fieldLines } from '../print.ts'
import type { Row } from './command.ts'
import { asking } from './command.ts'

export const secretRows: Readonly<Record<string, Row>> = {
  'rotate': asking({
    usage: 'rotate <jwt|pepper|encryption> [--status | --finish [--force]]',
    about:
      'make a new secret and go on accepting the old one; --status tells what still rests on which, --finish lets go ' +
      'of old ones that nothing rests on, with --force also of those that something does',
    command: 'rotate',
    places: ['kind'],
    flags: ['status', 'finish', 'force'],
    print: answer => fieldLines(readable(answer)),
  }),
}

/** How many of what, in words. */
function readable({ secrets, keys, ...answer }: Fields): Fields {
  if (secrets === undefined) return answer
  const rows = (secrets as Fields[]).map(row => ({ ...row, rests: countsIn(row.rests as Record<string, number>) }))
  return { ...answer, secrets: rows, keys }
}

const countsIn = (rests: Readonly<Record<string, number>>): string =>
  Object.entries(rests)
    .map(([name, count]) => `${count} ${name}`)
    .join(', ') || '-'
