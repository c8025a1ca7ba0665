// The thread that sums up records. It checks by itself whether there are new records, and rests after each step, so
// that it uses at most half of a core under load and almost nothing when idle.

import { errorText, sendEvent, serveThread } from '../../base/threads/serve-thread.ts'
import type { AggregationStep } from './aggregator.ts'
import { StatisticsAggregator } from './aggregator.ts'

export interface StatisticsPaths {
  readonly database: string
  readonly statistics: string
}

export interface EndUserToErase {
  readonly endUser: string
  readonly accountId: number | undefined
}

export interface StatisticsThreadMethods {
  /** Returns when a step has succeeded. */
  ready(): void
  /** Returns when all records that are written by now are summed up. */
  catchUp(): void
  eraseEndUser(request: EndUserToErase): void
  close(): void
}

export type StatisticsEvent = { readonly step: AggregationStep } | { readonly failed: string }

const CHECK_EVERY_MS = 1_000
/** When idle, the pause is at least this many times as long as the check took. */
const IDLE_FACTOR = 20
const PRUNE_EVERY_MS = 3_600_000
/** The pause after an error; most likely the disk is full. */
const ERROR_PAUSE_MS = 30_000

let paths: StatisticsPaths
let roller: StatisticsAggregator | undefined
let timer: ReturnType<typeof setTimeout> | undefined
let prunedMs = Number.NEGATIVE_INFINITY
let hasReported = false
/** Requests that wait for a step, and those that wait until all records are summed up. */
const waiting = { ready: [] as PromiseWithResolvers<void>[], catchUp: [] as PromiseWithResolvers<void>[] }

const report = (event: StatisticsEvent): void => sendEvent(event)

function step(): number {
  const startMs = performance.now()
  roller ??= new StatisticsAggregator({ ...paths, dateMs: Date.now })
  const progress = roller.step()
  if (progress.records > 0 || waiting.catchUp.length > 0 || !hasReported) report({ step: progress })
  hasReported = true
  for (const { resolve } of waiting.ready.splice(0)) resolve()
  if (progress.upToDate) for (const { resolve } of waiting.catchUp.splice(0)) resolve()
  if (progress.upToDate && startMs - prunedMs > PRUNE_EVERY_MS) {
    prunedMs = startMs
    roller.prune()
  }
  const tookMs = performance.now() - startMs
  if (!progress.upToDate) return tookMs
  return Math.max(CHECK_EVERY_MS, IDLE_FACTOR * tookMs)
}

/** Closes the files after an error; the next step opens them again, and no record is lost. */
function handleError(fault: unknown): number {
  roller?.close()
  roller = undefined
  report({ failed: errorText(fault) })
  for (const { reject } of [...waiting.ready.splice(0), ...waiting.catchUp.splice(0)]) reject(fault)
  return ERROR_PAUSE_MS
}

function runStep(): void {
  let pauseMs: number
  try {
    pauseMs = step()
  } catch (fault) {
    pauseMs = handleError(fault)
  }
  runStepIn(pauseMs)
}

function runStepIn(ms: number): void {
  clearTimeout(timer)
  timer = setTimeout(runStep, ms)
}

function waitFor(list: PromiseWithResolvers<void>[]): Promise<void> {
  const request = Promise.withResolvers<void>()
  list.push(request)
  clearTimeout(timer)
  runStep()
  return request.promise
}

function eraseEndUser({ endUser, accountId }: EndUserToErase): void {
  runStepIn(0)
  try {
    roller ??= new StatisticsAggregator({ ...paths, dateMs: Date.now })
    roller.eraseEndUser(endUser, accountId)
  } catch (fault) {
    handleError(fault)
    throw fault
  }
}

function close(): void {
  clearTimeout(timer)
  roller?.close()
  roller = undefined
}

serveThread<StatisticsThreadMethods, StatisticsPaths>(setup => {
  paths = setup
  runStepIn(0)
  return {
    ready: () => waitFor(waiting.ready),
    catchUp: () => waitFor(waiting.catchUp),
    eraseEndUser,
    close,
  }
})
