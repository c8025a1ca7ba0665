// What the gateway gets from outside itself: time, its log, and how long it waits. A test may replace any of it.

import type { Clock } from './base/clock.ts'
import { systemClock } from './base/clock.ts'
import type { BodyBounds } from './http/body.ts'
import { defaultBodyBounds } from './http/body.ts'
import type { GuardedFetchOptions } from './http/guarded-fetch.ts'
import type { Silence } from './pipeline/answer-stream.ts'
import type { AttemptTimes } from './pipeline/attempt.ts'
import { defaultAttemptTimes } from './pipeline/attempt.ts'

export interface World {
  readonly clock: Clock
  readonly attemptTimes: AttemptTimes
  /** How what callers name by an address is fetched. */
  readonly media?: GuardedFetchOptions
  /** Else as the settings say. */
  readonly silence?: Silence
  /** How often it is looked for tasks that are due. */
  readonly tasksEveryMs: number
  readonly bodyBounds: BodyBounds
  /** How long a connection may be idle after an answer. */
  readonly answeredSeconds: number
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
  attemptTimes: defaultAttemptTimes,
  tasksEveryMs: 1_000,
  bodyBounds: defaultBodyBounds,
  answeredSeconds: 30,
  chance: Math.random,
  pause: ms => new Promise(resolve => setTimeout(resolve, ms)),
  writeLog: line => void process.stderr.write(line),
  onLedgerLost: () => process.exit(1),
}
