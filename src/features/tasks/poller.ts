// Polls tasks when they are due, a few at a time, the longest overdue first.

import { bounds } from '../../base/bounds.ts'
import type { TaskStore } from '../../vault/tasks.ts'
import type { TaskPolls } from './poll-task.ts'

export interface PollerParts {
  readonly tasks: TaskStore
  readonly polls: TaskPolls
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
    for (const task of this.#parts.tasks.listUnstarted()) void this.#parts.polls.poll(task).catch(() => {})
    this.#timer = setInterval(() => this.poll(), this.#parts.everyMs)
  }

  poll(): void {
    const { tasks, polls, dateMs } = this.#parts
    if (polls.size >= bounds.taskPollsMax) return
    for (const task of tasks.listDue(dateMs())) {
      if (polls.size >= bounds.taskPollsMax) return
      if (!polls.isPolling(task.callId)) void polls.poll(task).catch(() => {})
    }
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
