// The thread that sums up records. It checks by itself whether there are new records, and rests after each step, so
// that it uses at most half of a core under load and almost nothing when idle.

import type { AggregationStep } from './aggregator.ts'
import { StatisticsAggregator } from './aggregator.ts'

export interface StatisticsPaths {
  readonly database: string
  readonly statistics: string
}

export type StatisticsMessage =
  | { readonly open: StatisticsPaths }
  /** Reply when all records that are written by now are summed up. */
  | { readonly catchUp: true }
  | { readonly eraseEndUser: { readonly endUser: string; readonly accountId: number | undefined } }
  | { readonly close: true }

export type StatisticsReply =
  | { readonly step: AggregationStep }
  | { readonly caughtUp: true }
  | { readonly erased: true }
  | { readonly failed: string }
  | { readonly closed: true }

declare const self: Worker

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
let waitingCatchUps = 0
let hasReported = false

const reply = (message: StatisticsReply): void => postMessage(message)

function step(): number {
  const startMs = performance.now()
  roller ??= new StatisticsAggregator({ ...paths, dateMs: Date.now })
  const progress = roller.step()
  if (progress.records > 0 || waitingCatchUps > 0 || !hasReported) reply({ step: progress })
  hasReported = true
  if (progress.upToDate) for (; waitingCatchUps > 0; waitingCatchUps--) reply({ caughtUp: true })
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
  reply({ failed: fault instanceof Error ? fault.message : 'unknown error' })
  waitingCatchUps = 0
  return ERROR_PAUSE_MS
}

function runStep(): void {
  let pauseMs: number
  try {
    pauseMs = step()
  } catch (fault) {
    pauseMs = handleError(fault)
  }
  timer = setTimeout(runStep, pauseMs)
}

function erase({ endUser, accountId }: { endUser: string; accountId: number | undefined }): void {
  try {
    roller ??= new StatisticsAggregator({ ...paths, dateMs: Date.now })
    roller.eraseEndUser(endUser, accountId)
    reply({ erased: true })
  } catch (fault) {
    handleError(fault)
  }
}

self.onmessage = ({ data: message }: MessageEvent<StatisticsMessage>) => {
  clearTimeout(timer)
  if ('open' in message) paths = message.open
  else if ('catchUp' in message) waitingCatchUps++
  else if ('eraseEndUser' in message) erase(message.eraseEndUser)
  else {
    roller?.close()
    roller = undefined
    return reply({ closed: true })
  }
  runStep()
}
