// Reads from /proc the CPU and the memory that a process and its descendants use.

import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

const ticksPerSecond = Number(spawnSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }).stdout.trim() || '100')

interface Stat {
  readonly pid: number
  readonly parent: number
  readonly ticks: number
}

function readStat(pid: number): Stat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name, in parentheses, may contain any character, also a parenthesis.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return { pid, parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]) }
  } catch {
    return undefined
  }
}

/** The process and all of its descendants. */
export function tree(pid: number): readonly number[] {
  const pids = readdirSync('/proc').map(Number).filter(Number.isInteger)
  const stats = pids.map(readStat).filter(stat => stat !== undefined)
  const found = [pid]
  for (const parent of found) for (const stat of stats) if (stat.parent === parent) found.push(stat.pid)
  return found
}

/** User and system time of all threads, in seconds. */
export function cpuSeconds(pid: number): number {
  const ticks = tree(pid).reduce((sum, one) => sum + (readStat(one)?.ticks ?? 0), 0)
  return ticks / ticksPerSecond
}

/**
 * The CPU time of each thread of a process, by the name of the thread; threads with the same name are added up. It is read
 * from schedstat, in nanoseconds, because a tick of the file `stat` is 2 % of half a second.
 */
export function cpuSecondsByThread(pid: number): ReadonlyMap<string, number> {
  const seconds = new Map<string, number>()
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const read = (file: string): string => readFileSync(`/proc/${pid}/task/${thread}/${file}`, 'latin1')
    const name = thread === String(pid) ? 'main' : read('comm').trim()
    const used = Number(read('schedstat').split(' ')[0]) / 1e9
    seconds.set(name, (seconds.get(name) ?? 0) + used)
  }
  return seconds
}

function megabytes(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const bytes = tree(pid).map(one => {
    try {
      const status = readFileSync(`/proc/${one}/status`, 'latin1')
      return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0) * 1024
    } catch {
      return 0
    }
  })
  return bytes.reduce((sum, one) => sum + one, 0) / 1_000_000
}

/** The present resident memory, in MB of a million bytes. */
export const memoryNow = (pid: number): number => megabytes(pid, 'VmRSS')

/** The peak of the resident memory since the process started. */
export const memoryPeak = (pid: number): number => megabytes(pid, 'VmHWM')

export const cpuModel = (): string =>
  /^model name\s*: (.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1]?.trim() ?? 'unknown'
