// Access tokens of Google for a service account: signed by its key, fetched when one is needed, kept until shortly
// before they end. However many calls need one at once, one is fetched.

import { bounds } from '../base/bounds.ts'
import type { Secret } from '../base/secrets/secret.ts'
import { Stop } from '../base/stop.ts'
import type { Trust } from '../http/address/operator-address.ts'
import { readAddress, roadTo } from '../http/address/operator-address.ts'
import { noPrivateHosts } from '../http/address/private-hosts.ts'
import type { Road } from '../http/client/network-path.ts'
import type { Send } from '../http/client/request.ts'

export interface ServiceAccount {
  readonly email: string
  readonly privateKey: string
  readonly privateKeyId?: string
  readonly tokenUri: string
  /** To where tokens are fetched, which is all that sees what the key has signed. */
  readonly road: Road
}

export interface TokenParts {
  readonly send: Send
  /** By which the endpoint is reached; one in our own network is reached without. */
  proxy(): Secret | undefined
  /** Milliseconds since 1970. */
  dateMs(): number
}

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform'
const GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const TOKEN_URI = 'https://oauth2.googleapis.com/token'
const ASSERTION_SECONDS = 600
const FETCH_MS_MAX = 10_000
/** A token must outlive the call that it is sent with. */
const SPARE_MS = 300_000
/** What an endpoint says of how long a token lives is not trusted beyond this. */
const LIFE_SECONDS_MAX = 3_600

/** The file that Google gives for a service account; undefined for any other. `trust`: of who has it from there. */
export function parseServiceAccount(text: string, trust: Trust = 'file'): ServiceAccount | undefined {
  const json = objectIn(text)
  const { client_email: email, private_key: privateKey, private_key_id: id, token_uri: uri = TOKEN_URI } = json ?? {}
  if (typeof email !== 'string' || typeof privateKey !== 'string') return undefined
  if (!privateKey.includes('PRIVATE KEY')) return undefined
  const road = typeof uri === 'string' ? roadOf(uri, trust) : undefined
  if (road === undefined) return undefined
  return { email, privateKey, tokenUri: uri as string, road, ...(typeof id === 'string' && { privateKeyId: id }) }
}

function roadOf(uri: string, trust: Trust): Road | undefined {
  try {
    return roadTo(readAddress(uri), { trust, privateHosts: noPrivateHosts })
  } catch {
    return undefined
  }
}

export class GoogleTokens {
  readonly #account: ServiceAccount
  readonly #parts: TokenParts
  #token = ''
  #freshUntilMs = 0
  #fetching: Promise<string> | undefined

  constructor(account: ServiceAccount, parts: TokenParts) {
    this.#account = account
    this.#parts = parts
  }

  /** The token in hand, or empty: what must not be shown to anybody. */
  get current(): string {
    return this.#token
  }

  /** A token that is good for a while. Rejects when none can be had; the next call tries again. */
  get(): string | Promise<string> {
    if (this.#parts.dateMs() < this.#freshUntilMs) return this.#token
    this.#fetching ??= this.#fetch().finally(() => (this.#fetching = undefined))
    return this.#fetching
  }

  async #fetch(): Promise<string> {
    const sinceMs = this.#parts.dateMs()
    const assertion = await this.#assertion(Math.floor(sinceMs / 1000))
    const answer = await this.#ask(new URLSearchParams({ grant_type: GRANT, assertion }).toString())
    const { access_token: token, expires_in: seconds } = objectIn(answer) ?? {}
    // It becomes a header.
    if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token)) throw new Error('no token in its answer')
    const lifeSeconds = typeof seconds === 'number' && seconds > 0 ? Math.min(seconds, LIFE_SECONDS_MAX) : 0
    this.#token = token
    this.#freshUntilMs = sinceMs + lifeSeconds * 1000 - SPARE_MS
    return token
  }

  async #assertion(nowSeconds: number): Promise<string> {
    const { email, privateKey, privateKeyId, tokenUri } = this.#account
    const { importPKCS8, SignJWT } = await import('jose')
    return await new SignJWT({ scope: SCOPE })
      .setProtectedHeader({ alg: 'RS256', typ: 'JWT', ...(privateKeyId !== undefined && { kid: privateKeyId }) })
      .setIssuer(email)
      .setSubject(email)
      .setAudience(tokenUri)
      .setIssuedAt(nowSeconds)
      .setExpirationTime(nowSeconds + ASSERTION_SECONDS)
      .sign(await importPKCS8(privateKey, 'RS256'))
  }

  async #ask(form: string): Promise<string> {
    const stop = new Stop<Error>()
    const timer = setTimeout(() => stop.stop(new Error('the token endpoint is too slow')), FETCH_MS_MAX)
    try {
      const headers = { 'content-type': 'application/x-www-form-urlencoded', 'accept': 'application/json' }
      const { tokenUri: url, road } = this.#account
      const proxy = road.permitted ? undefined : this.#parts.proxy()
      const way = proxy === undefined ? road : { ...road, proxy }
      const request = { url, road: way, headers, body: Buffer.from(form) }
      const asked = this.#parts.send(request, stop).then(async incoming => {
        const body = await incoming.readWhole(bounds.errorBodyBytesMax)
        // What it says of a failure may hold what we sent, so only the number is told.
        if (incoming.status !== 200) throw new Error(`the token endpoint answered with status ${incoming.status}`)
        return body?.toString('utf8') ?? ''
      })
      return await stop.during(asked)
    } finally {
      clearTimeout(timer)
    }
  }
}

function objectIn(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const json: unknown = JSON.parse(text)
    return typeof json === 'object' && json !== null ? (json as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
