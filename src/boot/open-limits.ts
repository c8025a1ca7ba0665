// Chooses where limits are counted: in memory for one process; for several processes in Redis, or each its share.

import type { Log } from '../base/log.ts'
import { describeFault } from '../base/log.ts'
import type { Secret } from '../base/secrets/secret.ts'
import { ConfigError } from '../config.ts'
import type { LimitCounter } from '../limits/limit-counter.ts'
import { Limits } from '../limits/limits.ts'
import { SharedLimits } from '../limits/shared-limits.ts'
import type { LimitDebt } from '../store/ledger/limit-debts.ts'
import { checkRedis, RedisUnusable } from '../store/redis/check.ts'
import { RedisConnection } from '../store/redis/client.ts'
import { LimitCounters } from '../store/redis/limit-counters.ts'

/** The processes of a gateway, as the limits need to know them. */
export interface LimitProcesses {
  readonly redisUrl: Secret | undefined
  /** The same for all processes of the gateway, and different from that of any other gateway. */
  readonly namespace: string
  /** The name of this process: its slot and epoch, so that no other process has or had it. */
  readonly process: string
  /** How many processes are alive, with this one. */
  count(): number
  /** The saved use of day limits. */
  loadDebts(): Promise<readonly LimitDebt[]>
}

export interface OpenLimitsParts {
  /** Undefined for a gateway of one process. */
  readonly processes: LimitProcesses | undefined
  readonly restored: ReadonlyMap<string, number>
  readonly log: Log
  dateMs(): number
}

export interface OpenLimits {
  readonly limits: LimitCounter
  /** How often a key may ask for explanations. */
  readonly explanationLimits: LimitCounter
  /** Counts attempts to sign in and the like for all processes. Undefined without Redis. */
  readonly attemptCounters: LimitCounters | undefined
  /** Undefined without Redis. */
  readonly connection: RedisConnection | undefined
  close(): Promise<void>
}

export function openLimits({ processes, restored, log, dateMs }: OpenLimitsParts): OpenLimits {
  if (processes === undefined) {
    const limits = new Limits(restored)
    const nothing = { attemptCounters: undefined, connection: undefined, close: async () => {} }
    return { limits, explanationLimits: new Limits(), ...nothing }
  }
  const { redisUrl, namespace, process, count, loadDebts } = processes
  const connection =
    redisUrl &&
    new RedisConnection({
      url: redisUrl,
      onChange(isUp, reason) {
        if (isUp) log.info('Redis can be reached: all processes count limits together')
        else log.warn('Redis is away: each process has its share of every limit', { reason })
      },
    })
  const countersOf = (name: string): LimitCounters | undefined =>
    connection && new LimitCounters({ connection, namespace: name, process })
  const [redis, explanations, attemptCounters] = ['', ':explanations', ':attempts'].map(part =>
    countersOf(namespace + part),
  )
  const onTrouble = (fault: unknown): void =>
    log.warn('Redis could not be filled with the use of day limits', { fault: describeFault(fault) })
  const parts = { processes: count, dateMs, onTrouble }
  return {
    limits: new SharedLimits({ ...parts, restored, redis, loadDebts }),
    explanationLimits: new SharedLimits({ ...parts, redis: explanations, loadDebts: async () => [] }),
    attemptCounters,
    connection,
    async close() {
      for (const counters of [redis, explanations, attemptCounters]) await counters?.close()
      connection?.close()
    },
  }
}

/** Reports a Redis that cannot be used before the gateway takes calls. One that is away may come later. */
export async function checkRedisUrl(url: Secret, log: Log): Promise<void> {
  try {
    const warning = await checkRedis(url)
    if (warning !== undefined)
      log.warn(`${warning} Until Redis can be used, each process has its share of every limit.`)
  } catch (fault) {
    throw fault instanceof RedisUnusable ? new ConfigError(`WEIR_REDIS_URL: ${fault.message}`) : fault
  }
}
