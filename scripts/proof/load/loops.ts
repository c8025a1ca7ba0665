// Two kinds of load. In a closed loop, each caller waits for its answer before it sends the next call: this measures how
// many calls the gateway can serve. In an open loop, calls are sent at a fixed rate and do not wait for answers, like
// those of many independent callers; each call is timed from the moment at which it was due.

import { percentile } from '../../../bench/measures/figures.ts'
import { CallerConnection } from './caller-connection.ts'

export interface Tally {
  readonly seconds: number
  /** Answers per second, by status. */
  readonly perSecond: Readonly<Record<string, number>>
  ms(status: number, share: number): number
  readonly count: Readonly<Record<string, number>>
}

class TallyBuilder {
  readonly #ms = new Map<number, number[]>()

  note(status: number, ms: number): void {
    const list = this.#ms.get(status)
    if (list === undefined) this.#ms.set(status, [ms])
    else list.push(ms)
  }

  end(seconds: number): Tally {
    const sorted = new Map([...this.#ms].map(([status, list]) => [status, Float64Array.from(list).sort()]))
    const count = Object.fromEntries([...sorted].map(([status, list]) => [String(status), list.length]))
    return {
      seconds,
      count,
      perSecond: Object.fromEntries(Object.entries(count).map(([status, n]) => [status, n / seconds])),
      ms: (status, share) => percentile(sorted.get(status) ?? new Float64Array(), share),
    }
  }
}

export interface ClosedLoop {
  readonly port: number
  readonly callers: number
  readonly seconds: number
  /** Calls of this time, before the others, are not counted. */
  readonly warmSeconds: number
  request(at: number): Buffer
}

export async function closedLoop({ port, callers, seconds, warmSeconds, request }: ClosedLoop): Promise<Tally> {
  const tally = new TallyBuilder()
  const beginMs = performance.now() + warmSeconds * 1_000
  const endMs = beginMs + seconds * 1_000
  let at = 0
  async function call(): Promise<void> {
    let connection: CallerConnection | undefined
    while (performance.now() < endMs) {
      connection = connection?.isOpen ? connection : await CallerConnection.open(port)
      if (connection === undefined) return
      const { status, ms } = await connection.send(request(at++))
      const nowMs = performance.now()
      if (nowMs >= beginMs && nowMs < endMs) tally.note(status, ms)
      if (status !== 200) await Bun.sleep(50)
    }
    connection?.close()
  }
  await Promise.all(Array.from({ length: callers }, call))
  return tally.end(seconds)
}

export interface CallStream {
  readonly perSecond: number
  request(at: number): Buffer
}

export interface OpenLoop {
  readonly port: number
  readonly seconds: number
  readonly warmSeconds: number
  /** Several kinds of callers at the same time. */
  readonly streams: readonly CallStream[]
  /** Connections of each stream. A call without a free connection is not sent and counts as status -1. */
  readonly connectionsMax: number
}

const TICK_MS = 2

/** The tallies of the streams, in their order. */
export async function openLoop({
  port,
  seconds,
  warmSeconds,
  streams,
  connectionsMax,
}: OpenLoop): Promise<readonly Tally[]> {
  const startMs = performance.now()
  const beginMs = startMs + warmSeconds * 1_000
  const endMs = beginMs + seconds * 1_000
  const runs = streams.map(async ({ perSecond, request }) => {
    const tally = new TallyBuilder()
    const idle: CallerConnection[] = []
    let [opened, sent] = [0, 0]
    const isCounted = (dueMs: number): boolean => dueMs >= beginMs && dueMs < endMs
    async function send(dueMs: number): Promise<void> {
      let connection = idle.pop()
      while (connection !== undefined && !connection.isOpen) {
        opened--
        connection = idle.pop()
      }
      if (connection === undefined && opened >= connectionsMax) {
        if (isCounted(dueMs)) tally.note(-1, 0)
        return
      }
      if (connection === undefined) {
        opened++
        connection = await CallerConnection.open(port)
      }
      if (connection === undefined) {
        opened--
        if (isCounted(dueMs)) tally.note(0, performance.now() - dueMs)
        return
      }
      const { status } = await connection.send(request(sent))
      if (isCounted(dueMs)) tally.note(status, performance.now() - dueMs)
      if (connection.isOpen) idle.push(connection)
      else opened--
    }
    while (performance.now() < endMs) {
      // The first call is due at once. If it were sent only when the second is due, its time would include an interval.
      const due = 1 + Math.floor(((performance.now() - startMs) * perSecond) / 1_000)
      for (; sent < due; sent++) void send(startMs + (sent * 1_000) / perSecond)
      await Bun.sleep(TICK_MS)
    }
    const graceMs = performance.now() + 10_000
    while (idle.length < opened && performance.now() < graceMs) await Bun.sleep(20)
    for (const connection of idle) connection.close()
    return tally.end(seconds)
  })
  return await Promise.all(runs)
}
