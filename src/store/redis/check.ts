// Checks at the start whether the Redis of the operator can be used, so that a wrong setting is reported in one sentence.
// It speaks to the server directly, because Bun's client does not say why a connection has failed. A Redis that cannot
// be reached is no wrong setting: the gateway works without it until it comes.

import type { Socket } from 'node:net'
import { connect, isIP } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Secret } from '../../base/secrets/secret.ts'

/** The message is for the operator. It has no part of the password. */
export class RedisUnusable extends Error {}

const ANSWER_MS_MAX = 2_000
const VERSION_MIN = [6, 2] as const
/** The first bytes of all answers of Redis. */
const ANSWER_TYPES = '+-$:*_%'
/** The password is wrong, or the server has none. */
const WRONG_PASSWORD = /^-(WRONGPASS|ERR AUTH|ERR invalid password)/

/** Returns a warning if Redis cannot be reached or checked, or is full. Throws if it can be reached and cannot be used. */
export async function checkRedis(url: Secret): Promise<string | undefined> {
  const address = new URL(url.reveal())
  const name = nameOf(address)
  const password = decodeURIComponent(address.password)
  const user = decodeURIComponent(address.username)
  const login = password === '' ? [] : [command('AUTH', ...(user === '' ? [] : [user]), password)]
  const text = await sendCommands(address, [...login, command('INFO')].join(''), name)
  if (typeof text !== 'string') return text.away
  const answer = new Answer(text)
  const first = answer.line()
  if (WRONG_PASSWORD.test(first)) throw new RedisUnusable(`${name} does not accept the password of WEIR_REDIS_URL.`)
  // Another error says that the server has not even looked at the password: it has too many connections, for example.
  const info = first === '+OK' ? answer.line() : first
  if (info.startsWith('-NOAUTH')) throw new RedisUnusable(`${name} needs a password, and WEIR_REDIS_URL has none.`)
  if (info.startsWith('-LOADING')) return `${name} is still loading its data.`
  if (info.startsWith('-')) return `${name} does not tell its settings, so they were not checked (${info.slice(1)}).`
  return checkInfo(answer.rest, name)
}

function checkInfo(info: string, name: string): string | undefined {
  const field = (key: string): string => new RegExp(`^${key}:(.*?)\r?$`, 'm').exec(info)?.[1] ?? ''
  const [major = 0, minor = 0] = field('redis_version').split('.').map(Number)
  if (major < VERSION_MIN[0] || (major === VERSION_MIN[0] && minor < VERSION_MIN[1])) {
    throw new RedisUnusable(
      `${name} is Redis ${field('redis_version')}, and Weir needs ${VERSION_MIN.join('.')} or later.`,
    )
  }
  if (field('cluster_enabled') === '1') {
    throw new RedisUnusable(`${name} is a node of a Redis cluster, and Weir needs a single Redis.`)
  }
  if (field('role') === 'slave') {
    throw new RedisUnusable(`${name} is a replica, which only reads, and Weir needs the primary Redis.`)
  }
  const policy = field('maxmemory_policy')
  const [memoryMax, memory] = [Number(field('maxmemory')), Number(field('used_memory'))]
  if (field('maxmemory') !== '0' && policy !== 'noeviction') {
    throw new RedisUnusable(
      `${name} drops data when its memory is full (maxmemory-policy ${policy}), and Weir needs the policy noeviction.`,
    )
  }
  if (memoryMax > 0 && memory >= memoryMax) {
    return `${name} is full and refuses to write (${memory} bytes used, maxmemory ${memoryMax}).`
  }
  return undefined
}

/** The address without user and password. */
const nameOf = ({ host, pathname }: URL): string => `The Redis at ${host === '' ? pathname : host}`

const command = (...words: readonly string[]): string =>
  `*${words.length}\r\n${words.map(word => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`

/** Sends commands, and returns all that the server has answered when the answer of INFO is complete, or an error. */
function sendCommands(address: URL, commands: string, name: string): Promise<string | { readonly away: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<string | { readonly away: string }>()
  const isTls = ['rediss:', 'valkeys:', 'redis+tls:'].includes(address.protocol)
  const host = address.hostname.replace(/^\[|\]$/g, '')
  const port = Number(address.port || 6_379)
  const target = host === '' ? { path: decodeURIComponent(address.pathname) } : { host, port }
  const socket: Socket = isTls
    ? connectTls({ ...target, ...(isIP(host) === 0 && { servername: host }) })
    : connect(target)
  let [text, isConnected] = ['', false]
  const timer = setTimeout(
    () => resolve({ away: `${name} has not answered within ${ANSWER_MS_MAX} ms.` }),
    ANSWER_MS_MAX,
  )
  socket.once(isTls ? 'secureConnect' : 'connect', () => {
    isConnected = true
    socket.write(commands)
  })
  socket.once('connect', () => (isConnected = true))
  socket.on('data', data => {
    text += data.toString('latin1')
    if (!ANSWER_TYPES.includes(text[0]!)) reject(new RedisUnusable(`${name} is another kind of server.`))
    else if (/^-|\r\n-/.test(text) || /\$(\d+)\r\n/.test(text)) resolveIfComplete()
  })
  const rejectClosed = (): void =>
    reject(new RedisUnusable(`${name} closes connections: it is another kind of server, or it needs TLS (rediss://).`))
  const resolveIfComplete = (): void => {
    const bulk = /\$(\d+)\r\n/.exec(text)
    if (bulk === null || text.length >= bulk.index + bulk[0].length + Number(bulk[1])) resolve(text)
  }
  socket.on('error', (fault: Error & { readonly code?: string }) => {
    const reason = fault.code ?? fault.message
    if (isConnected && isTls) reject(new RedisUnusable(`The TLS connection to the${name.slice(3)} failed (${reason}).`))
    else if (isConnected) rejectClosed()
    else resolve({ away: `${name} cannot be reached (${reason}).` })
  })
  socket.on('close', rejectClosed)
  return promise.finally(() => {
    clearTimeout(timer)
    socket.destroy()
  })
}

class Answer {
  rest: string

  constructor(text: string) {
    this.rest = text
  }

  line(): string {
    const end = this.rest.indexOf('\r\n')
    const line = end < 0 ? this.rest : this.rest.slice(0, end)
    this.rest = end < 0 ? '' : this.rest.slice(end + 2)
    return line
  }
}
