// Makes a worker thread modest: a low priority and short time slices, so that the thread that serves calls comes first if
// there are fewer cores than threads. A system that does not allow it changes nothing but speed.
//
// No thread has the policy that runs it only while the core is idle (SCHED_IDLE). The threads of the collector and of the
// compiler, which all threads of the process share, are started by whichever thread needs them first, and inherit its
// policy. On a busy machine the thread that serves calls then waits for them, for seconds.

import { dlopen, ptr } from 'bun:ffi'
import { readlinkSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'

const NICE_INCREMENT = 10
/** The highest nice value of the system. */
const NICE_MAX = 19
/** By default a thread finishes a slice of some milliseconds before a thread that has work again, whatever their nice values. */
const SLICE_NS = 100_000n

const THIS_THREAD = 0
/** The number of the system call sched_setattr. */
const SCHED_SETATTR: Readonly<Record<string, number>> = { x64: 314, arm64: 274 }
/** Of the first version of `struct sched_attr`. */
const ATTRIBUTES_BYTES = 48

/** The thread gets about a tenth of a core that another thread wants for itself. */
export function lowerPriority(): void {
  try {
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1))
    const nice = Math.min(NICE_MAX, getPriority(thread) + NICE_INCREMENT)
    setPriority(thread, nice)
    shortenSlices(nice)
  } catch {
    // Not possible on this system.
  }
}

function shortenSlices(nice: number): void {
  const number = SCHED_SETATTR[process.arch]
  if (number === undefined) return
  try {
    const attributes = new DataView(new ArrayBuffer(ATTRIBUTES_BYTES))
    attributes.setUint32(0, ATTRIBUTES_BYTES, true)
    attributes.setInt32(16, nice, true)
    // Linux before 6.12 ignores it.
    attributes.setBigUint64(24, SLICE_NS, true)
    const libc = dlopen('libc.so.6', { syscall: { args: ['int', 'int', 'ptr', 'int'], returns: 'int' } })
    libc.symbols.syscall(number, THIS_THREAD, ptr(attributes), 0)
  } catch {
    // Another C library.
  }
}

/** How much time of a core the calling thread has used so far, in milliseconds. */
export function usedCoreMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}
