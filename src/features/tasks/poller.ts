// Polls tasks when they are due, a few at a time, the longest overdue first.

import { bounds } from '../../base/bounds.ts'
import type { Log } from '../../base/log.ts'
import { describeFault } from '../../base/log.ts'
import type { TaskStore } from '../../vault/tasks.ts'
import type { TaskPolls } from './poll-task.ts'

export interface PollerParts {
  readonly tasks: TaskStore
  readonly polls: TaskPolls
  readonly log: Log
  readonly everyMs: number
  dateMs(): number
}

export class TaskPoller {
  readonly #parts: PollerParts
  #timer: ReturnType<typeof setInterval> | undefined
  #isStopped = false

  constructor(parts: PollerParts) {
    this.#parts = parts
  }

  /** At a start no task is being started, so those without an upstream id will never get one. */
  async start(): Promise<void> {
    for (const task of await this.#parts.tasks.listUnstarted()) void this.#parts.polls.poll(task).catch(() => {})
    this.#timer = setInterval(() => void this.poll(), this.#parts.everyMs)
  }

  async poll(): Promise<void> {
    const { tasks, polls, dateMs, log } = this.#parts
    if (polls.size >= bounds.taskPollsMax) return
    // What is read of these tasks may be older than what their polls write.
    const polledNow = polls.current()
    try {
      for (const task of await tasks.listDue(dateMs())) {
        if (polls.size >= bounds.taskPollsMax || this.#isStopped) return
        if (!polledNow.has(task.callId)) void polls.poll(task).catch(() => {})
      }
    } catch (fault) {
      if (!this.#isStopped) log.error('the tasks that are due cannot be read', { fault: describeFault(fault) })
    }
  }

  stop(): void {
    this.#isStopped = true
    clearInterval(this.#timer)
  }
}
