// The thread that sums up records. It looks by itself whether there are more, and rests after each step, so that it
// takes at most half of a core when there is much to do, and next to nothing when there is little.

import type { RollStep } from './roller.ts'
import { Roller } from './roller.ts'

export interface RollingPaths {
  readonly database: string
  readonly statistics: string
}

export type ToRolling =
  | { readonly open: RollingPaths }
  /** Tell when all that had been written by now is summed up. */
  | { readonly catchUp: true }
  | { readonly eraseEndUser: { readonly endUser: string; readonly accountId: number | undefined } }
  | { readonly close: true }

export type FromRolling =
  | { readonly step: RollStep }
  | { readonly caughtUp: true }
  | { readonly erased: true }
  | { readonly failed: string }
  | { readonly closed: true }

declare const self: Worker

const LOOK_MS = 1_000
/** Of the time until the next look, this part at most is spent on looking. */
const QUIET_PART = 20
const PRUNE_MS = 3_600_000
/** After something went wrong; most likely the disk is full. */
const TROUBLE_MS = 30_000

let paths: RollingPaths
let roller: Roller | undefined
let timer: ReturnType<typeof setTimeout> | undefined
let prunedMs = Number.NEGATIVE_INFINITY
let asked = 0
let told = false

const answer = (message: FromRolling): void => postMessage(message)

function step(): number {
  const startMs = performance.now()
  roller ??= new Roller({ ...paths, dateMs: Date.now })
  const done = roller.step()
  if (done.records > 0 || asked > 0 || !told) answer({ step: done })
  told = true
  if (done.upToDate) for (; asked > 0; asked--) answer({ caughtUp: true })
  if (done.upToDate && startMs - prunedMs > PRUNE_MS) {
    prunedMs = startMs
    roller.prune()
  }
  const tookMs = performance.now() - startMs
  if (!done.upToDate) return tookMs
  return Math.max(LOOK_MS, QUIET_PART * tookMs)
}

/** What is wrong may pass: the file is opened again, and nothing is lost meanwhile. */
function trouble(fault: unknown): number {
  roller?.close()
  roller = undefined
  answer({ failed: fault instanceof Error ? fault.message : 'unknown fault' })
  asked = 0
  return TROUBLE_MS
}

function look(): void {
  let pauseMs: number
  try {
    pauseMs = step()
  } catch (fault) {
    pauseMs = trouble(fault)
  }
  timer = setTimeout(look, pauseMs)
}

function erase({ endUser, accountId }: { endUser: string; accountId: number | undefined }): void {
  try {
    roller ??= new Roller({ ...paths, dateMs: Date.now })
    roller.eraseEndUser(endUser, accountId)
    answer({ erased: true })
  } catch (fault) {
    trouble(fault)
  }
}

self.onmessage = ({ data: message }: MessageEvent<ToRolling>) => {
  clearTimeout(timer)
  if ('open' in message) paths = message.open
  else if ('catchUp' in message) asked++
  else if ('eraseEndUser' in message) erase(message.eraseEndUser)
  else {
    roller?.close()
    roller = undefined
    return answer({ closed: true })
  }
  look()
}
