// Signs requests as AWS wants it (Signature Version 4), for services that escape their paths twice, which is every one
// but object storage. The key for signing is derived once a day.

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

/** A request that is about to be sent. */
export interface Signable {
  /** POST if not given, as all our calls are. */
  readonly method?: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

const ALGORITHM = 'AWS4-HMAC-SHA256'

const sha256 = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex')
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest()

/** `ACCESS_KEY_ID:SECRET` with `:SESSION_TOKEN` behind it or not. */
export function parseAwsCredentials(text: string): AwsCredentials | undefined {
  const [, accessKeyId, secretAccessKey, sessionToken] = /^([\w]+):([^\s:]+)(?::([^\s:]+))?$/.exec(text) ?? []
  if (accessKeyId === undefined || secretAccessKey === undefined) return undefined
  return { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) }
}

/** The region that a host of AWS names, as `us-east-1` in `service.us-east-1.amazonaws.com`. */
export function regionOf(url: string): string | undefined {
  return /\.([a-z]{2,}(?:-[a-z]+)+-\d+)\.amazonaws\.com(?:\.cn)?$/.exec(new URL(url).hostname)?.[1]
}

/** The headers that sign a request. Of those that it has, the type of its content is signed with it. */
export function openSigV4(parts: SigV4Parts): (request: Signable) => Record<string, string> {
  const { accessKeyId, secretAccessKey, sessionToken } = parts.credentials
  let derived: { readonly day: string; readonly key: Buffer } | undefined
  function keyOf(day: string): Buffer {
    if (derived?.day !== day) {
      const scope = [parts.region, parts.service, 'aws4_request']
      derived = { day, key: scope.reduce(hmac, hmac(`AWS4${secretAccessKey}`, day)) }
    }
    return derived.key
  }
  return ({ method = 'POST', url, headers, body }) => {
    const target = new URL(url)
    const moment = new Date(parts.dateMs()).toISOString().replace(/[-:]|\.\d+/g, '')
    const day = moment.slice(0, 8)
    const hash = sha256(body)
    const added = {
      'x-amz-date': moment,
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
    const place = [canonicalPath(target.pathname), canonicalQuery(target.search)]
    const request = [method, ...place, lines, names, hash].join('\n')
    const scope = `${day}/${parts.region}/${parts.service}/aws4_request`
    const signature = hmac(keyOf(day), [ALGORITHM, moment, scope, sha256(request)].join('\n')).toString('hex')
    const credential = `Credential=${accessKeyId}/${scope}`
    return { ...added, authorization: `${ALGORITHM} ${credential}, SignedHeaders=${names}, Signature=${signature}` }
  }
}

const byText = ([one]: readonly [string, string], [other]: readonly [string, string]): number =>
  one < other ? -1 : one > other ? 1 : 0

/** What RFC 3986 reserves, all of it: JavaScript leaves five signs as they are. */
const escaped = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, sign => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)

const canonicalPath = (path: string): string => path.split('/').map(escaped).join('/')

/** By name, then by value. */
function canonicalQuery(search: string): string {
  const pairs = search
    .slice(1)
    .split('&')
    .filter(pair => pair !== '')
  return pairs
    .map(pair => {
      const [name = '', ...value] = pair.split('=').map(part => escaped(decodeURIComponent(part)))
      return [name, value.join('%3D')] as const
    })
    .sort((one, other) => byText(one, other) || byText([one[1], ''], [other[1], '']))
    .map(pair => pair.join('='))
    .join('&')
}
