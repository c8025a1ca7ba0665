// Stops the gateway gracefully. It reports at once that it is not ready, accepts calls for a short delay, then refuses new
// calls, lets active calls end, ends the rest when the drain window is over, and closes when all calls are settled.

import { Refusal } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { TaskService } from '../features/tasks/tasks.ts'
import type { HttpServer } from '../http/server/server.ts'
import type { ActiveCalls } from '../pipeline/lifetime/active-calls.ts'
import type { Settler } from '../pipeline/settle/settle.ts'
import type { ResponseSockets } from '../server/responses-socket/response-sockets.ts'

export interface DrainParts {
  /** How long active calls may last, counted from the signal. */
  readonly windowMs: number
  readonly activeCalls: ActiveCalls
  readonly tasks: Pick<TaskService, 'close'>
  readonly sockets: Pick<ResponseSockets, 'drain'>
  readonly server: HttpServer
  readonly settler: Settler
  readonly log: Log
  /** Called when everything is settled and no call can come any more. */
  close(): Promise<void>
}

const LAST_CALLS_MS = 1_000

const sleep = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))

export class Drain {
  #parts: DrainParts | undefined
  #drained: Promise<void> | undefined
  #isClosed = false
  #isHurried = false
  #endDelay: (() => void) | undefined

  /** Whether the gateway is stopping, so that clients should use another one. */
  get isDraining(): boolean {
    return this.#drained !== undefined
  }

  /** Whether new calls are refused. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  connect(parts: DrainParts): void {
    this.#parts = parts
  }

  /** Accepts calls for `delayMs` more, then drains. A second call skips all waiting that it can end itself. */
  begin(delayMs: number): Promise<void> {
    const { windowMs } = this.#parts!
    if (this.#drained !== undefined) this.#hurry()
    this.#drained ??= this.#run(this.#parts!, Math.min(delayMs, windowMs))
    return this.#drained
  }

  #hurry(): void {
    this.#isHurried = true
    this.#endDelay?.()
    if (this.#isClosed) this.#endRest()
  }

  #endRest(): void {
    const refusal = new Refusal('draining', 'the drain window is over')
    void this.#parts!.activeCalls.endAll({ outcome: 'drained', refusal })
  }

  async #run(parts: DrainParts, delayMs: number): Promise<void> {
    const { windowMs, activeCalls, tasks, sockets, server, settler, log } = parts
    log.info('draining', { activeCalls: activeCalls.size })
    await this.#delay(delayMs)
    this.#isClosed = true
    sockets.drain()
    const timer = setTimeout(() => this.#endRest(), windowMs - delayMs)
    if (this.#isHurried) this.#endRest()
    const isIdle = Promise.all([activeCalls.whenIdle(), tasks.close()])
    // Closing the listener drops idle connections, and with them a request that is just arriving. So for a moment answers
    // say `connection: close` first.
    await Promise.race([isIdle, sleep(LAST_CALLS_MS)])
    server.stop()
    await isIdle
    clearTimeout(timer)
    await server.kill()
    await settler.close()
    if (settler.unsettledCalls > 0)
      log.error('unsettled calls are left to the next start', { count: settler.unsettledCalls })
    await parts.close()
    log.info('stopped')
  }

  #delay(ms: number): Promise<void> {
    if (ms <= 0) return Promise.resolve()
    return new Promise(resolve => {
      const timer = setTimeout(resolve, ms)
      this.#endDelay = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
