// Polls tasks when they are due, a few at a time, the longest overdue first.

import { bounds } from '../../base/bounds.ts'
import type { Tasks } from '../../vault/tasks.ts'
import type { Looking } from './poll-task.ts'

export interface PollerParts {
  readonly tasks: Tasks
  readonly looking: Looking
  readonly everyMs: number
  dateMs(): number
}

export class TaskPoller {
  readonly #parts: PollerParts
  #timer: ReturnType<typeof setInterval> | undefined

  constructor(parts: PollerParts) {
    this.#parts = parts
  }

  /** At a start no task is being started, so those without an upstream id will never get one. */
  start(): void {
    for (const task of this.#parts.tasks.unbegun()) void this.#parts.looking.look(task).catch(() => {})
    this.#timer = setInterval(() => this.poll(), this.#parts.everyMs)
  }

  poll(): void {
    const { tasks, looking, dateMs } = this.#parts
    if (looking.underWay >= bounds.taskLooksMax) return
    for (const task of tasks.due(dateMs())) {
      if (looking.underWay >= bounds.taskLooksMax) return
      if (!looking.isLookedAt(task.callId)) void looking.look(task).catch(() => {})
    }
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
