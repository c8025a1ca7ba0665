// Shows the progress of long work on stderr, in a terminal or with --progress. Standard output holds only the result.

import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

export interface ProgressStep {
  readonly label: string
  /** How far the work is, such as "12 MB". */
  detail?(): string
}

/** Runs some work and shows its progress meanwhile. */
export type ShowProgress = <T>(step: ProgressStep, run: () => T | Promise<T>) => Promise<T>

const EVERY_MS = 1_000
const LINE_START = '\r\u001b[2K'
const MEGABYTE = 1024 * 1024

/** The steps that run now. Only the last shows its progress: it is part of those before it. */
const running: ProgressStep[] = []

export function openProgress(isWanted: boolean): ShowProgress {
  const out = process.stderr
  const { isTTY = false } = out
  if (!isWanted && !isTTY) return async (_, run) => await run()
  const sinceMs = performance.now()
  return async function during(step, run) {
    const { label, detail = () => '' } = step
    function show(): void {
      if (running.at(-1) !== step) return
      const seconds = Math.round((performance.now() - sinceMs) / 1_000)
      const text = [`${label} …`, `${seconds} s`, detail()].filter(part => part !== '').join('  ')
      out.write(isTTY ? LINE_START + text : `${text}\n`)
    }
    running.push(step)
    show()
    const timer = setInterval(show, EVERY_MS)
    try {
      return await run()
    } finally {
      clearInterval(timer)
      running.splice(running.indexOf(step), 1)
      if (isTTY) out.write(LINE_START)
    }
  }
}

/** How much of a copy is written, such as "12 MB" or "12 of 340 MB"; empty if it cannot be read. */
export function writtenSize(folder: string, original?: string): string {
  const [written, whole] = [sizeOf(folder), original === undefined ? undefined : sizeOf(original)]
  return written === undefined ? '' : `${written}${whole === undefined ? '' : ` of ${whole}`} MB`
}

/** The size of the files in a folder in megabytes. */
function sizeOf(folder: string): number | undefined {
  try {
    const sizes = readdirSync(folder).map(name => statSync(join(folder, name)).size)
    return Math.round(sizes.reduce((sum, size) => sum + size, 0) / MEGABYTE)
  } catch {
    return undefined
  }
}
