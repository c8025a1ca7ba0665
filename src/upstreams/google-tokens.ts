// Fetches access tokens of Google for a service account. A token is fetched when a call needs one and cached until shortly
// before it expires. Calls that need a token at the same time share one fetch.

import { bounds } from '../base/bounds.ts'
import type { Secret } from '../base/secrets/secret.ts'
import { Stop } from '../base/stop.ts'
import type { AddressTrust } from '../http/address/operator-address.ts'
import { buildNetworkPath, parseOperatorAddress } from '../http/address/operator-address.ts'
import { noPrivateHosts } from '../http/address/private-hosts.ts'
import type { NetworkPath } from '../http/client/network-path.ts'
import type { SendRequest } from '../http/client/request.ts'

export interface ServiceAccount {
  readonly email: string
  readonly privateKey: string
  readonly privateKeyId?: string
  readonly tokenUri: string
  /** The network path to the token endpoint. Assertions signed with the key are sent nowhere else. */
  readonly networkPath: NetworkPath
}

export interface TokenParts {
  readonly send: SendRequest
  /** The proxy to the token endpoint. Endpoints in the own network are reached without a proxy. */
  proxy(): Secret | undefined
  /** Milliseconds since 1970. */
  dateMs(): number
}

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform'
const GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const TOKEN_URI = 'https://oauth2.googleapis.com/token'
const ASSERTION_SECONDS = 600
const FETCH_MS_MAX = 10_000
/** A token is renewed this long before it expires, because it must outlive the call that uses it. */
const RENEW_BEFORE_MS = 300_000
/** The longest lifetime of a token that is accepted from an endpoint. */
const LIFETIME_SECONDS_MAX = 3_600

/** Parses the JSON key file of a service account; undefined if it is not one. `trust`: how far its source is trusted. */
export function parseServiceAccount(text: string, trust: AddressTrust = 'file'): ServiceAccount | undefined {
  const json = parseObject(text)
  const { client_email: email, private_key: privateKey, private_key_id: id, token_uri: uri = TOKEN_URI } = json ?? {}
  if (typeof email !== 'string' || typeof privateKey !== 'string') return undefined
  if (!privateKey.includes('PRIVATE KEY')) return undefined
  const road = typeof uri === 'string' ? pathTo(uri, trust) : undefined
  if (road === undefined) return undefined
  return {
    email,
    privateKey,
    tokenUri: uri as string,
    networkPath: road,
    ...(typeof id === 'string' && { privateKeyId: id }),
  }
}

function pathTo(uri: string, trust: AddressTrust): NetworkPath | undefined {
  try {
    return buildNetworkPath(parseOperatorAddress(uri), { trust, privateHosts: noPrivateHosts })
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

  /** The current token, or empty. It is a secret. */
  get current(): string {
    return this.#token
  }

  /** A token that is valid for a while. Rejects if none can be fetched; the next call tries again. */
  get(): string | Promise<string> {
    if (this.#parts.dateMs() < this.#freshUntilMs) return this.#token
    this.#fetching ??= this.#fetch().finally(() => (this.#fetching = undefined))
    return this.#fetching
  }

  async #fetch(): Promise<string> {
    const startedMs = this.#parts.dateMs()
    const assertion = await this.#signAssertion(Math.floor(startedMs / 1000))
    const answer = await this.#post(new URLSearchParams({ grant_type: GRANT, assertion }).toString())
    const { access_token: token, expires_in: seconds } = parseObject(answer) ?? {}
    // The token becomes a header.
    if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token))
      throw new Error('the answer of the token endpoint has no valid token')
    const lifetimeSeconds = typeof seconds === 'number' && seconds > 0 ? Math.min(seconds, LIFETIME_SECONDS_MAX) : 0
    this.#token = token
    this.#freshUntilMs = startedMs + lifetimeSeconds * 1000 - RENEW_BEFORE_MS
    return token
  }

  async #signAssertion(nowSeconds: number): Promise<string> {
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

  async #post(form: string): Promise<string> {
    const stop = new Stop<Error>()
    const timer = setTimeout(() => stop.stop(new Error('the token endpoint is too slow')), FETCH_MS_MAX)
    try {
      const headers = { 'content-type': 'application/x-www-form-urlencoded', 'accept': 'application/json' }
      const { tokenUri: url, networkPath } = this.#account
      const proxy = networkPath.permitted ? undefined : this.#parts.proxy()
      const request = {
        url,
        networkPath: proxy === undefined ? networkPath : { ...networkPath, proxy },
        headers,
        body: Buffer.from(form),
      }
      const response = this.#parts.send(request, stop).then(async incoming => {
        const body = await incoming.readWhole(bounds.errorBodyBytesMax)
        // The body of an error may repeat the assertion, so the error names the status only.
        if (incoming.status !== 200) throw new Error(`the token endpoint answered with status ${incoming.status}`)
        return body?.toString('utf8') ?? ''
      })
      return await stop.race(response)
    } finally {
      clearTimeout(timer)
    }
  }
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const json: unknown = JSON.parse(text)
    return typeof json === 'object' && json !== null ? (json as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
