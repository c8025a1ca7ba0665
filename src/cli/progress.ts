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

export function openProgress(isWanted: boolean, out: NodeJS.WriteStream = process.stderr): ShowProgress {
  const { isTTY = false } = out
  if (!isWanted && !isTTY) return async (_, run) => await run()
  const sinceMs = performance.now()
  return async function during({ label, detail = () => '' }, run) {
    function show(): void {
      const seconds = Math.round((performance.now() - sinceMs) / 1_000)
      const text = [`${label} …`, `${seconds} s`, detail()].filter(part => part !== '').join('  ')
      out.write(isTTY ? LINE_START + text : `${text}\n`)
    }
    show()
    const timer = setInterval(show, EVERY_MS)
    try {
      return await run()
    } finally {
      clearInterval(timer)
      if (isTTY) out.write(LINE_START)
    }
  }
}

/** The total size of the files in a folder, as text. */
export function writtenSize(folder: string): string {
  try {
    const sizes = readdirSync(folder).map(name => statSync(join(folder, name)).size)
    return `${Math.round(sizes.reduce((sum, size) => sum + size, 0) / MEGABYTE)} MB`
  } catch {
    return ''
  }
}
