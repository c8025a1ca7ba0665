// Commands about people: creating the first owner, resetting passwords, changing roles.

import { siteRoles } from '../../management/actor.ts'
import type { CommandFields } from '../connect.ts'
import { findUser, ON_OFF, parseSwitch, UNKNOWN_USER } from '../input.ts'
import { fieldLines, listLines } from '../print.ts'
import { UsageProblem } from '../problem.ts'
import type { Send } from '../send.ts'
import { getPages } from '../send.ts'
import { askLine, askNewPassword, isTerminal } from '../terminal.ts'
import type { CliCommand } from './command.ts'
import { defineCommand } from './command.ts'

const columns = ['id', 'email', 'name', 'role', 'disabled', 'removed', 'secondFactor', 'lastSignIn']

const changing = (change: (input: CommandFields) => CommandFields) => ({
  ask: async (input: CommandFields, send: Send) =>
    send('PATCH', `/api/web/users/${await findUser(send, input.user)}`, change(input)),
})

export const peopleRows: Readonly<Record<string, CliCommand>> = {
  'setup': defineCommand({
    usage: 'setup [--email name@example.com] [--name text] [--token]',
    description:
      'create the first owner: asks for a name, an email address and a password (without a terminal, the password ' +
      'is the first line of standard input); --token prints a new one-time token for /api/auth/setup instead',
    options: ['email', 'name'],
    flags: ['token'],
    ask: setUp,
    print: answer => (typeof answer.setupToken === 'string' ? [answer.setupToken] : fieldLines(answer)),
  }),
  'token': defineCommand({
    usage: 'token',
    description: 'create a session token (JWT) for /api/web/*; it is valid for ten minutes and allows everything',
    ask: (_, send) => send.machine('token'),
    print: ({ token }) => [String(token)],
  }),
  'users list': defineCommand({
    usage: 'users list [--limit n] [--after cursor]',
    description: 'list people, newest first',
    options: ['limit', 'after'],
    ask: (query, send) => getPages(send, '/api/web/users', { ...query, sort: '-created' }),
    print: answer => listLines(answer, 'no people yet', columns),
  }),
  'users reset-password': defineCommand({
    unknown: UNKNOWN_USER,
    usage: 'users reset-password <email or usr_…> [--second-factor off]',
    description:
      'set a new password for a person (asks for it, or reads the first line of standard input); ends their sessions',
    positionals: ['user'],
    options: ['second-factor'],
    values: { 'second-factor': ON_OFF },
    prepare: async input => ({ ...input, password: await askNewPassword('New password') }),
    async ask({ user, password, ...input }, send) {
      const keepsSecondFactor = parseSwitch(input['second-factor'], '--second-factor') ?? true
      const id = await findUser(send, user)
      return await send.machine('reset-password', { user: id, password, keepsSecondFactor })
    },
  }),
  'users disable': defineCommand({
    unknown: UNKNOWN_USER,
    usage: 'users disable <email or usr_…>',
    description: 'end the sessions of a person and refuse new ones',
    positionals: ['user'],
    ...changing(() => ({ disabled: true })),
  }),
  'users enable': defineCommand({
    unknown: UNKNOWN_USER,
    usage: 'users enable <email or usr_…>',
    description: 'let a disabled person sign in again',
    positionals: ['user'],
    ...changing(() => ({ disabled: false })),
  }),
  'users email': defineCommand({
    unknown: UNKNOWN_USER,
    usage: 'users email <email or usr_…> <new email>',
    description: 'change the email address that a person signs in with',
    positionals: ['user', 'email'],
    ...changing(({ email }) => ({ email })),
  }),
  'users role': defineCommand({
    unknown: UNKNOWN_USER,
    usage: 'users role <email or usr_…> <owner|admin|support|member>',
    description: 'change the role of a person; ends their sessions',
    positionals: ['user', 'role'],
    values: { role: siteRoles },
    ...changing(({ role }) => ({ role })),
  }),
}

async function setUp({ token, ...given }: CommandFields, send: Send): Promise<CommandFields> {
  if (token === true) return await send.machine('setup-token')
  // This fails if there is an owner already, before the user types anything.
  await send.machine('setup-open')
  if (given.email === undefined && !isTerminal()) {
    throw new UsageProblem(
      'There is no terminal to ask for the email address. Use --email with the password on standard input, or --token.',
    )
  }
  const email = given.email ?? (await askLine('Email'))
  const name = given.name ?? (isTerminal() ? await askLine('Name') : undefined)
  return await send.machine('setup-owner', {
    email,
    ...(name !== '' && { name }),
    password: await askNewPassword('Password'),
  })
}
