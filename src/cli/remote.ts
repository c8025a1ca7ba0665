// A gateway elsewhere, as somebody who signed in there: what is kept of that between two commands, and how it is asked.
// Kept is the cookie that renews the session, in a file of its owner's alone; tokens live for one command.

import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { Secret } from '../base/secrets/secret.ts'
import type { Fields } from './connect.ts'
import { Problem } from './connect.ts'

interface Kept {
  readonly url: string
  readonly cookie: Secret
}

interface Said {
  readonly status: number
  readonly text: string
  readonly cookie: Secret | undefined
}

const ASK_MS = 60_000

const sessionFile = (): string =>
  join(process.env.XDG_CONFIG_HOME?.trim() || join(homedir(), '.config'), 'weir', 'session.json')

/** An address of ours, without anything behind the host. */
export function originOf(given: unknown): string {
  const text = String(given ?? '')
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isOne = url !== undefined && /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''
  if (!isOne) throw new Problem('Say where the gateway is: --url https://weir.example.com')
  return url.origin
}

export async function signIn(url: string, body: Fields): Promise<Fields> {
  const said = await send(url, { method: 'POST', path: '/api/auth/sign-in', body: JSON.stringify(body) })
  const answer = parsed(said)
  if (said.cookie === undefined) throw new Problem(`${url} did not sign you in as a gateway of this version does.`)
  keep({ url, cookie: said.cookie })
  return answer
}

/** Ends the session there, as far as it can be reached, and forgets it here. */
export async function signOut(): Promise<string> {
  const { url, cookie } = kept()
  rmSync(sessionFile(), { force: true })
  await send(url, { method: 'POST', path: '/api/auth/sign-out', cookie })
  return url
}

export interface RemoteAsk {
  readonly method: string
  readonly path: string
  readonly body?: string | undefined
}

/** The text of the answer, as it came. */
export async function askRemote(ask: RemoteAsk): Promise<string> {
  const { url, cookie } = kept()
  const renewed = await send(url, { method: 'POST', path: '/api/auth/refresh', cookie })
  if (renewed.status === 401) throw new Problem(`You are no longer signed in at ${url}. See: weir login`)
  const { accessToken } = parsed(renewed)
  if (renewed.cookie !== undefined) keep({ url, cookie: renewed.cookie })
  const said = await send(url, { ...ask, token: new Secret(String(accessToken)) })
  if (said.status >= 400) throw new Problem(problemOf(said))
  return said.text
}

interface Sent extends RemoteAsk {
  readonly cookie?: Secret
  readonly token?: Secret
}

async function send(url: string, { method, path, body, cookie, token }: Sent): Promise<Said> {
  const headers = {
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...(cookie !== undefined && { cookie: `weir_refresh=${cookie.reveal()}`, origin: url }),
    ...(token !== undefined && { authorization: `Bearer ${token.reveal()}` }),
  }
  const signal = AbortSignal.timeout(ASK_MS)
  try {
    // No redirect is followed: what is sent is for this gateway alone.
    const response = await fetch(`${url}${path}`, { method, headers, body: body ?? null, redirect: 'error', signal })
    const set = /(?:^|,\s*)weir_refresh=([^;]+)/.exec(response.headers.get('set-cookie') ?? '')?.[1]
    return { status: response.status, text: await response.text(), cookie: set ? new Secret(set) : undefined }
  } catch (fault) {
    throw new Problem(`${url} cannot be asked: ${(fault as Error).message}`)
  }
}

function parsed(said: Said): Fields {
  if (said.status >= 400) throw new Problem(problemOf(said))
  try {
    return JSON.parse(said.text) as Fields
  } catch {
    throw new Problem('What answers there is no gateway of ours.')
  }
}

function problemOf({ status, text }: Said): string {
  try {
    const { error } = JSON.parse(text) as { error: { message: string; code?: string } }
    return `${status} ${error.code ?? ''}: ${error.message}`
  } catch {
    return `${status}: what answers there is no gateway of ours.`
  }
}

function kept(): Kept {
  const file = sessionFile()
  if (!existsSync(file)) throw new Problem('You are signed in nowhere. See: weir login')
  try {
    const { url, cookie } = JSON.parse(readFileSync(file, 'utf8')) as { url: string; cookie: string }
    return { url: originOf(url), cookie: new Secret(cookie) }
  } catch {
    throw new Problem(`${file} cannot be read. Sign in again: weir login`)
  }
}

/** Whole or not at all: half a cookie would sign its owner out. */
function keep({ url, cookie }: Kept): void {
  const file = sessionFile()
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const part = `${file}.${process.pid}.part`
  writeFileSync(part, JSON.stringify({ url, cookie: cookie.reveal() }), { mode: 0o600, flush: true })
  chmodSync(part, 0o600)
  renameSync(part, file)
}
