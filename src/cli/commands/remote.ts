// Commands for a remote gateway: signing in, signing out, and requests to its management interface.

import type { CommandFields } from '../connect.ts'
import { text } from '../input.ts'
import { harmlessLines, jsonText } from '../print.ts'
import { UsageProblem } from '../problem.ts'
import { parseOrigin, sendRemoteRequest, signIn, signOut, warnIfUnencrypted } from '../remote.ts'
import { askCurrentPassword, askLine, isTerminal } from '../terminal.ts'
import type { CliCommand } from './command.ts'
import { defineOwnCommand, printLine } from './command.ts'

const loginUsage = 'login --url https://weir.example.com --email name@example.com [--code 123456]'
const apiUsage =
  'api <GET|POST|PUT|PATCH|DELETE> </api/web/…> [JSON, or - for standard input] [--url https://weir.example.com]'

export const remoteRows: Readonly<Record<string, CliCommand>> = {
  'login': defineOwnCommand(
    {
      usage: loginUsage,
      description:
        'sign in at a local or remote gateway, for weir api; asks for the password (without a terminal, the password ' +
        'is the first line of standard input)',
      options: ['url', 'email', 'code'],
    },
    logIn,
  ),
  'logout': defineOwnCommand({ usage: 'logout', description: 'end the session of weir login' }, logOut),
  'api': defineOwnCommand(
    {
      usage: apiUsage,
      description:
        'send a request to the management interface of the gateway that you are signed in at; prints the response; ' +
        'with a service token in WEIR_TOKEN, of the gateway at --url or WEIR_URL',
      positionals: ['method', 'path', 'body?'],
      options: ['url'],
      values: { method: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] },
    },
    askApi,
  ),
}

async function logIn(input: CommandFields): Promise<void> {
  const given = input.url ?? process.env.WEIR_URL
  if (given === undefined) throw new UsageProblem(`Usage: weir ${loginUsage}`)
  const url = parseOrigin(given)
  warnIfUnencrypted(url)
  if (input.email === undefined && !isTerminal()) throw new UsageProblem(`Usage: weir ${loginUsage}`)
  const email = input.email ?? (await askLine('Email'))
  const password = await askCurrentPassword('Password')
  const code = input.code === undefined ? {} : { code: input.code }
  const { user } = (await signIn(url, { email, password, ...code })) as { user: { email: string; role: string } }
  if (input.json === true) return printLine(jsonText({ url, email: user.email, role: user.role }))
  printLine(`signed in at ${url} as ${harmlessLines(user.email)} (${harmlessLines(user.role)})`)
}

async function logOut({ json }: CommandFields): Promise<void> {
  const url = await signOut()
  printLine(json === true ? jsonText({ url }) : `signed out at ${url}`)
}

/** The response is always JSON, so --json changes nothing. */
async function askApi({ method, path, body: given, url }: CommandFields): Promise<void> {
  if (!text(path).startsWith('/api/web/')) throw new UsageProblem(`Usage: weir ${apiUsage}`)
  const body = given === '-' ? await Bun.stdin.text() : given
  const ask = { method: text(method), path: text(path), body: body === undefined ? undefined : text(body) }
  printLine(harmlessLines(await sendRemoteRequest(ask, url === undefined ? undefined : text(url))))
}
