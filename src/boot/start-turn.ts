// Processes that start at the same time take turns in what creates something: each would create what the others create.

import { ConfigError } from '../config.ts'
import type { Jobs } from '../store/engine/store-engine.ts'

/** Longer than it takes until a process that has died meanwhile is known to be dead. */
const WAIT_MS_MAX = 60_000
const ASK_AGAIN_MS = 100

/** The only process on SQLite need not wait. */
export async function inStartTurn<T>(jobs: Pick<Jobs, 'isOurs' | 'giveBack'>, work: () => Promise<T>): Promise<T> {
  const endMs = performance.now() + WAIT_MS_MAX
  while (!(await jobs.isOurs('start'))) {
    if (performance.now() > endMs) throw new ConfigError('Another process that is starting does not get ready.')
    await new Promise(resolve => setTimeout(resolve, ASK_AGAIN_MS))
  }
  try {
    return await work()
  } finally {
    await jobs.giveBack('start')
  }
}
