// The connection to Redis. This is the only file that uses Bun.RedisClient.
//
// No call waits long for Redis: every command has a deadline. After three failures in a row, or when the connection is
// closed, Redis counts as away: commands fail at once, and a new connection is tried every second. Whoever uses this
// class must be able to go on without Redis.

import { createHash } from 'node:crypto'
import { RedisClient } from 'bun'
import { describeFault } from '../../base/log.ts'
import type { Secret } from '../../base/secrets/secret.ts'

export interface RedisScript {
  readonly text: string
  readonly sha: string
}

export const redisScript = (text: string): RedisScript => ({
  text,
  sha: createHash('sha1').update(text).digest('hex'),
})

/** Redis cannot be reached, or it has not answered in time. */
export class RedisAway extends Error {}

export interface RedisConnectionParts {
  readonly url: Secret
  /** Called when Redis is away, with the reason, and when it is back. */
  onChange?(isUp: boolean, reason: string): void
  /** How long a command may take. */
  readonly deadlineMs?: number
  /** How often a new connection is tried. */
  readonly probeMs?: number
}

const DEADLINE_MS = 100
const PROBE_MS = 1_000
/** For a new connection. No call waits for it. */
const CONNECT_MS_MAX = 1_000
const FAILURES_MAX = 3
/**
 * Written by a script of each new connection: a server that only reads, has no memory left, or lets this user run no scripts,
 * is of no use.
 */
const PROBE_KEY = '{weir}:probe'
const PROBE = "return redis.call('SET', KEYS[1], '1', 'PX', 1000)"
/** The code of an error that the server has answered. Errors of the connection have none. */
const codeOf = (reason: string): string | undefined => /^\w+: ([A-Z]{2,}) /.exec(reason)?.[1]

export class RedisConnection {
  readonly #parts: RedisConnectionParts
  readonly #listeners: (() => void)[] = []
  /** Undefined while Redis is away. */
  #client: RedisClient | undefined
  #failures = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #isClosed = false
  /** Why Redis is away, as it was told last. */
  #reason = ''
  /** Resolves after the first try to connect, also if it has failed. */
  readonly ready: Promise<void>

  constructor(parts: RedisConnectionParts) {
    this.#parts = parts
    this.ready = this.#connect()
  }

  get isUp(): boolean {
    return this.#client !== undefined
  }

  /** Calls the listener each time Redis can be reached again. */
  onUp(listener: () => void): void {
    this.#listeners.push(listener)
  }

  /** Runs a script. The server gets its text only if it does not know it. */
  run(script: RedisScript, keys: readonly string[], values: readonly string[]): Promise<unknown> {
    const rest = [String(keys.length), ...keys, ...values]
    return this.#withClient(async client => {
      try {
        return await client.send('EVALSHA', [script.sha, ...rest])
      } catch (fault) {
        if (!describeFault(fault).includes('NOSCRIPT')) throw fault
        return await client.send('EVAL', [script.text, ...rest])
      }
    })
  }

  send(command: string, values: readonly string[]): Promise<unknown> {
    return this.#withClient(client => client.send(command, [...values]))
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    const client = this.#client
    this.#client = undefined
    client?.close()
  }

  async #withClient<T>(work: (client: RedisClient) => Promise<T>): Promise<T> {
    const client = this.#client
    if (client === undefined) throw new RedisAway('Redis is away')
    try {
      const result = await within(this.#parts.deadlineMs ?? DEADLINE_MS, work(client))
      this.#failures = 0
      return result
    } catch (fault) {
      this.#failures++
      if (this.#failures >= FAILURES_MAX) this.#leave(client, describeFault(fault))
      throw fault
    }
  }

  /** Redis counts as away from now on. */
  #leave(client: RedisClient, reason: string): void {
    if (client !== this.#client) return
    this.#client = undefined
    this.#failures = 0
    client.close()
    this.#tellAway(reason)
    // The connection may have been closed by a restart of the server, which is back soon.
    void this.#connect()
  }

  #tellAway(reason: string): void {
    this.#reason = reason
    this.#parts.onChange?.(false, reason)
  }

  async #connect(): Promise<void> {
    const client = new RedisClient(this.#parts.url.reveal(), {
      connectionTimeout: CONNECT_MS_MAX,
      autoReconnect: false,
      enableOfflineQueue: false,
    })
    try {
      const probe = async (): Promise<void> => {
        await client.connect()
        await client.send('EVAL', [PROBE, '1', PROBE_KEY])
      }
      await within(CONNECT_MS_MAX, probe())
      if (this.#isClosed) return client.close()
      client.onclose = () => this.#leave(client, 'the connection was closed')
      this.#client = client
      this.#reason = ''
      this.#parts.onChange?.(true, '')
      for (const listener of this.#listeners) listener()
    } catch (fault) {
      client.close()
      if (this.#isClosed) return
      // Nobody could guess it: the server can be reached.
      const reason = describeFault(fault)
      if (codeOf(reason) !== undefined && codeOf(reason) !== codeOf(this.#reason)) this.#tellAway(reason)
      this.#timer = setTimeout(() => void this.#connect(), this.#parts.probeMs ?? PROBE_MS)
      this.#timer.unref()
    }
  }
}

function within<T>(ms: number, answer: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = (): void => reject(new RedisAway(`Redis has not answered within ${ms} ms`))
    // If this process itself was busy, the answer may be there already: it is read before `setImmediate` runs.
    const timer = setTimeout(() => setImmediate(late), ms)
    answer.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
