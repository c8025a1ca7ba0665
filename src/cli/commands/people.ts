// Commands about people: creating the first owner, resetting passwords, changing roles.

import type { CommandFields } from '../connect.ts'
import { sendCommand, UsageProblem } from '../connect.ts'
import { fieldLines, tableLines } from '../print.ts'
import { askLine, askNewPassword, isTerminal } from '../terminal.ts'
import type { CliCommand } from './command.ts'
import { defineCommand } from './command.ts'

export const peopleRows: Readonly<Record<string, CliCommand>> = {
  'setup': defineCommand({
    usage: 'setup [--email name@example.com] [--name text] [--token]',
    description:
      'create the first owner: asks for a name, an email address and a password (without a terminal, the password ' +
      'is the first line of standard input); --token prints a new one-time token for /api/auth/setup instead',
    command: 'setup-owner',
    options: ['email', 'name'],
    flags: ['token'],
    send: setUp,
    print: answer => (typeof answer.setupToken === 'string' ? [answer.setupToken] : fieldLines(answer)),
  }),
  'token': defineCommand({
    usage: 'token',
    description: 'create a management token (JWT) for /api/web/*; it is valid for ten minutes and allows everything',
    command: 'token',
    print: ({ token }) => [token as string],
  }),
  'users list': defineCommand({
    usage: 'users list [--limit n]',
    description: 'list people, newest first',
    command: 'users-list',
    options: ['limit'],
    print: ({ users }) =>
      (users as CommandFields[]).length === 0 ? ['no people yet'] : tableLines(users as CommandFields[]),
  }),
  'users reset-password': defineCommand({
    usage: 'users reset-password <email or usr_…> [--second-factor off]',
    description:
      'set a new password for a person (asks for it, or reads the first line of standard input); ends their sessions',
    command: 'users-reset-password',
    positionals: ['user'],
    options: ['second-factor'],
    prepare: async input => ({ ...input, password: await askNewPassword('New password') }),
  }),
  'users disable': defineCommand({
    usage: 'users disable <email or usr_…>',
    description: 'end the sessions of a person and refuse new ones',
    command: 'users-disable',
    positionals: ['user'],
  }),
  'users enable': defineCommand({
    usage: 'users enable <email or usr_…>',
    description: 'let a disabled person sign in again',
    command: 'users-enable',
    positionals: ['user'],
  }),
  'users email': defineCommand({
    usage: 'users email <email or usr_…> <new email>',
    description: 'change the email address that a person signs in with',
    command: 'users-email',
    positionals: ['user', 'email'],
  }),
  'users role': defineCommand({
    usage: 'users role <email or usr_…> <owner|admin|support|member>',
    description: 'change the role of a person; ends their sessions',
    command: 'users-role',
    positionals: ['user', 'role'],
  }),
}

async function setUp({ token, ...given }: CommandFields): Promise<CommandFields> {
  if (token === true) return await sendCommand('setup', {})
  // This fails if there is an owner already, before the user types anything.
  await sendCommand('setup-open', {})
  if (given.email === undefined && !isTerminal()) {
    throw new UsageProblem(
      'There is no terminal to ask for the email address. Use --email with the password on standard input, or --token.',
    )
  }
  const email = given.email ?? (await askLine('Email'))
  const name = given.name ?? (isTerminal() ? await askLine('Name') : undefined)
  return await sendCommand('setup-owner', {
    email,
    ...(name !== '' && { name }),
    password: await askNewPassword('Password'),
  })
}
