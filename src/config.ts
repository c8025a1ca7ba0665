// Environment → one frozen, checked Config. Nothing else reads the environment, but for the vendors' own key
// variables, which provider files name.

import { bounds } from './base/bounds.ts'
import type { LogLevel } from './base/log.ts'
import { isLogLevel } from './base/log.ts'
import { Secret } from './base/secrets/secret.ts'
import type { TrustedProxies } from './http/address/caller-address.ts'
import { parseTrustedProxies } from './http/address/caller-address.ts'
import { BadAddress } from './http/address/operator-address.ts'
import { PrivateHosts } from './http/address/private-hosts.ts'
import { Proxy } from './http/client/proxy.ts'

export interface Config {
  readonly host: string
  readonly port: number
  readonly dataFolder: string
  readonly logLevel: LogLevel
  /** Every call has a line in the log, whatever its level. */
  readonly accessLog: boolean
  /** Folders of provider files beside ours; a later one replaces a provider of the same id. */
  readonly providerFolders: readonly string[]
  readonly trustedProxies: TrustedProxies
  /** Hosts that channels may reach although they are private. */
  readonly privateHosts: PrivateHosts
  /** By which channels without one of their own reach what is public; undefined: by none. */
  readonly proxy: Secret | undefined
  /** What browsers of which origin may call LLM endpoints: `*`, one origin, or empty for none. */
  readonly corsOrigin: string
  readonly demo: boolean
  /** How long calls are still taken after the signal to stop, and how long those under way may then last. */
  readonly drainDelayMs: number
  readonly drainMs: number
  /** Calls under way at once, of all accounts. */
  readonly callsMax: number
  /** How much memory this process may take; undefined: what the machine or its control group allows. */
  readonly memoryBytesMax: number | undefined
  /** After this long without content a stream's head leaves all the same. */
  readonly silenceMs: number
  /** How often what a long stream has delivered is noted in the ledger. */
  readonly checkpointMs: number
  /** How often a call is tried, at most. */
  readonly attempts: number
  /** How long calls under way of a key that is revoked may still last. */
  readonly revokedMs: number
  readonly siteName: string
  /** Browsers send back what keeps people signed in only over https, also where Weir cannot see that it is. */
  readonly secureCookies: boolean
  /** Kept free on the disk for settling what is under way when it is full. */
  readonly ballastBytes: number
  /** How large the database may grow; undefined: as the disk allows. */
  readonly databaseBytesMax: number | undefined
  /** How long between two looks of the auditor; 0: only when asked. */
  readonly auditMs: number
  /** Where metrics are told; undefined: nowhere. */
  readonly metrics: { readonly host: string; readonly port: number } | undefined
  /** How long bodies are kept, where they are; zero: not at all. */
  readonly bodiesDays: number
  /** How long a response that its caller wants kept is kept. */
  readonly responsesDays: number
  /** Of all accounts together. */
  readonly responsesBytesMax: number
  readonly env: Readonly<Record<string, string | undefined>>
}

const MEGABYTE = 1024 * 1024

/** A setting that cannot be used; its text says what to do. */
export class ConfigError extends Error {}

type Environment = Readonly<Record<string, string | undefined>>

export function readConfig(env: Environment): Config {
  const text = (name: string, otherwise: string): string => env[name]?.trim() || otherwise
  const logLevel = text('LOG_LEVEL', 'info')
  if (!isLogLevel(logLevel)) throw new ConfigError('LOG_LEVEL must be debug, info, warn, error or silent.')
  const trustedProxies = parseTrustedProxies(text('WEIR_TRUSTED_PROXIES', ''))
  if (trustedProxies === undefined) {
    throw new ConfigError('WEIR_TRUSTED_PROXIES must be addresses or ranges such as 10.0.0.0/8, with commas between.')
  }
  const corsOrigin = text('WEIR_CORS_ORIGIN', '*')
  if (corsOrigin !== 'none' && corsOrigin !== '*' && !/^https?:\/\/[^/\s]+$/.test(corsOrigin)) {
    throw new ConfigError('WEIR_CORS_ORIGIN must be *, none, or an origin such as https://app.example.com.')
  }
  return Object.freeze({
    host: text('HOST', '127.0.0.1'),
    port: integer(env, 'PORT', { otherwise: 8080, max: 65_535 }),
    dataFolder: text('WEIR_DATA', 'data'),
    logLevel,
    accessLog: isOn(text('WEIR_ACCESS_LOG', 'off'), 'WEIR_ACCESS_LOG'),
    providerFolders: text('WEIR_PROVIDERS', '')
      .split(':')
      .filter(folder => folder !== ''),
    trustedProxies,
    privateHosts: privateHosts(text('WEIR_PRIVATE_HOSTS', '')),
    proxy: proxy(text('WEIR_PROXY', '')),
    corsOrigin: corsOrigin === 'none' ? '' : corsOrigin,
    demo: text('WEIR_DEMO', 'on') !== 'off',
    drainDelayMs: integer(env, 'WEIR_DRAIN_DELAY_SECONDS', { otherwise: 5, max: 3_600 }) * 1_000,
    callsMax: integer(env, 'WEIR_CALLS_MAX', { otherwise: 10_000, max: 1_000_000, min: 1 }),
    memoryBytesMax: integer(env, 'WEIR_MEMORY_MB', { otherwise: 0, max: 16_777_216 }) * MEGABYTE || undefined,
    drainMs: integer(env, 'WEIR_DRAIN_SECONDS', { otherwise: 120, max: 86_400 }) * 1_000,
    silenceMs: integer(env, 'WEIR_SILENCE_SECONDS', { otherwise: 20, max: 600 }) * 1_000,
    checkpointMs: integer(env, 'WEIR_CHECKPOINT_SECONDS', { otherwise: 5, max: 600 }) * 1_000,
    ballastBytes: integer(env, 'WEIR_BALLAST_MB', { otherwise: 64, max: 65_536 }) * MEGABYTE,
    databaseBytesMax: integer(env, 'WEIR_DATABASE_MB', { otherwise: 0, max: 16_777_216 }) * MEGABYTE || undefined,
    auditMs: integer(env, 'WEIR_AUDIT_SECONDS', { otherwise: 60, max: 86_400 }) * 1_000,
    metrics: metricsAddress(env),
    bodiesDays: integer(env, 'WEIR_BODIES_DAYS', { otherwise: 30, max: 36_500 }),
    responsesDays: integer(env, 'WEIR_RESPONSES_DAYS', { otherwise: 30, max: 36_500 }),
    responsesBytesMax: integer(env, 'WEIR_RESPONSES_MB', { otherwise: 8_192, min: 1, max: 16_777_216 }) * MEGABYTE,
    attempts: integer(env, 'WEIR_ATTEMPTS', { otherwise: 3, min: 1, max: bounds.attemptsPerCallMax }),
    revokedMs: integer(env, 'WEIR_REVOKED_SECONDS', { otherwise: 0, max: 3_600 }) * 1_000,
    siteName: text('WEIR_SITE_NAME', 'Weir'),
    secureCookies: text('WEIR_SECURE_COOKIES', 'auto') === 'on',
    env,
  })
}

function isOn(text: string, name: string): boolean {
  if (text !== 'on' && text !== 'off') throw new ConfigError(`${name} must be on or off.`)
  return text === 'on'
}

function privateHosts(text: string): PrivateHosts {
  const hosts = PrivateHosts.read(text)
  if (hosts instanceof PrivateHosts) return hosts
  throw new ConfigError(`WEIR_PRIVATE_HOSTS must be hosts, addresses or ranges, with commas between: ${hosts}.`)
}

function proxy(text: string): Secret | undefined {
  if (text === '') return undefined
  const written = new Secret(text)
  try {
    Proxy.read(written)
    return written
  } catch (fault) {
    throw fault instanceof BadAddress ? new ConfigError(`WEIR_PROXY ${fault.message}.`) : fault
  }
}

function metricsAddress(env: Environment): Config['metrics'] {
  if (!env.METRICS_PORT?.trim()) return undefined
  const port = integer(env, 'METRICS_PORT', { otherwise: 0, max: 65_535 })
  return { host: env.METRICS_HOST?.trim() || '127.0.0.1', port }
}

function integer(env: Environment, name: string, range: { otherwise: number; min?: number; max: number }): number {
  const text = env[name]?.trim()
  if (!text) return range.otherwise
  const value = Number(text)
  const { min = 0, max } = range
  if (!/^\d+$/.test(text) || value < min || value > max) {
    throw new ConfigError(`${name} must be a whole number from ${min} to ${max}.`)
  }
  return value
}
