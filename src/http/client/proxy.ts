// A proxy that the operator configured for requests to upstreams: its address and its credentials.

import { createHash } from 'node:crypto'
import { hintOf } from '../../base/hints.ts'
import { Secret } from '../../base/secrets/secret.ts'
import { ForbiddenAddress, hostOf, InvalidAddress, portOf } from '../address/operator-address.ts'
import { classifyHost } from '../address/public-address.ts'

export class Proxy {
  readonly host: string
  readonly port: number
  /** Distinguishes proxies without revealing a password. */
  readonly digest: string
  /** The Proxy-Authorization line of a head, or an empty text. */
  readonly #authorization: string

  /** `http://name:password@host:port`, or without name and password. */
  static read(written: Secret): Proxy {
    const text = written.reveal().trim()
    const url = /^http:\/\/[^/?#\\]+\/?$/i.test(text) && /^[\x21-\x7e]+$/.test(text) ? URL.parse(text) : null
    if (url === null || url.port === '0') {
      throw new InvalidAddress(hintOf('address_proxy'))
    }
    if (classifyHost(hostOf(url)) === 'never') throw new ForbiddenAddress()
    return new Proxy(url)
  }

  private constructor(url: URL) {
    this.host = hostOf(url)
    this.port = portOf(url)
    this.#authorization = authorizationOf(url)
    this.digest = createHash('sha256').update(url.href).digest('hex')
  }

  /** Removes the credentials of a proxy from a text: the proxy may repeat them. */
  static scrub(written: Secret, text: string): string {
    const url = URL.parse(written.reveal().trim())
    if (url === null || (url.username === '' && url.password === '')) return text
    const pair = credentialsOf(url)
    const secrets = [Buffer.from(pair).toString('base64'), pair, url.password, pair.slice(pair.indexOf(':') + 1)]
    return secrets.reduce((clean, secret) => new Secret(secret).scrub(clean), text)
  }

  /** The CONNECT request for a tunnel to a host. */
  connectRequest(authority: string): string {
    return `CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${this.#authorization}\r\n`
  }

  /** The first lines of a request that the proxy forwards itself. */
  forwardedStart(method: string, url: URL): string {
    const target = `${url.origin}${url.pathname}${url.search}`
    return `${method} ${target} HTTP/1.1\r\nHost: ${url.host}\r\n${this.#authorization}`
  }
}

const credentialsOf = ({ username, password }: Pick<URL, 'username' | 'password'>): string =>
  `${decodeURIComponent(username)}:${decodeURIComponent(password)}`

function authorizationOf({ username, password }: URL): string {
  if (username === '' && password === '') return ''
  try {
    return `Proxy-Authorization: Basic ${Buffer.from(credentialsOf({ username, password })).toString('base64')}\r\n`
  } catch {
    throw new InvalidAddress(hintOf('address_proxy_encoded'))
  }
}
