// Signs requests with AWS Signature Version 4, for services that escape paths twice, which are all services except S3.
// The signing key is derived once a day.

import { createHash, createHmac } from 'node:crypto'

export interface AwsCredentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
}

export interface SigV4Parts {
  readonly credentials: AwsCredentials
  readonly service: string
  readonly region: string
  /** Milliseconds since 1970. */
  dateMs(): number
}

/** A request that is ready to be signed. */
export interface Signable {
  /** POST by default. */
  readonly method?: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

const ALGORITHM = 'AWS4-HMAC-SHA256'

const sha256 = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex')
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest()

/** Parses `ACCESS_KEY_ID:SECRET` or `ACCESS_KEY_ID:SECRET:SESSION_TOKEN`. */
export function parseAwsCredentials(text: string): AwsCredentials | undefined {
  const [, accessKeyId, secretAccessKey, sessionToken] = /^([\w]+):([^\s:]+)(?::([^\s:]+))?$/.exec(text) ?? []
  if (accessKeyId === undefined || secretAccessKey === undefined) return undefined
  return { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) }
}

/** The region in an AWS host name, such as `us-east-1` in `service.us-east-1.amazonaws.com`. */
export function regionOf(url: string): string | undefined {
  return /\.([a-z]{2,}(?:-[a-z]+)+-\d+)\.amazonaws\.com(?:\.cn)?$/.exec(new URL(url).hostname)?.[1]
}

/** Returns a function that makes the signature headers of a request. Of its own headers only content-type is signed. */
export function openSigV4(parts: SigV4Parts): (request: Signable) => Record<string, string> {
  const { accessKeyId, secretAccessKey, sessionToken } = parts.credentials
  let derived: { readonly day: string; readonly key: Buffer } | undefined
  function signingKey(day: string): Buffer {
    if (derived?.day !== day) {
      const scope = [parts.region, parts.service, 'aws4_request']
      derived = { day, key: scope.reduce(hmac, hmac(`AWS4${secretAccessKey}`, day)) }
    }
    return derived.key
  }
  return ({ method = 'POST', url, headers, body }) => {
    const target = new URL(url)
    const timestamp = new Date(parts.dateMs()).toISOString().replace(/[-:]|\.\d+/g, '')
    const day = timestamp.slice(0, 8)
    const hash = sha256(body)
    const added = {
      'x-amz-date': timestamp,
      'x-amz-content-sha256': hash,
      ...(sessionToken !== undefined && { 'x-amz-security-token': sessionToken }),
    }
    const signed: readonly (readonly [string, string])[] = Object.entries({
      ...('content-type' in headers && { 'content-type': headers['content-type']! }),
      host: target.host,
      ...added,
    }).sort(byText)
    const names = signed.map(([name]) => name).join(';')
    const lines = signed.map(([name, value]) => `${name}:${value.trim().replace(/\s+/g, ' ')}\n`).join('')
    const path = canonicalPath(target.pathname)
    const request = [method, path, canonicalQuery(target.search), lines, names, hash].join('\n')
    const scope = `${day}/${parts.region}/${parts.service}/aws4_request`
    const signature = hmac(signingKey(day), [ALGORITHM, timestamp, scope, sha256(request)].join('\n')).toString('hex')
    const credential = `Credential=${accessKeyId}/${scope}`
    return { ...added, authorization: `${ALGORITHM} ${credential}, SignedHeaders=${names}, Signature=${signature}` }
  }
}

const byText = ([a]: readonly [string, string], [b]: readonly [string, string]): number => (a < b ? -1 : a > b ? 1 : 0)

/** Escapes everything that RFC 3986 reserves. encodeURIComponent leaves out five characters. */
const escape3986 = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, sign => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)

const canonicalPath = (path: string): string => path.split('/').map(escape3986).join('/')

/** Query parameters sorted by name, then by value. */
function canonicalQuery(search: string): string {
  const pairs = search
    .slice(1)
    .split('&')
    .filter(pair => pair !== '')
  return pairs
    .map(pair => {
      const [name = '', ...value] = pair.split('=').map(part => escape3986(decodeURIComponent(part)))
      return [name, value.join('%3D')] as const
    })
    .sort((a, b) => byText(a, b) || byText([a[1], ''], [b[1], '']))
    .map(pair => pair.join('='))
    .join('&')
}
