// Several gateway processes on one port, started by a parent process: each of them is `weir serve` with a number. One that
// ends is started again. Signals to the parent reach all of them, and the parent ends when they have ended.

import type { Subprocess } from 'bun'
import { Problem } from './problem.ts'

/** What a process tells its parent when it accepts calls. */
export interface ListeningProcess {
  readonly url: string
  readonly metricsUrl: string | null
}

export interface ProcessGroupOptions {
  readonly count: number
  readonly command: readonly string[]
  /** The environment of all processes. Each also gets its number, from 1 on, as WEIR_PROCESS. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** A process that has not ended this long after a signal is killed. */
  readonly killMs: number
  onListening(number: number, process: ListeningProcess): void
  onEnd(number: number): void
  complain(line: string): void
}

/** The pause before a process is started again. It doubles each time that the process ends soon. */
const RESTART_MS = 500
const RESTART_MS_MAX = 30_000
/** A process that has accepted calls for this long is healthy: its next restart is quick again. */
const HEALTHY_MS = 60_000

type StopSignal = 'SIGTERM' | 'SIGINT'

interface Child {
  readonly number: number
  process: Subprocess | undefined
  /** Undefined while it does not accept calls. */
  listeningSinceMs: number | undefined
  /** Whether it has accepted calls since the parent began, perhaps before a restart. */
  hasListened: boolean
  /** How often it has ended soon after its start, one after another. */
  failures: number
  timer: ReturnType<typeof setTimeout> | undefined
  /** Resolves with whether it listens, when it does or has ended. */
  started: PromiseWithResolvers<boolean>
}

export class ProcessGroup {
  readonly #options: ProcessGroupOptions
  readonly #children: readonly Child[]
  readonly #ended = Promise.withResolvers<boolean>()
  #isStopping = false
  #areAllWell = true

  constructor(options: ProcessGroupOptions) {
    this.#options = options
    this.#children = Array.from({ length: options.count }, (_, at) => ({
      number: at + 1,
      process: undefined,
      listeningSinceMs: undefined,
      hasListened: false,
      failures: 0,
      timer: undefined,
      started: Promise.withResolvers<boolean>(),
    }))
  }

  /** Resolves when all have ended after `stop`, with whether each of them has ended by itself, without an error. */
  get ended(): Promise<boolean> {
    return this.#ended.promise
  }

  /**
   * Resolves with true when all processes accept calls, with false when they are stopped before. The first one starts
   * alone: it prepares the database and prints what a first start prints. If one cannot start, all are stopped and this
   * throws.
   */
  async start(): Promise<boolean> {
    const [first, ...others] = this.#children
    for (const group of [[first!], others]) {
      for (const child of group) this.#spawn(child)
      const started = await Promise.all(group.map(child => child.started.promise))
      if (this.#isStopping) return false
      const failed = group[started.indexOf(false)]
      if (failed !== undefined) {
        this.stop('SIGTERM')
        await this.ended
        throw new Problem(`Process ${failed.number} could not start. Its own message is above.`)
      }
    }
    return true
  }

  /** Passes the signal on. The processes know a second one, which hurries them. */
  stop(signal: StopSignal): void {
    if (!this.#isStopping) setTimeout(() => this.#killRest(), this.#options.killMs).unref()
    this.#isStopping = true
    for (const child of this.#children) {
      clearTimeout(child.timer)
      child.process?.kill(signal)
      if (child.process === undefined) child.started.resolve(false)
    }
    this.#checkEnded()
  }

  #killRest(): void {
    for (const { process } of this.#children) process?.kill('SIGKILL')
  }

  #spawn(child: Child): void {
    if (this.#isStopping) return
    const { command, env } = this.#options
    child.process = Bun.spawn([...command], {
      env: { ...env, WEIR_PROCESSES: '1', WEIR_PROCESS: String(child.number) },
      stdio: ['ignore', 'inherit', 'inherit'],
      serialization: 'json',
      ipc: (message: ListeningProcess) => this.#onListening(child, message),
      onExit: (_process, code, signal) => this.#onExit(child, code, signal),
    })
  }

  #onListening(child: Child, message: ListeningProcess): void {
    child.listeningSinceMs = performance.now()
    child.hasListened = true
    this.#options.onListening(child.number, message)
    child.started.resolve(true)
  }

  #onExit(child: Child, code: number | null, signal: number | string | null): void {
    const { onEnd, complain } = this.#options
    const { number, listeningSinceMs, hasListened } = child
    child.process = undefined
    child.listeningSinceMs = undefined
    onEnd(number)
    child.started.resolve(false)
    if (this.#isStopping) {
      // A signal that comes before the process has set its handlers ends it, too.
      if (code !== 0 && !(code === null && listeningSinceMs === undefined)) this.#areAllWell = false
      return this.#checkEnded()
    }
    if (!hasListened) return
    const isHealthy = listeningSinceMs !== undefined && performance.now() - listeningSinceMs >= HEALTHY_MS
    child.failures = isHealthy ? 0 : child.failures + 1
    const pauseMs = Math.min(RESTART_MS_MAX, RESTART_MS * 2 ** Math.max(0, child.failures - 1))
    const how = code === null ? `signal ${signal}` : `exit code ${code}`
    complain(`process ${number} has ended with ${how}; it is started again in ${pauseMs / 1_000} s`)
    child.timer = setTimeout(() => this.#spawn(child), pauseMs)
  }

  #checkEnded(): void {
    if (this.#children.every(({ process }) => process === undefined)) this.#ended.resolve(this.#areAllWell)
  }
}
