// What the gateway gets from outside itself: time, memory, its log, how long it waits. A test may replace any of it.

import { readFileSync } from 'node:fs'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import { bounds } from '../base/bounds.ts'
import type { Clock } from '../base/clock.ts'
import { systemClock } from '../base/clock.ts'
import type { GuardedFetchOptions } from '../http/client/fetch-media.ts'
import type { GuardedPostOptions } from '../http/client/post-webhook.ts'
import type { ClientOptions } from '../http/client/request.ts'
import type { BodyBounds } from '../http/server/body.ts'
import { defaultBodyBounds } from '../http/server/body.ts'
import type { AttemptTimes } from '../pipeline/attempt/attempt.ts'
import type { Silence } from '../pipeline/reply/stream-reply.ts'
import { waitedSince } from '../store/engine/writer.ts'
import type { PasswordCost } from '../store/people/hash-password.ts'
import { passwordCost } from '../store/people/hash-password.ts'

export interface World {
  readonly clock: Clock
  /** In place of what is known of each upstream. */
  readonly attemptTimes?: AttemptTimes
  /** How many calls may be over and not written down before new ones are refused. */
  readonly owedMax?: number
  /** How upstreams are found and trusted; what the settings say stands. */
  readonly upstreams?: Pick<ClientOptions, 'resolve' | 'ca'>
  /** How what callers name by an address is fetched. */
  readonly media?: GuardedFetchOptions
  /** How webhooks are found and trusted; what the settings say stands. */
  readonly webhooks?: Pick<GuardedPostOptions, 'resolve' | 'ca' | 'msMax'>
  /** How often it is looked for what they are to be told. */
  readonly webhooksEveryMs: number
  /** Else as the settings say. */
  readonly silence?: Silence
  /** How often it is looked for tasks that are due. */
  readonly tasksEveryMs: number
  readonly bodyBounds: BodyBounds
  /** How long one event of an answer may be. */
  readonly eventBytesMax: number
  /** What it costs to try a password. */
  readonly passwordCost: PasswordCost
  /** How long a connection may be idle after an answer. */
  readonly answeredSeconds: number
  /** How late the event loop is with what was due then. */
  lateMs(dueMs: number): number
  /** How long an operation has waited for the ledger that was queued then. */
  ledgerWaitMs(sinceMs: number): number
  /** What this process has taken of the memory. */
  memoryBytes(): number
  /** From 0 to 1, for waits that must not fall together. */
  chance(): number
  /** Resolves after so many milliseconds. */
  pause(ms: number): Promise<void>
  writeLog(line: string): void
  /** The ledger's thread is gone: nothing can be promised any more. */
  onLedgerLost(detail: string): void
}

export const realWorld: World = {
  clock: systemClock,
  tasksEveryMs: 1_000,
  webhooksEveryMs: 1_000,
  bodyBounds: defaultBodyBounds,
  eventBytesMax: bounds.frameBytesMax,
  passwordCost,
  answeredSeconds: 30,
  lateMs: dueMs => systemClock.nowMs() - dueMs,
  ledgerWaitMs: waitedSince,
  memoryBytes: () => process.memoryUsage.rss(),
  chance: Math.random,
  pause: ms => new Promise(resolve => setTimeout(resolve, ms)),
  writeLog: line => void process.stderr.write(line),
  onLedgerLost: () => process.exit(1),
}

/** What this process may take: the machine's memory, or less where a control group says so. */
export function memoryBytesMax(): number {
  let least = totalmem()
  for (const file of limitFiles()) {
    const bytes = Number(readOrNothing(file))
    if (bytes > 0 && bytes < least) least = bytes
  }
  return least
}

/** Of this process's group and of all above it, in both versions. */
function limitFiles(): readonly string[] {
  const files: string[] = []
  for (const line of readOrNothing('/proc/self/cgroup').split('\n')) {
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

function readOrNothing(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    return ''
  }
}
