// Sends requests to a remote gateway: with the token in WEIR_TOKEN, or in the session of `weir login`. The cookie that
// renews the session is kept in a file that only its owner can read; access tokens live for one command.

import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { Secret } from '../base/secrets/secret.ts'
import type { ControlHandler } from '../http/server/control-socket.ts'
import type { CommandFields, ConnectOptions } from './connect.ts'
import { Problem, UsageProblem } from './problem.ts'

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
    throw new Problem(
      'The URL of the gateway (--url or WEIR_URL) is missing or invalid. Example: https://weir.example.com',
    )
  return url.origin
}

/** A gateway elsewhere, and the token for it. */
interface RemoteGateway {
  readonly url: string
  readonly token: Secret
}

/** Whether commands go to the gateway of WEIR_TOKEN and not to that of this machine. */
export const isRemote = (): boolean => Boolean(process.env.WEIR_TOKEN?.trim())

export const remoteUrlMissing = (): Problem =>
  new Problem('WEIR_TOKEN is set. Set WEIR_URL, too: the URL of the gateway, such as https://weir.example.com')

/** The gateway of WEIR_TOKEN; undefined without this variable. `url`: where it is, if the command says that. */
function remoteGateway(url: string | undefined): RemoteGateway | undefined {
  const token = process.env.WEIR_TOKEN?.trim()
  if (!token) return undefined
  const given = url ?? process.env.WEIR_URL
  if (!given) throw remoteUrlMissing()
  const gateway = { url: parseOrigin(given), token: new Secret(token) }
  warnIfUnencrypted(gateway.url)
  return gateway
}

/** Requests to this URL may cross a network without encryption. */
export function warnIfUnencrypted(url: string): void {
  const { protocol, hostname } = new URL(url)
  if (protocol !== 'http:' || /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname)) return
  process.stderr.write(`weir: warning: ${url} is not encrypted: others can read the credential and all requests\n`)
}

/** Runs a command with a function that sends requests: to the gateway of WEIR_TOKEN, or to the one of this machine. */
export async function withGateway<T>(
  options: ConnectOptions,
  run: (request: ControlHandler) => Promise<T>,
): Promise<T> {
  const gateway = remoteGateway(undefined)
  if (gateway !== undefined) return await run(buildRemoteHandler(gateway))
  // A missing secret must not turn a change of the remote gateway into one of this machine.
  if (process.env.WEIR_URL) throw new Problem('WEIR_URL is set, but WEIR_TOKEN is missing or empty.')
  // Loaded here, because it needs the configuration and the store, and many commands need neither.
  const { withConnection } = await import('./connect.ts')
  return await withConnection(options, run)
}

const machineOnly = (): Problem =>
  new Problem('This command works only on the machine of the gateway. Run it there, without WEIR_TOKEN and WEIR_URL.')

/** For commands that change data of this machine: they must not run where somebody means a gateway elsewhere. */
export function refuseRemote(): void {
  if (isRemote() || process.env.WEIR_URL?.trim()) throw machineOnly()
}

const MANAGEMENT = '/api/web/'

function buildRemoteHandler({ url, token }: RemoteGateway): ControlHandler {
  return async ({ method, path, query = {}, body }) => {
    if (!path.startsWith(MANAGEMENT)) throw machineOnly()
    // Ids of channels contain characters that have a meaning in a URL.
    const encoded = path.split('/').map(encodeURIComponent).join('/')
    const search = new URLSearchParams(query).toString()
    const target = search === '' ? encoded : `${encoded}?${search}`
    const text = method === 'GET' || method === 'DELETE' ? undefined : JSON.stringify(body ?? {})
    const response = await request(url, { method, path: target, body: text, token })
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
    if (response.status >= 400 && !isJson) throw new Problem(errorText({ status: response.status, text: '' }))
    return response
  }
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

/** Returns the response body unchanged. `at`: the URL of the gateway; only needed with WEIR_TOKEN. */
export async function sendRemoteRequest(ask: RemoteRequest, at: string | undefined): Promise<string> {
  if (ask.method === 'GET' && ask.body !== undefined) throw new UsageProblem('GET takes no body: leave the JSON out.')
  const gateway = remoteGateway(at)
  const response =
    gateway === undefined ? await sendInSession(ask, at) : await send(gateway.url, { ...ask, token: gateway.token })
  if (response.status === 415 && ask.body === undefined) {
    throw new UsageProblem(`The body is missing: give JSON after ${ask.path}, or - for standard input.`)
  }
  if (response.status >= 400) throw new Problem(errorText(response))
  return response.text
}

async function sendInSession(ask: RemoteRequest, at: string | undefined): Promise<RemoteResponse> {
  const { url, cookie } = loadSession()
  if (at !== undefined && parseOrigin(at) !== url) {
    throw new Problem(`You are signed in at ${url}. For another gateway, set WEIR_TOKEN, or sign in there: weir login`)
  }
  const renewed = await send(url, { method: 'POST', path: '/api/auth/refresh', cookie })
  if (renewed.status === 401) throw new Problem(`You are no longer signed in at ${url}. See: weir login`)
  const { accessToken } = parseResponse(renewed)
  if (renewed.cookie !== undefined) saveSession({ url, cookie: renewed.cookie })
  return await send(url, { ...ask, token: new Secret(String(accessToken)) })
}

interface AuthorizedRequest extends RemoteRequest {
  readonly cookie?: Secret
  readonly token?: Secret
}

async function send(url: string, ask: AuthorizedRequest): Promise<RemoteResponse> {
  const response = await request(url, ask)
  const newCookie = /(?:^|,\s*)weir_refresh=([^;]+)/.exec(response.headers.get('set-cookie') ?? '')?.[1]
  const text = await response.text().catch(fault => {
    throw requestFailed(url, fault)
  })
  return { status: response.status, text, cookie: newCookie ? new Secret(newCookie) : undefined }
}

function requestFailed(url: string, fault: unknown): Problem {
  const { message } = fault as Error
  if (message.startsWith('ECONNREFUSED')) {
    return new Problem(`No gateway listens at ${url}. Start it, or correct the URL (--url or WEIR_URL).`)
  }
  if (message.startsWith('UnexpectedRedirect')) {
    return new Problem(
      `The server at ${url} redirects to another URL, perhaps with https. Give the URL of the gateway itself.`,
    )
  }
  return new Problem(`The request to ${url} failed: ${message}`)
}

/** Resolves when the head of the response has arrived; an export may take long after that. */
async function request(url: string, { method, path, body, cookie, token }: AuthorizedRequest): Promise<Response> {
  const headers = {
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...(cookie !== undefined && { cookie: `weir_refresh=${cookie.reveal()}`, origin: url }),
    ...(token !== undefined && { authorization: `Bearer ${token.reveal()}` }),
  }
  const abort = new AbortController()
  const timer = setTimeout(() => abort.abort(new Error('it took too long')), REQUEST_MS_MAX)
  try {
    // Redirects are refused: the password, the cookie and the token are for this gateway only.
    const options = { method, headers, body: body ?? null, redirect: 'error', signal: abort.signal } as const
    return await fetch(`${url}${path}`, options)
  } catch (fault) {
    throw requestFailed(url, fault)
  } finally {
    clearTimeout(timer)
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

function errorText({ status, text }: Pick<RemoteResponse, 'status' | 'text'>): string {
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
