// Loads a subject: a fixed number of calls over a fixed number of connections, within a bounded time.

import type { Call, Timing } from './connection.ts'
import { Connection } from './connection.ts'

export interface Sample {
  readonly calls: number
  readonly wallSeconds: number
  /** Sorted by size. */
  readonly firstMs: Float64Array
  readonly totalMs: Float64Array
}

/** Each connection makes one call after the other, all connections at the same time. */
export class Load {
  readonly #connections: readonly Connection[]
  readonly #calls: readonly Call[]
  #turn = 0

  private constructor(connections: readonly Connection[], calls: readonly Call[]) {
    this.#connections = connections
    this.#calls = calls
  }

  static async open(port: number, connections: number, calls: readonly Call[]): Promise<Load> {
    const opened = await Promise.all(Array.from({ length: connections }, () => Connection.open(port)))
    return new Load(opened, calls)
  }

  /** Makes the calls in turn and continues where the last run ended. The first wrong answer ends the run. */
  async run(count: number, secondsMax: number): Promise<Sample> {
    const timings: Timing[] = []
    let left = count
    const work = async (connection: Connection): Promise<void> => {
      while (left-- > 0) timings.push(await connection.send(this.#calls[this.#turn++ % this.#calls.length]!))
    }
    const startMs = performance.now()
    await within(secondsMax, Promise.all(this.#connections.map(work)))
    return sampleOf(timings, startMs)
  }

  close(): void {
    for (const connection of this.#connections) connection.close()
  }
}

export interface SimultaneousCalls {
  readonly port: number
  readonly count: number
  readonly calls: readonly Call[]
  /** The calls begin evenly over this time. */
  readonly rampMs: number
  readonly secondsMax: number
}

/** Makes each call on its own connection, all of them at the same time. */
export async function runSimultaneously(parts: SimultaneousCalls): Promise<Sample & { activeMax: number }> {
  const { port, count, calls, rampMs, secondsMax } = parts
  const timings: Timing[] = []
  const opened: Connection[] = []
  let active = 0
  let activeMax = 0
  const one = async (index: number): Promise<void> => {
    await Bun.sleep((index * rampMs) / count)
    const connection = await Connection.open(port)
    opened.push(connection)
    activeMax = Math.max(activeMax, ++active)
    timings.push(await connection.send(calls[index % calls.length]!))
    active--
    connection.close()
  }
  const startMs = performance.now()
  try {
    await within(secondsMax, Promise.all(Array.from({ length: count }, (_, index) => one(index))))
  } finally {
    for (const connection of opened) connection.close()
  }
  return { ...sampleOf(timings, startMs), activeMax }
}

function sampleOf(timings: readonly Timing[], startMs: number): Sample {
  return {
    calls: timings.length,
    wallSeconds: (performance.now() - startMs) / 1_000,
    firstMs: Float64Array.from(timings, timing => timing.firstMs).sort(),
    totalMs: Float64Array.from(timings, timing => timing.totalMs).sort(),
  }
}

async function within<Result>(seconds: number, work: Promise<Result>): Promise<Result> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`The load did not end within ${seconds} s.`)), seconds * 1_000)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
