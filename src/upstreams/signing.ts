// The methods by which requests are signed, one row each. A provider file names the method of each dialect; an argument
// follows a colon.

import { readFileSync } from 'node:fs'
import { bounds } from '../base/bounds.ts'
import { Secret } from '../base/secrets/secret.ts'
import type { SendRequest } from '../http/client/request.ts'
import { GoogleTokens, parseServiceAccount } from './google-tokens.ts'
import type { Signable } from './sig-v4.ts'
import { openSigV4, parseAwsCredentials, regionOf } from './sig-v4.ts'

export type { Signable } from './sig-v4.ts'

type Headers = Readonly<Record<string, string>>
type Env = Readonly<Record<string, string | undefined>>

/** Returns the headers that sign a request. */
export type Sign = (request: Signable) => Headers | Promise<Headers>

/** Methods that send the key itself. */
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
  /** The origin that the key is for. Requests to other origins are not signed. */
  readonly origin: string
  readonly send: SendRequest
  /** The proxy for requests that fetch tokens. */
  proxy(): Secret | undefined
  /** Milliseconds since 1970. */
  dateMs(): number
  /** Whether a key may be the path of a local file that contains it. */
  readonly readsFiles: boolean
}

interface SigningMethod {
  /** Whether the method needs an argument. */
  readonly hasArgument: boolean
  /** Finds the key in the variables of the vendor's own tools, when the provider's own variable is not set. */
  found?(env: Env): string | undefined
  /** Undefined when the key does not have the format of this method. */
  open(key: Secret, argument: string, parts: SigningParts): OpenedMethod | undefined
}

interface OpenedMethod {
  readonly sign: Sign
  /** Other secrets, such as tokens, that must be removed from texts of the upstream. */
  alsoSecret?(): readonly string[]
}

/** Methods that send something derived from the key: a signature or a token. */
const methods: Readonly<Record<string, SigningMethod>> = {
  'sigv4': {
    hasArgument: true,
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
    hasArgument: false,
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

/** The text itself, or the content of the file that it names. */
function textOrFile(text: string): string {
  if (text.startsWith('{')) return text
  try {
    return readFileSync(text, 'utf8')
  } catch {
    return ''
  }
}

function readMethod(text: string): readonly [method: SigningMethod, argument: string] | undefined {
  const [name = '', ...rest] = text.split(':')
  const method = Object.hasOwn(methods, name) ? methods[name] : undefined
  const argument = rest.join(':')
  return method !== undefined && method.hasArgument === (argument !== '') ? [method, argument] : undefined
}

/** Whether the method sends the key itself. */
function isSigner(text: string): text is Signer {
  return Object.hasOwn(signers, text)
}

export function isSigningMethod(text: string): boolean {
  return isSigner(text) || readMethod(text) !== undefined
}

/** The key in the variables that the vendor's own tools read. */
export function findVendorKey(method: string, env: Env): string | undefined {
  return readMethod(method)?.[0].found?.(env)
}

const VISIBLE_ASCII = /^[\x21-\x7e]+$/
/** Not part of a key, but of the notation of the file that it was copied from. */
const QUOTES = /^["'`]|["'`]$/

/** Whether a key can be sent in a header, or is JSON that contains such a part. */
export function isSendable(key: Secret): boolean {
  const text = key.reveal()
  const isPlain = text.startsWith('{') ? !text.includes('\0') : VISIBLE_ASCII.test(text) && !QUOTES.test(text)
  return isPlain && text.length <= bounds.credentialCharsMax
}

/** Whether one of the methods sends the key itself. */
export const sendsKey = (methodsByDialect: Readonly<Record<string, string>>): boolean =>
  Object.values(methodsByDialect).some(name => name !== 'none' && isSigner(name))

/** Opens a key for the signing methods of one origin. Undefined when the key does not fit one of the methods. */
export function openKey(
  key: Secret,
  methodsByDialect: Readonly<Record<string, string>>,
  parts: SigningParts,
): OpenedKey | undefined {
  const opened = new Map<string, OpenedMethod>()
  for (const name of new Set(Object.values(methodsByDialect))) {
    const method = isSigner(name) ? { sign: () => signers[name](key) } : openMethod(name, key, parts)
    if (method === undefined) return undefined
    opened.set(name, method)
  }
  const others = [...opened.values()].flatMap(({ alsoSecret }) => alsoSecret ?? [])
  const byDialect = (signOf: (method: string) => Sign): OpenedKey['signs'] =>
    Object.fromEntries(Object.entries(methodsByDialect).map(([dialect, method]) => [dialect, signOf(method)]))
  const bound = (method: string): Sign => bindToOrigin(parts.origin, opened.get(method)!.sign)
  return {
    key: others.length === 0 ? key : new SecretWithDerived(key, () => others.flatMap(list => list())),
    signs: byDialect(bound),
    maskedSigns: byDialect(method => () => maskedSignature(method)),
  }
}

/** Refuses URLs of other origins. The slash after the origin makes sure that the host name ends there. */
function bindToOrigin(origin: string, sign: Sign): Sign {
  const start = `${origin}/`
  return request => {
    if (!request.url.startsWith(start)) throw new Error('a key must not sign requests to another origin')
    return sign(request)
  }
}

function openMethod(text: string, key: Secret, parts: SigningParts): OpenedMethod | undefined {
  const [method, argument] = readMethod(text) ?? []
  return method?.open(key, argument!, parts)
}

const SECRETS_CACHED_MAX = 8

/** A secret that also scrubs the secrets that were derived from it, such as tokens. */
class SecretWithDerived extends Secret {
  readonly #derived: () => readonly string[]
  readonly #cached = new Map<string, Secret>()

  constructor(secret: Secret, derived: () => readonly string[]) {
    super(secret.reveal())
    this.#derived = derived
  }

  override scrub(text: string): string {
    return this.#derived().reduce((clean, secret) => this.#secretOf(secret).scrub(clean), super.scrub(text))
  }

  /** Caches the Secret objects, because preparing a long private key is expensive. */
  #secretOf(text: string): Secret {
    const known = this.#cached.get(text)
    if (known !== undefined) return known
    if (this.#cached.size >= SECRETS_CACHED_MAX) this.#cached.clear() // most of them are expired tokens
    const secret = new Secret(text)
    this.#cached.set(text, secret)
    return secret
  }
}

export interface OpenedKey {
  readonly key: Secret
  /** The signing function of each dialect. */
  readonly signs: Readonly<Record<string, Sign>>
  /** The same with masked signatures, for people who may see what would be sent. */
  readonly maskedSigns: Readonly<Record<string, Sign>>
}

function maskedSignature(method: string): Headers {
  return isSigner(method) ? signers[method](new Secret('[secret]')) : { authorization: '[secret]' }
}

/** The part of a channel that signRequest needs. */
export interface SigningChannel {
  readonly id: string
  readonly signs: Readonly<Record<string, Sign>>
}

/**
 * The headers to add to a request that is otherwise finished: nothing of it may change afterwards. Returns a promise only
 * if something must be fetched first; it rejects when that fails.
 */
export function signRequest(channel: SigningChannel, dialect: string, request: Signable): Headers | Promise<Headers> {
  if (!Object.hasOwn(channel.signs, dialect)) throw new Error(`${channel.id} does not speak ${dialect}`)
  return channel.signs[dialect]!(request)
}
