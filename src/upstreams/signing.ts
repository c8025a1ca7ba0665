// How a provider wants to see that it is us, one row each. A row is named in a provider file, with what it needs to
// know of the provider behind a colon.

import { readFileSync } from 'node:fs'
import { bounds } from '../base/bounds.ts'
import { Secret } from '../base/secrets/secret.ts'
import type { Send } from '../http/client/request.ts'
import { GoogleTokens, parseServiceAccount } from './google-tokens.ts'
import type { Signable } from './sig-v4.ts'
import { openSigV4, parseAwsCredentials, regionOf } from './sig-v4.ts'

export type { Signable } from './sig-v4.ts'

type Headers = Readonly<Record<string, string>>
type Env = Readonly<Record<string, string | undefined>>

/** The headers that sign a request, besides those that it has. */
export type Sign = (request: Signable) => Headers | Promise<Headers>

/** Ways in which the key itself is sent. */
export const signers = {
  'bearer': key => ({ authorization: `Bearer ${key.reveal()}` }),
  'api-key': key => ({ 'api-key': key.reveal() }),
  'x-api-key': key => ({ 'x-api-key': key.reveal() }),
  'x-goog-api-key': key => ({ 'x-goog-api-key': key.reveal() }),
  'none': () => ({}),
} as const satisfies Record<string, (key: Secret) => Headers>

type Signer = keyof typeof signers

export interface SigningParts {
  readonly env: Env
  /** Of the host that the key was given for: nothing is signed for another. */
  readonly origin: string
  readonly send: Send
  /** By which what must be fetched is fetched. */
  proxy(): Secret | undefined
  /** Milliseconds since 1970. */
  dateMs(): number
  /** A key may be the name of a file of this machine that holds it. */
  readonly readsFiles: boolean
}

interface Way {
  /** Whether a provider file must say more behind a colon. */
  readonly argued: boolean
  /** A key that the vendor's tools would find under other names, for where the provider's own variable has none. */
  found?(env: Env): string | undefined
  /** Undefined for what is no key of this way. */
  open(key: Secret, argument: string, parts: SigningParts): Opened | undefined
}

interface Opened {
  readonly sign: Sign
  /** What else must not be shown when an upstream repeats it. */
  alsoSecret?(): readonly string[]
}

/** Ways in which something else is sent that the key vouches for. */
const ways: Readonly<Record<string, Way>> = {
  'sigv4': {
    argued: true,
    found({ AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret, AWS_SESSION_TOKEN: token }) {
      return id && secret ? [id, secret, ...(token ? [token] : [])].join(':') : undefined
    },
    open(key, service, { env, dateMs }) {
      const credentials = parseAwsCredentials(key.reveal())
      if (credentials === undefined) return undefined
      const byRegion = new Map<string, Sign>()
      const sign: Sign = request => {
        const region = regionOf(request.url) ?? (env.AWS_REGION || env.AWS_DEFAULT_REGION || 'us-east-1')
        let signInRegion = byRegion.get(region)
        if (signInRegion === undefined) {
          signInRegion = openSigV4({ credentials, service, region, dateMs })
          byRegion.set(region, signInRegion)
        }
        return signInRegion(request)
      }
      const { secretAccessKey, sessionToken } = credentials
      return { sign, alsoSecret: () => [secretAccessKey, ...(sessionToken === undefined ? [] : [sessionToken])] }
    },
  },
  'google-token': {
    argued: false,
    found: ({ GOOGLE_APPLICATION_CREDENTIALS: file }) => file,
    open(key, _argument, parts) {
      const text = key.reveal()
      const isOurs = parts.readsFiles
      const account = parseServiceAccount(isOurs ? textOrFile(text) : text, isOurs ? 'file' : 'listed')
      if (account === undefined) return undefined
      const tokens = new GoogleTokens(account, parts)
      const headers = (token: string): Headers => ({ authorization: `Bearer ${token}` })
      const sign: Sign = () => {
        const token = tokens.get()
        return typeof token === 'string' ? headers(token) : token.then(headers)
      }
      return { sign, alsoSecret: () => [account.privateKey, tokens.current] }
    },
  },
}

/** The text itself, or what stands in the file that it names. */
function textOrFile(text: string): string {
  if (text.startsWith('{')) return text
  try {
    return readFileSync(text, 'utf8')
  } catch {
    return ''
  }
}

function readWay(text: string): readonly [way: Way, argument: string] | undefined {
  const [name = '', ...rest] = text.split(':')
  const way = Object.hasOwn(ways, name) ? ways[name] : undefined
  const argument = rest.join(':')
  return way !== undefined && way.argued === (argument !== '') ? [way, argument] : undefined
}

/** Whether the key itself is what is sent. */
function isSigner(text: string): text is Signer {
  return Object.hasOwn(signers, text)
}

export function isWayToSign(text: string): boolean {
  return isSigner(text) || readWay(text) !== undefined
}

/** A key under the names that the vendor's own tools read. */
export function foundKey(way: string, env: Env): string | undefined {
  return readWay(way)?.[0].found?.(env)
}

/** It becomes a header, or is JSON of which a part does. */
export function isSendable(key: Secret): boolean {
  const text = key.reveal()
  const isPlain = text.startsWith('{') ? !text.includes('\0') : /^[\x21-\x7e]+$/.test(text)
  return isPlain && text.length <= bounds.credentialCharsMax
}

/** A key with the ways that it signs in for one host, opened once each. Undefined for what is no key of them. */
export function openKey(
  key: Secret,
  waysByDialect: Readonly<Record<string, string>>,
  parts: SigningParts,
): OpenedKey | undefined {
  const opened = new Map<string, Opened>()
  for (const way of new Set(Object.values(waysByDialect))) {
    const one = isSigner(way) ? { sign: () => signers[way](key) } : openWay(way, key, parts)
    if (one === undefined) return undefined
    opened.set(way, one)
  }
  const others = [...opened.values()].flatMap(({ alsoSecret }) => alsoSecret ?? [])
  const byDialect = (signOf: (way: string) => Sign): OpenedKey['signs'] =>
    Object.fromEntries(Object.entries(waysByDialect).map(([dialect, way]) => [dialect, signOf(way)]))
  const bound = (way: string): Sign => boundTo(parts.origin, opened.get(way)!.sign)
  return {
    key: others.length === 0 ? key : new SecretWithOthers(key, () => others.flatMap(other => other())),
    signs: byDialect(bound),
    masked: byDialect(way => () => maskedSignature(way)),
  }
}

/** Behind an origin a slash ends the name of the host, whatever comes then. */
function boundTo(origin: string, sign: Sign): Sign {
  const start = `${origin}/`
  return request => {
    if (!request.url.startsWith(start)) throw new Error('a key signs for no host but its own')
    return sign(request)
  }
}

function openWay(text: string, key: Secret, parts: SigningParts): Opened | undefined {
  const [way, argument] = readWay(text) ?? []
  return way?.open(key, argument!, parts)
}

const OTHERS_KNOWN_MAX = 8

/** Also takes out of a text what was made of the secret, and was sent in its place. */
class SecretWithOthers extends Secret {
  readonly #others: () => readonly string[]
  readonly #known = new Map<string, Secret>()

  constructor(secret: Secret, others: () => readonly string[]) {
    super(secret.reveal())
    this.#others = others
  }

  override scrub(text: string): string {
    return this.#others().reduce((clean, other) => this.#secretOf(other).scrub(clean), super.scrub(text))
  }

  /** Each is prepared once: a private key has many parts. */
  #secretOf(text: string): Secret {
    const known = this.#known.get(text)
    if (known !== undefined) return known
    if (this.#known.size >= OTHERS_KNOWN_MAX) this.#known.clear() // tokens that have had their time
    const secret = new Secret(text)
    this.#known.set(text, secret)
    return secret
  }
}

export interface OpenedKey {
  readonly key: Secret
  /** How each dialect is signed. */
  readonly signs: Readonly<Record<string, Sign>>
  /** The same by its looks, for whoever may see what would be sent. */
  readonly masked: Readonly<Record<string, Sign>>
}

function maskedSignature(way: string): Headers {
  return isSigner(way) ? signers[way](new Secret('[secret]')) : { authorization: '[secret]' }
}

/** What `signRequest` needs of a channel. */
export interface SigningChannel {
  readonly id: string
  readonly signs: Readonly<Record<string, Sign>>
}

/**
 * The headers to add to a request that is otherwise ready: nothing of it may change afterwards. A promise only where
 * something must be fetched first; it rejects when that fails.
 */
export function signRequest(channel: SigningChannel, dialect: string, request: Signable): Headers | Promise<Headers> {
  if (!Object.hasOwn(channel.signs, dialect)) throw new Error(`${channel.id} does not speak ${dialect}`)
  return channel.signs[dialect]!(request)
}
