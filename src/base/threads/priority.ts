// Lowers the priority of the calling worker thread, so that the thread that serves calls comes first if there are fewer
// cores than threads. A system that does not allow it changes nothing but speed.

import { dlopen, ptr } from 'bun:ffi'
import { readlinkSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'

const NICE_INCREMENT = 10
/** The highest nice value of the system. */
const NICE_MAX = 19

/** The thread gets about a tenth of a core that another thread wants for itself. */
export function lowerPriority(): void {
  try {
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1))
    setPriority(thread, Math.min(NICE_MAX, getPriority(thread) + NICE_INCREMENT))
  } catch {
    // Not possible on this system.
  }
}

const SCHED_IDLE = 5
const THIS_THREAD = 0

/**
 * The thread runs only while no other thread wants the core. A high nice value is not enough for that: Linux lets a
 * thread finish its time slice of some milliseconds before a thread that has work again, whatever their nice values.
 */
export function runOnlyWhenIdle(): void {
  lowerPriority()
  if (process.platform !== 'linux') return
  try {
    const libc = dlopen('libc.so.6', { sched_setscheduler: { args: ['int', 'int', 'ptr'], returns: 'int' } })
    const parameters = new Int32Array(1)
    libc.symbols.sched_setscheduler(THIS_THREAD, SCHED_IDLE, ptr(parameters))
  } catch {
    // Another C library. The thread keeps its nice value.
  }
}
