// Two kinds of load. In a closed loop each caller waits for its answer before it asks again: it finds out how much can
// be served. In an open loop calls come at a rate, whatever becomes of them, as they do when many callers do not know
// of each other; each is timed from the moment at which it was due.

import { percentile } from '../../../bench/measures/figures.ts'
import { Line } from './line.ts'

export interface Tally {
  readonly seconds: number
  /** Answers a second, by status. */
  readonly perSecond: Readonly<Record<string, number>>
  ms(status: number, share: number): number
  readonly count: Readonly<Record<string, number>>
}

class Tallying {
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

export interface Closed {
  readonly port: number
  readonly callers: number
  readonly seconds: number
  /** Not counted. */
  readonly warmSeconds: number
  request(at: number): Buffer
}

export async function closedLoop({ port, callers, seconds, warmSeconds, request }: Closed): Promise<Tally> {
  const tally = new Tallying()
  const beginMs = performance.now() + warmSeconds * 1_000
  const endMs = beginMs + seconds * 1_000
  let at = 0
  async function call(): Promise<void> {
    let line: Line | undefined
    while (performance.now() < endMs) {
      line = line?.isOpen ? line : await Line.open(port)
      if (line === undefined) return
      const { status, ms } = await line.send(request(at++))
      const nowMs = performance.now()
      if (nowMs >= beginMs && nowMs < endMs) tally.note(status, ms)
      if (status !== 200) await Bun.sleep(50)
    }
    line?.close()
  }
  await Promise.all(Array.from({ length: callers }, call))
  return tally.end(seconds)
}

export interface Stream {
  readonly perSecond: number
  request(at: number): Buffer
}

export interface Open {
  readonly port: number
  readonly seconds: number
  readonly warmSeconds: number
  /** Several kinds of callers at once. */
  readonly streams: readonly Stream[]
  /** Connections of each; a call for which none is left is not sent, and counted as status -1. */
  readonly linesMax: number
}

const TICK_MS = 2

/** The tallies of the streams, in their order. */
export async function openLoop({ port, seconds, warmSeconds, streams, linesMax }: Open): Promise<readonly Tally[]> {
  const startMs = performance.now()
  const beginMs = startMs + warmSeconds * 1_000
  const endMs = beginMs + seconds * 1_000
  const runs = streams.map(async ({ perSecond, request }) => {
    const tally = new Tallying()
    const idle: Line[] = []
    let [lines, sent] = [0, 0]
    const isCounted = (dueMs: number): boolean => dueMs >= beginMs && dueMs < endMs
    async function send(dueMs: number): Promise<void> {
      let line = idle.pop()
      while (line !== undefined && !line.isOpen) {
        lines--
        line = idle.pop()
      }
      if (line === undefined && lines >= linesMax) {
        if (isCounted(dueMs)) tally.note(-1, 0)
        return
      }
      if (line === undefined) {
        lines++
        line = await Line.open(port)
      }
      if (line === undefined) {
        lines--
        if (isCounted(dueMs)) tally.note(0, performance.now() - dueMs)
        return
      }
      const { status } = await line.send(request(sent))
      if (isCounted(dueMs)) tally.note(status, performance.now() - dueMs)
      if (line.isOpen) idle.push(line)
      else lines--
    }
    while (performance.now() < endMs) {
      // The first is due at once: one that is sent only when the next is due would seem later by a whole interval.
      const due = 1 + Math.floor(((performance.now() - startMs) * perSecond) / 1_000)
      for (; sent < due; sent++) void send(startMs + (sent * 1_000) / perSecond)
      await Bun.sleep(TICK_MS)
    }
    const graceMs = performance.now() + 10_000
    while (idle.length < lines && performance.now() < graceMs) await Bun.sleep(20)
    for (const line of idle) line.close()
    return tally.end(seconds)
  })
  return await Promise.all(runs)
}
