// What the gateway gets from outside: clock, random numbers, memory, log, network options, intervals. Tests replace parts
// of it.

import { readFileSync } from 'node:fs'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import { bounds } from '../base/bounds.ts'
import type { Clock } from '../base/clock.ts'
import { systemClock } from '../base/clock.ts'
import type { TokenCounterOptions } from '../billing/token-counter.ts'
import type { MediaFetchOptions } from '../http/client/media-fetch.ts'
import type { ClientOptions } from '../http/client/request.ts'
import type { WebhookClientOptions } from '../http/client/webhook-client.ts'
import type { BodyBounds } from '../http/server/body.ts'
import { defaultBodyBounds } from '../http/server/body.ts'
import type { LoadStaticFiles } from '../http/server/static-files.ts'
import { staticFilesIn } from '../http/server/static-files.ts'
import type { ShownOnce } from '../management/config-file/apply.ts'
import type { AttemptTimes } from '../pipeline/attempt/attempt.ts'
import type { SilenceTimes } from '../pipeline/reply/stream-reply.ts'
import { measureWait } from '../store/engine/writer.ts'
import type { PasswordCost } from '../store/people/password-hash.ts'
import { passwordCost } from '../store/people/password-hash.ts'
import { parseProvider } from '../upstreams/provider.ts'
import { consoleBuild } from './console-build.ts'

export interface Runtime {
  readonly clock: Clock
  /** Timeouts that replace those of every upstream. */
  readonly attemptTimes?: AttemptTimes
  /** The most unsettled calls; with more, new calls are refused. */
  readonly unsettledMax?: number
  /** DNS and certificates for upstreams. */
  readonly upstreams?: Pick<ClientOptions, 'resolve' | 'ca'>
  /** Replaces the timeouts of the token counter. */
  readonly tokenCounter?: Partial<TokenCounterOptions>
  /** How media that callers name by URL are fetched. */
  readonly media?: MediaFetchOptions
  /** DNS, certificates and timeout for webhooks. */
  readonly webhooks?: Pick<WebhookClientOptions, 'resolve' | 'ca' | 'msMax'>
  /** The interval at which due webhook deliveries are looked for. */
  readonly webhooksEveryMs: number
  /** Replaces the silence times of the settings. */
  readonly silence?: SilenceTimes
  /** The interval at which due tasks are looked for. */
  readonly tasksEveryMs: number
  /** The interval at which local servers and their models are looked for. */
  readonly localServersEveryMs: number
  /** The interval at which the prices in providers' lists of models are read again. */
  readonly listedModelsEveryMs: number
  readonly bodyBounds: BodyBounds
  /** The files of the web console. */
  readonly loadConsole: LoadStaticFiles
  /** Reads a provider file. */
  readonly parseProvider: typeof parseProvider
  /** The most bytes of one stream event. */
  readonly eventBytesMax: number
  /** The cost of hashing a password. */
  readonly passwordCost: PasswordCost
  /** How long a connection may not finish a request head, or be idle before its first request. */
  readonly idleSeconds: number
  /** How long a connection may be idle after an answer. */
  readonly answeredSeconds: number
  /** How long a WebSocket may be open. */
  readonly socketMs: number
  /** How late the event loop is with work that was due at this time. */
  lateMs(dueMs: number): number
  /** How long an operation of the ledger may take; on PostgreSQL one that is none of a call, or a read. */
  readonly ledgerMs: number
  /** How long a query of the management interface may take. */
  readonly queryMs: number
  /** How long an operation that was queued at this time has waited for the ledger. */
  ledgerWaitMs(sinceMs: number): number
  /** The resident memory of this process. */
  memoryBytes(): number
  /** A random number from 0 to 1. */
  random(): number
  /** Resolves after this time. */
  pause(ms: number): Promise<void>
  writeLog(line: string): void
  /** Reads the build of the console; null: it was not built. */
  consoleBuild(): string | null
  /** How long a request may wait while the gateway starts. */
  readonly startWaitMs: number
  /** The configuration file has created a key or a webhook. Its secret is never shown again. */
  onCreatedByFile(created: ShownOnce): void | Promise<void>
  /** The thread of the ledger has died, so that no call can be settled any more. */
  onLedgerLost(detail: string): void
}

const CONSOLE = join(import.meta.dir, '..', '..', 'dist', 'console')

export const defaultRuntime: Runtime = {
  clock: systemClock,
  tasksEveryMs: 1_000,
  webhooksEveryMs: 1_000,
  localServersEveryMs: 60_000,
  listedModelsEveryMs: 3_600_000,
  bodyBounds: defaultBodyBounds,
  loadConsole: staticFilesIn(CONSOLE),
  parseProvider,
  eventBytesMax: bounds.frameBytesMax,
  passwordCost,
  idleSeconds: 10,
  answeredSeconds: 30,
  startWaitMs: bounds.startWaitMsMax,
  socketMs: bounds.socketMsMax,
  lateMs: dueMs => systemClock.nowMs() - dueMs,
  ledgerMs: bounds.settleMsMax,
  queryMs: bounds.queryMsMax,
  ledgerWaitMs: measureWait,
  memoryBytes: () => process.memoryUsage.rss(),
  random: Math.random,
  pause: ms => new Promise(resolve => setTimeout(resolve, ms)),
  writeLog: line => void process.stderr.write(line),
  consoleBuild,
  onCreatedByFile: () => {},
  onLedgerLost: () => process.exit(1),
}

/** The memory that this process may use: the machine's memory, or less if a control group limits it. */
export function memoryBytesMax(): number {
  let least = totalmem()
  for (const file of limitFiles()) {
    const bytes = Number(readOrEmpty(file))
    if (bytes > 0 && bytes < least) least = bytes
  }
  return least
}

/** The limit files of this process's control group and all groups above it, in versions 1 and 2. */
function limitFiles(): readonly string[] {
  const files: string[] = []
  for (const line of readOrEmpty('/proc/self/cgroup').split('\n')) {
    const [, kinds, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? []
    if (path === undefined || (kinds !== '' && kinds !== 'memory')) continue
    const [root, name] = kinds === '' ? ['', 'memory.max'] : ['memory', 'memory.limit_in_bytes']
    const parts = path.split('/').filter(part => part !== '')
    for (let depth = 0; depth <= parts.length; depth++) {
      files.push(join('/sys/fs/cgroup', root!, ...parts.slice(0, depth), name!))
    }
  }
  return files
}

function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    return ''
  }
}
