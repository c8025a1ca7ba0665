// How the gateway stops: it says at once that it is not ready, takes calls for a while longer, then no more; lets those
// under way end, ends the rest when its window is over, and closes when all are settled.

import { Refusal } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { TaskService } from '../features/tasks/tasks.ts'
import type { Listening } from '../http/server/server.ts'
import type { UnderWay } from '../pipeline/lifetime/active-calls.ts'
import type { Settling } from '../pipeline/settle/settle.ts'

export interface DrainParts {
  /** From the signal on: how long calls under way may last. */
  readonly windowMs: number
  readonly underWay: UnderWay
  readonly tasks: Pick<TaskService, 'hurry' | 'close'>
  readonly server: Listening
  readonly settling: Settling
  readonly log: Log
  /** Everything is settled, and nobody will call again. */
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

  /** It is about to stop: whoever can should call elsewhere. */
  get isLeaving(): boolean {
    return this.#drained !== undefined
  }

  /** No new call is taken. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  follow(parts: DrainParts): void {
    this.#parts = parts
  }

  /** Calls are taken for `delayMs` more. Told a second time, it waits for nothing that it can end itself. */
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
    const { underWay, tasks } = this.#parts!
    underWay.endAll({ outcome: 'drained', refusal: new Refusal('draining', 'the window is over') })
    tasks.hurry()
  }

  async #run(parts: DrainParts, delayMs: number): Promise<void> {
    const { windowMs, underWay, tasks, server, settling, log } = parts
    log.info('draining', { underWay: underWay.size })
    await this.#delay(delayMs)
    this.#isClosed = true
    const timer = setTimeout(() => this.#endRest(), windowMs - delayMs)
    if (this.#isHurried) this.#endRest()
    const isIdle = Promise.all([underWay.whenIdle(), tasks.close()])
    // A listener that is closed drops the connections that wait for their next call, with a call that is on its way on
    // one of them. So whoever calls is first told, for a moment, that this was the last on its connection.
    await Promise.race([isIdle, sleep(LAST_CALLS_MS)])
    server.stop()
    await isIdle
    clearTimeout(timer)
    await server.kill()
    await settling.close()
    if (settling.owing > 0) log.error('calls left to the next start', { count: settling.owing })
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
