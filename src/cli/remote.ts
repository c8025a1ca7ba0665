// Sends requests to a remote gateway in the session of `weir login`. The cookie that renews the session is kept in a
// file that only its owner can read; access tokens live for one command.

import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { Secret } from '../base/secrets/secret.ts'
import type { CommandFields } from './connect.ts'
import { Problem } from './connect.ts'

interface StoredSession {
  readonly url: string
  readonly cookie: Secret
}

interface RemoteResponse {
  readonly status: number
  readonly text: string
  readonly cookie: Secret | undefined
}

const REQUEST_MS_MAX = 60_000

const sessionFile = (): string =>
  join(process.env.XDG_CONFIG_HOME?.trim() || join(homedir(), '.config'), 'weir', 'session.json')

/** Parses the URL of a gateway and drops its path. */
export function parseOrigin(value: unknown): string {
  const text = String(value ?? '')
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isValid = url !== undefined && /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''
  if (!isValid)
    throw new Problem('The URL of the gateway is missing or invalid. Example: --url https://weir.example.com')
  return url.origin
}

export async function signIn(url: string, body: CommandFields): Promise<CommandFields> {
  const response = await send(url, { method: 'POST', path: '/api/auth/sign-in', body: JSON.stringify(body) })
  const answer = parseResponse(response)
  if (response.cookie === undefined) {
    throw new Problem(`${url} did not return a session cookie. Is it a Weir gateway of this version?`)
  }
  saveSession({ url, cookie: response.cookie })
  return answer
}

/** Deletes the stored session, then ends it at the gateway. */
export async function signOut(): Promise<string> {
  const { url, cookie } = loadSession()
  rmSync(sessionFile(), { force: true })
  await send(url, { method: 'POST', path: '/api/auth/sign-out', cookie })
  return url
}

export interface RemoteRequest {
  readonly method: string
  readonly path: string
  readonly body?: string | undefined
}

/** Returns the response body unchanged. */
export async function sendRemoteRequest(ask: RemoteRequest): Promise<string> {
  const { url, cookie } = loadSession()
  const renewed = await send(url, { method: 'POST', path: '/api/auth/refresh', cookie })
  if (renewed.status === 401) throw new Problem(`You are no longer signed in at ${url}. See: weir login`)
  const { accessToken } = parseResponse(renewed)
  if (renewed.cookie !== undefined) saveSession({ url, cookie: renewed.cookie })
  const response = await send(url, { ...ask, token: new Secret(String(accessToken)) })
  if (response.status >= 400) throw new Problem(errorText(response))
  return response.text
}

interface AuthorizedRequest extends RemoteRequest {
  readonly cookie?: Secret
  readonly token?: Secret
}

async function send(url: string, { method, path, body, cookie, token }: AuthorizedRequest): Promise<RemoteResponse> {
  const headers = {
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...(cookie !== undefined && { cookie: `weir_refresh=${cookie.reveal()}`, origin: url }),
    ...(token !== undefined && { authorization: `Bearer ${token.reveal()}` }),
  }
  const signal = AbortSignal.timeout(REQUEST_MS_MAX)
  try {
    // Redirects are refused: the password and the cookie are for this gateway only.
    const response = await fetch(`${url}${path}`, { method, headers, body: body ?? null, redirect: 'error', signal })
    const newCookie = /(?:^|,\s*)weir_refresh=([^;]+)/.exec(response.headers.get('set-cookie') ?? '')?.[1]
    return {
      status: response.status,
      text: await response.text(),
      cookie: newCookie ? new Secret(newCookie) : undefined,
    }
  } catch (fault) {
    throw new Problem(`The request to ${url} failed: ${(fault as Error).message}`)
  }
}

function parseResponse(response: RemoteResponse): CommandFields {
  if (response.status >= 400) throw new Problem(errorText(response))
  try {
    return JSON.parse(response.text) as CommandFields
  } catch {
    throw new Problem('The response is not JSON. The server at this URL is not a Weir gateway.')
  }
}

function errorText({ status, text }: RemoteResponse): string {
  try {
    const { error } = JSON.parse(text) as { error: { message: string; code?: string } }
    return `${status} ${error.code ?? ''}: ${error.message}`
  } catch {
    return `${status}: the server at this URL is not a Weir gateway.`
  }
}

function loadSession(): StoredSession {
  const file = sessionFile()
  if (!existsSync(file)) throw new Problem('You are not signed in at any gateway. See: weir login')
  try {
    const { url, cookie } = JSON.parse(readFileSync(file, 'utf8')) as { url: string; cookie: string }
    return { url: parseOrigin(url), cookie: new Secret(cookie) }
  } catch {
    throw new Problem(`${file} cannot be read. Sign in again: weir login`)
  }
}

/** Writes to another file and renames it, so that an interrupted write cannot destroy the session. */
function saveSession({ url, cookie }: StoredSession): void {
  const file = sessionFile()
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const part = `${file}.${process.pid}.part`
  writeFileSync(part, JSON.stringify({ url, cookie: cookie.reveal() }), { mode: 0o600, flush: true })
  chmodSync(part, 0o600)
  renameSync(part, file)
}
