// Commands for a remote gateway: signing in, signing out, and requests to its management interface.

import { parseArgs } from 'node:util'
import { UsageProblem } from '../connect.ts'
import { harmlessLines, jsonText } from '../print.ts'
import { parseOrigin, sendRemoteRequest, signIn, signOut, warnIfUnencrypted } from '../remote.ts'
import { askCurrentPassword, askLine, isTerminal } from '../terminal.ts'
import type { CliCommand } from './command.ts'
import { printLine } from './command.ts'

const loginUsage = 'login --url https://weir.example.com --email name@example.com [--code 123456]'
const apiUsage =
  'api <GET|POST|PUT|PATCH|DELETE> </api/web/…> [JSON, or - for standard input] [--url https://weir.example.com]'
const jsonOption = { json: { type: 'boolean' } } as const
const METHODS: readonly string[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

export const remoteRows: Readonly<Record<string, CliCommand>> = {
  'login': {
    usage: loginUsage,
    description:
      'sign in at a local or remote gateway, for weir api; asks for the password (without a terminal, the password ' +
      'is the first line of standard input)',
    run: logIn,
  },
  'logout': {
    usage: 'logout',
    description: 'end the session of weir login',
    run: logOut,
  },
  'api': {
    usage: apiUsage,
    description:
      'send a request to the management interface of the gateway that you are signed in at; prints the response; with ' +
      'a service token in WEIR_TOKEN, of the gateway at --url or WEIR_URL',
    run: askApi,
  },
}

async function logIn(args: readonly string[]): Promise<void> {
  const text = { type: 'string' } as const
  const { values } = parseArgs({ args: [...args], options: { url: text, email: text, code: text, ...jsonOption } })
  const given = values.url ?? process.env.WEIR_URL
  if (given === undefined) throw new UsageProblem(`Usage: weir ${loginUsage}`)
  const url = parseOrigin(given)
  warnIfUnencrypted(url)
  if (values.email === undefined && !isTerminal()) throw new UsageProblem(`Usage: weir ${loginUsage}`)
  const email = values.email ?? (await askLine('Email'))
  const password = await askCurrentPassword('Password')
  const code = values.code === undefined ? {} : { code: values.code }
  const { user } = (await signIn(url, { email, password, ...code })) as { user: { email: string; role: string } }
  if (values.json === true) return printLine(jsonText({ url, email: user.email, role: user.role }))
  printLine(`signed in at ${url} as ${harmlessLines(user.email)} (${harmlessLines(user.role)})`)
}

async function logOut(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({ args: [...args], options: jsonOption })
  const url = await signOut()
  printLine(values.json === true ? jsonText({ url }) : `signed out at ${url}`)
}

/** The response is always JSON, so --json changes nothing. */
async function askApi(args: readonly string[]): Promise<void> {
  const options = { url: { type: 'string' }, ...jsonOption } as const
  const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true })
  const [method = '', path = '', given, ...more] = positionals
  const isValid = METHODS.includes(method) && path.startsWith('/api/web/') && more.length === 0
  if (!isValid) throw new UsageProblem(`Usage: weir ${apiUsage}`)
  const body = given === '-' ? await Bun.stdin.text() : given
  printLine(harmlessLines(await sendRemoteRequest({ method, path, body }, values.url)))
}
