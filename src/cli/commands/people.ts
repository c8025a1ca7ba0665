// Commands about people: creating the first owner, resetting passwords, changing roles.

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
      'create the first owner: asks for a name, an email address and a password (without a terminal, the password ' +
      'is the first line of standard input); --token prints a new one-time token for /api/auth/setup instead',
    command: 'setup-owner',
    options: ['email', 'name'],
    flags: ['token'],
    ask: setUp,
    print: answer => (typeof answer.setupToken === 'string' ? [answer.setupToken] : fieldLines(answer)),
  }),
  'token': asking({
    usage: 'token',
    about: 'create a management token (JWT) for /api/web/*; it is valid for ten minutes and allows everything',
    command: 'token',
    print: ({ token }) => [token as string],
  }),
  'users list': asking({
    usage: 'users list [--limit n]',
    about: 'list people, newest first',
    command: 'users-list',
    options: ['limit'],
    print: ({ users }) => ((users as Fields[]).length === 0 ? ['no people yet'] : tableLines(users as Fields[])),
  }),
  'users reset-password': asking({
    usage: 'users reset-password <email or usr_…> [--second-factor off]',
    about:
      'set a new password for a person (asks for it, or reads the first line of standard input); ends their sessions',
    command: 'users-reset-password',
    places: ['user'],
    options: ['second-factor'],
    prepare: async input => ({ ...input, password: await askPassword('New password') }),
  }),
  'users disable': asking({
    usage: 'users disable <email or usr_…>',
    about: 'end the sessions of a person and refuse new ones',
    command: 'users-disable',
    places: ['user'],
  }),
  'users enable': asking({
    usage: 'users enable <email or usr_…>',
    about: 'let a disabled person sign in again',
    command: 'users-enable',
    places: ['user'],
  }),
  'users email': asking({
    usage: 'users email <email or usr_…> <new email>',
    about: 'change the email address that a person signs in with',
    command: 'users-email',
    places: ['user', 'email'],
  }),
  'users role': asking({
    usage: 'users role <email or usr_…> <owner|admin|support|member>',
    about: 'change the role of a person; ends their sessions',
    command: 'users-role',
    places: ['user', 'role'],
  }),
}

async function setUp({ token, ...given }: Fields): Promise<Fields> {
  if (token === true) return await ask('setup', {})
  // This fails if there is an owner already, before the user types anything.
  await ask('setup-open', {})
  if (given.email === undefined && !isTerminal()) {
    throw new UsageProblem(
      'There is no terminal to ask for the email address. Use --email with the password on standard input, or --token.',
    )
  }
  const email = given.email ?? (await askLine('Email'))
  const name = given.name ?? (isTerminal() ? await askLine('Name') : undefined)
  return await ask('setup-owner', { email, ...(name !== '' && { name }), password: await askPassword('Password') })
}
