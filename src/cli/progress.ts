// How far long work has come, on stderr: for whoever sits before a terminal, or says --progress. What is printed in the
// end, and what reads it, does not see any of it.

import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

export interface Step {
  readonly doing: string
  /** How far it is. */
  more?(): string
}

/** Says what is done while it is. */
export type During = <T>(step: Step, run: () => T | Promise<T>) => Promise<T>

const EVERY_MS = 1_000
const LINE_START = '\r\u001b[2K'
const MEGABYTE = 1024 * 1024

export function openProgress(isAsked: boolean, out: NodeJS.WriteStream = process.stderr): During {
  const { isTTY = false } = out
  if (!isAsked && !isTTY) return async (_, run) => await run()
  const sinceMs = performance.now()
  return async function during({ doing, more = () => '' }, run) {
    function tell(): void {
      const seconds = Math.round((performance.now() - sinceMs) / 1_000)
      const text = [`${doing} …`, `${seconds} s`, more()].filter(part => part !== '').join('  ')
      out.write(isTTY ? LINE_START + text : `${text}\n`)
    }
    tell()
    const timer = setInterval(tell, EVERY_MS)
    try {
      return await run()
    } finally {
      clearInterval(timer)
      if (isTTY) out.write(LINE_START)
    }
  }
}

/** How much has been written to a folder so far. */
export function writtenTo(folder: string): string {
  try {
    const sizes = readdirSync(folder).map(name => statSync(join(folder, name)).size)
    return `${Math.round(sizes.reduce((sum, size) => sum + size, 0) / MEGABYTE)} MB`
  } catch {
    return ''
  }
}
