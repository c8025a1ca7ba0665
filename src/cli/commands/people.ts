// Commands about people: the first owner, whoever forgot their password, and who may what.

import type { Fields } from '../connect.ts'
import { ask, UsageProblem } from '../connect.ts'
import { fieldLines, tableLines } from '../print.ts'
import { askLine, askPassword, isTerminal } from '../terminal.ts'
import type { Row } from './command.ts'
import { asking } from './command.ts'

export const peopleRows: Readonly<Record<string, Row>> = {
  'setup': asking({
    usage: 'setup [--email name@example.com] [--name text] [--token]',
    about:
      'become the owner: asks for a name, an address and a password (without a terminal, the password is the first ' +
      'line of the standard input); --token prints a fresh one-time token for /api/auth/setup instead',
    command: 'setup-owner',
    options: ['email', 'name'],
    flags: ['token'],
    ask: setUp,
    print: answer => (typeof answer.setupToken === 'string' ? [answer.setupToken] : fieldLines(answer)),
  }),
  'token': asking({
    usage: 'token',
    about: 'make a management token (JWT) of ten minutes for /api/web/*; it may do everything',
    command: 'token',
    print: ({ token }) => [token as string],
  }),
  'users list': asking({
    usage: 'users list [--limit n]',
    about: 'list people, the latest first',
    command: 'users-list',
    options: ['limit'],
    print: ({ users }) => ((users as Fields[]).length === 0 ? ['nobody yet'] : tableLines(users as Fields[])),
  }),
  'users reset-password': asking({
    usage: 'users reset-password <email or usr_…> [--second-factor off]',
    about: 'give somebody another password (asked for, or the first line of the standard input); their sessions end',
    command: 'users-reset-password',
    places: ['user'],
    options: ['second-factor'],
    prepare: async input => ({ ...input, password: await askPassword('Another password') }),
  }),
  'users disable': asking({
    usage: 'users disable <email or usr_…>',
    about: 'sign somebody out, and let them in no more',
    command: 'users-disable',
    places: ['user'],
  }),
  'users enable': asking({
    usage: 'users enable <email or usr_…>',
    about: 'let somebody in again',
    command: 'users-enable',
    places: ['user'],
  }),
  'users email': asking({
    usage: 'users email <email or usr_…> <new email>',
    about: 'change the address that somebody signs in with',
    command: 'users-email',
    places: ['user', 'email'],
  }),
  'users role': asking({
    usage: 'users role <email or usr_…> <owner|admin|support|member>',
    about: 'change what somebody may; their sessions end',
    command: 'users-role',
    places: ['user', 'role'],
  }),
}

async function setUp({ token, ...given }: Fields): Promise<Fields> {
  if (token === true) return await ask('setup', {})
  // That there is an owner already is said before anything is asked for.
  await ask('setup-open', {})
  if (given.email === undefined && !isTerminal()) {
    throw new UsageProblem('There is no terminal to ask at. Say --email, with the password as input, or --token.')
  }
  const email = given.email ?? (await askLine('Email'))
  const name = given.name ?? (isTerminal() ? await askLine('Name') : undefined)
  return await ask('setup-owner', { email, ...(name !== '' && { name }), password: await askPassword('Password') })
}
