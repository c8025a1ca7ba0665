// Reads environment variables into one frozen, checked Config. Nothing else reads the environment, except the key
// variables of vendors, which provider files name.

import { bounds } from './base/bounds.ts'
import type { LogLevel } from './base/log.ts'
import { isLogLevel } from './base/log.ts'
import { Secret } from './base/secrets/secret.ts'
import type { LocalServerPorts } from './features/local-servers/local-servers.ts'
import type { TrustedProxies } from './http/address/caller-address.ts'
import { parseTrustedProxies } from './http/address/caller-address.ts'
import { InvalidAddress } from './http/address/operator-address.ts'
import { PrivateHosts } from './http/address/private-hosts.ts'
import { Proxy } from './http/client/proxy.ts'

export interface Config {
  readonly host: string
  readonly port: number
  readonly dataFolder: string
  /** The PostgreSQL database that several gateways share; undefined: SQLite in the data folder, for one gateway. */
  readonly databaseUrl: Secret | undefined
  /** How many processes `weir serve` starts. */
  readonly processes: number
  /** The number of this process among those that one `weir serve` has started, from 1 on; 0: it is alone. */
  readonly processNumber: number
  /** Where this process has its lock and its control socket. The first process has them in the data folder. */
  readonly processFolder: string
  /** Whether other processes listen on the same port. */
  readonly sharesPort: boolean
  /** The configuration file that is applied at the start; undefined: none. */
  readonly configFile: string | undefined
  readonly logLevel: LogLevel
  /** Whether every call has a line in the log, at any log level. */
  readonly accessLog: boolean
  /** Additional folders of provider files. A provider in a later folder replaces one with the same id. */
  readonly providerFolders: readonly string[]
  readonly trustedProxies: TrustedProxies
  /** Private hosts that channels may reach. */
  readonly privateHosts: PrivateHosts
  /** The proxy of channels that have none of their own, for public hosts; undefined: no proxy. */
  readonly proxy: Secret | undefined
  /** The Redis in which several gateways count their limits together; undefined: each has its share of them. */
  readonly redisUrl: Secret | undefined
  /** The origin whose browser pages may call LLM endpoints: `*`, one origin, or empty for none. */
  readonly corsOrigin: string
  readonly demo: boolean
  /** Whether the web console is served. */
  readonly console: boolean
  /** The servers of models that are looked for on this machine. */
  readonly localServers: LocalServerPorts
  /** How long new calls are accepted after the signal to stop. */
  readonly drainDelayMs: number
  /** How long active calls may last after the signal to stop. */
  readonly drainMs: number
  /** The most active calls of all accounts. */
  readonly callsMax: number
  /** The memory that this process may use; undefined: what the machine or its control group allows. */
  readonly memoryBytesMax: number | undefined
  /** After this time without content the head of a stream is sent anyway. */
  readonly silenceMs: number
  /** The interval of checkpoints of long streams. */
  readonly checkpointMs: number
  /** The most attempts of one call. */
  readonly attempts: number
  /** How long active calls of a revoked key may still last. */
  readonly revokedMs: number
  readonly siteName: string
  /** Whether session cookies are always marked as secure, also when Weir does not see that the client uses https. */
  readonly secureCookies: boolean
  /** Disk space that is reserved for settling active calls when the disk is full. */
  readonly ballastBytes: number
  /** The maximum size of the database; undefined: no limit except the disk. */
  readonly databaseBytesMax: number | undefined
  /** The interval of the auditor; 0: audits run only on request. */
  readonly auditMs: number
  /** The address of the metrics server; undefined: metrics are off. */
  readonly metrics: { readonly host: string; readonly port: number } | undefined
  /** How many days bodies are stored, for keys that store them; 0: not at all. */
  readonly bodiesDays: number
  /** How many days a stored response is kept. */
  readonly responsesDays: number
  /** The most bytes of stored responses, of all accounts together. */
  readonly responsesBytesMax: number
  readonly env: Readonly<Record<string, string | undefined>>
}

/** As many as one database can tell apart. */
const PROCESSES_MAX = 127

const MEGABYTE = 1024 * 1024

/** An invalid setting. The message says what is allowed. */
export class ConfigError extends Error {}

type Environment = Readonly<Record<string, string | undefined>>

export function readConfig(env: Environment): Config {
  const text = (name: string, byDefault: string): string => readText(env, name) || byDefault
  const logLevel = text('LOG_LEVEL', 'info')
  if (!isLogLevel(logLevel)) throw new ConfigError('LOG_LEVEL must be debug, info, warn, error or silent.')
  const trustedProxies = parseTrustedProxies(text('WEIR_TRUSTED_PROXIES', ''))
  if (trustedProxies === undefined) {
    throw new ConfigError('WEIR_TRUSTED_PROXIES must be addresses or ranges such as 10.0.0.0/8, separated by commas.')
  }
  const corsOrigin = text('WEIR_CORS_ORIGIN', '*')
  if (corsOrigin !== 'none' && corsOrigin !== '*' && !/^https?:\/\/[^/\s]+$/.test(corsOrigin)) {
    throw new ConfigError('WEIR_CORS_ORIGIN must be *, none, or an origin such as https://app.example.com.')
  }
  const dataFolder = readPath(env, 'WEIR_DATA') || 'data'
  const processes = readInteger(env, 'WEIR_PROCESSES', { byDefault: 1, min: 1, max: PROCESSES_MAX })
  const processNumber = readInteger(env, 'WEIR_PROCESS', { byDefault: 0, max: PROCESSES_MAX })
  const databaseUrl = parseDatabaseUrl(text('WEIR_DATABASE_URL', ''))
  if ((processes > 1 || processNumber > 0) && databaseUrl === undefined) {
    const name = processes > 1 ? 'WEIR_PROCESSES' : 'WEIR_PROCESS'
    throw new ConfigError(
      `${name} is set. Several processes need a PostgreSQL database: set WEIR_DATABASE_URL, or remove ${name} to use SQLite.`,
    )
  }
  if (text('WEIR_REDIS_URL', '') !== '' && text('WEIR_DATABASE_URL', '') === '') {
    throw new ConfigError(
      'WEIR_REDIS_URL is for several gateways, which need a PostgreSQL database: set WEIR_DATABASE_URL.',
    )
  }
  return Object.freeze({
    host: withoutBrackets(text('HOST', '127.0.0.1')),
    port: readInteger(env, 'PORT', { byDefault: 8080, max: 65_535 }),
    dataFolder,
    databaseUrl,
    processes,
    processNumber,
    processFolder: processNumber <= 1 ? dataFolder : `${dataFolder}/process-${processNumber}`,
    sharesPort: processNumber > 0,
    configFile: readPath(env, 'WEIR_CONFIG') || undefined,
    logLevel,
    accessLog: parseSwitch(text('WEIR_ACCESS_LOG', 'off'), 'WEIR_ACCESS_LOG'),
    providerFolders: readPath(env, 'WEIR_PROVIDERS')
      .split(':')
      .filter(folder => folder !== ''),
    trustedProxies,
    privateHosts: parsePrivateHosts(text('WEIR_PRIVATE_HOSTS', '')),
    proxy: parseProxy(text('WEIR_PROXY', '')),
    redisUrl: parseRedisUrl(text('WEIR_REDIS_URL', '')),
    corsOrigin: corsOrigin === 'none' ? '' : corsOrigin,
    demo: parseSwitch(text('WEIR_DEMO', 'on'), 'WEIR_DEMO'),
    console: parseSwitch(text('WEIR_CONSOLE', 'on'), 'WEIR_CONSOLE'),
    localServers: parseLocalServers(text('WEIR_LOCAL_SERVERS', 'on')),
    drainDelayMs: readInteger(env, 'WEIR_DRAIN_DELAY_SECONDS', { byDefault: 5, max: 3_600 }) * 1_000,
    callsMax: readInteger(env, 'WEIR_CALLS_MAX', { byDefault: 10_000, max: 1_000_000, min: 1 }),
    memoryBytesMax: readInteger(env, 'WEIR_MEMORY_MB', { byDefault: 0, max: 16_777_216 }) * MEGABYTE || undefined,
    drainMs: readInteger(env, 'WEIR_DRAIN_SECONDS', { byDefault: 120, max: 86_400 }) * 1_000,
    silenceMs: readInteger(env, 'WEIR_SILENCE_SECONDS', { byDefault: 20, max: 600 }) * 1_000,
    checkpointMs: readInteger(env, 'WEIR_CHECKPOINT_SECONDS', { byDefault: 5, max: 600 }) * 1_000,
    ballastBytes: readInteger(env, 'WEIR_BALLAST_MB', { byDefault: 64, max: 65_536 }) * MEGABYTE,
    databaseBytesMax: readInteger(env, 'WEIR_DATABASE_MB', { byDefault: 0, max: 16_777_216 }) * MEGABYTE || undefined,
    auditMs: readInteger(env, 'WEIR_AUDIT_SECONDS', { byDefault: 60, max: 86_400 }) * 1_000,
    metrics: readMetricsAddress(env),
    bodiesDays: readInteger(env, 'WEIR_BODIES_DAYS', { byDefault: 30, max: 36_500 }),
    responsesDays: readInteger(env, 'WEIR_RESPONSES_DAYS', { byDefault: 30, max: 36_500 }),
    responsesBytesMax: readInteger(env, 'WEIR_RESPONSES_MB', { byDefault: 8_192, min: 1, max: 16_777_216 }) * MEGABYTE,
    attempts: readInteger(env, 'WEIR_ATTEMPTS', { byDefault: 3, min: 1, max: bounds.attemptsPerCallMax }),
    revokedMs: readInteger(env, 'WEIR_REVOKED_SECONDS', { byDefault: 0, max: 3_600 }) * 1_000,
    siteName: text('WEIR_SITE_NAME', 'Weir'),
    secureCookies: parseSecureCookies(text('WEIR_SECURE_COOKIES', 'auto')),
    env,
  })
}

/** An IPv6 address may be written as in a URL. */
const withoutBrackets = (host: string): string => host.replace(/^\[(.*)\]$/, '$1')

/** The value of a setting; empty if it is not set. */
function readText(env: Environment, name: string): string {
  const value = env[name]?.trim() ?? ''
  // In a file `.env` and in a shell quotes are removed; docker --env-file, for example, keeps them as part of the value.
  if (/^(["']).*\1$/.test(value)) throw new ConfigError(`${name} has quotes around its value. Write it without them.`)
  return value
}

/** The path of a file or a folder, or several with colons between them; empty if it is not set. */
function readPath(env: Environment, name: string): string {
  const path = readText(env, name)
  // Otherwise a folder of this name would be created, and its data would not be found again.
  if (/(?:^|:)~(?:\/|$)/.test(path)) {
    throw new ConfigError(`${name} has a ~ for the home folder, which only a shell knows. Write the whole path.`)
  }
  return path
}

function parseSecureCookies(text: string): boolean {
  if (text !== 'on' && text !== 'auto') throw new ConfigError('WEIR_SECURE_COOKIES must be on or auto.')
  return text === 'on'
}

function parseSwitch(text: string, name: string): boolean {
  if (text !== 'on' && text !== 'off') throw new ConfigError(`${name} must be on or off.`)
  return text === 'on'
}

function parseLocalServers(text: string): LocalServerPorts {
  if (text === 'on') return 'usual'
  if (text === 'off') return 'none'
  const ports = new Map<string, number>()
  for (const part of text.split(',')) {
    const [, provider, port] = /^\s*([a-z0-9-]+)=(\d{1,5})\s*$/.exec(part) ?? []
    if (provider === undefined || Number(port) < 1 || Number(port) > 65_535) {
      throw new ConfigError(
        'WEIR_LOCAL_SERVERS must be on, off, or providers with ports such as ollama=11434,vllm=8001.',
      )
    }
    ports.set(provider, Number(port))
  }
  return ports
}

function parsePrivateHosts(text: string): PrivateHosts {
  const hosts = PrivateHosts.read(text)
  if (hosts instanceof PrivateHosts) return hosts
  throw new ConfigError(`WEIR_PRIVATE_HOSTS must be hosts, addresses or ranges, separated by commas: ${hosts}.`)
}

/** The text of the error does not contain the URL, because it may have a password. */
function parseDatabaseUrl(text: string): Secret | undefined {
  if (text === '') return undefined
  const url = URL.parse(text)
  if (url === null || !/^postgres(ql)?:$/.test(url.protocol) || url.pathname.length < 2) {
    throw new ConfigError('WEIR_DATABASE_URL must be a URL such as postgres://user:password@host:5432/database.')
  }
  return new Secret(text)
}

function parseProxy(text: string): Secret | undefined {
  if (text === '') return undefined
  const address = new Secret(text)
  try {
    Proxy.read(address)
    return address
  } catch (fault) {
    throw fault instanceof InvalidAddress ? new ConfigError(`WEIR_PROXY ${fault.message}.`) : fault
  }
}

const redisProtocols: readonly unknown[] = ['redis:', 'rediss:', 'redis+unix:', 'valkey:', 'valkeys:']

function parseRedisUrl(text: string): Secret | undefined {
  if (text === '') return undefined
  const url = URL.parse(text)
  const target = url?.protocol === 'redis+unix:' ? url.pathname.slice(1) : url?.host
  const isUsable = redisProtocols.includes(url?.protocol) && Boolean(target)
  // The text may have a password, so the message does not repeat it.
  if (!isUsable)
    throw new ConfigError(
      'WEIR_REDIS_URL must be an address such as redis://:password@host:6379/0, or rediss:// for TLS.',
    )
  return new Secret(text)
}

function readMetricsAddress(env: Environment): Config['metrics'] {
  const host = readText(env, 'METRICS_HOST') || '127.0.0.1'
  if (readText(env, 'METRICS_PORT') === '') return undefined
  return { host: withoutBrackets(host), port: readInteger(env, 'METRICS_PORT', { byDefault: 0, max: 65_535 }) }
}

function readInteger(env: Environment, name: string, range: { byDefault: number; min?: number; max: number }): number {
  const text = readText(env, name)
  if (text === '') return range.byDefault
  const value = Number(text)
  const { min = 0, max } = range
  if (!/^\d+$/.test(text) || value < min || value > max) {
    throw new ConfigError(`${name} must be a whole number from ${min} to ${max}.`)
  }
  return value
}
