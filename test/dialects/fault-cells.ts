// Runs faults for callers of any dialect, many at once: each cell says in its prompt which fault it is to get.

import { dialects as wires } from '../../src/fake-upstream/dialects.ts'
import type { Fault, FaultSettings } from '../../src/fake-upstream/faults.ts'
import { buildFaults } from '../../src/fake-upstream/faults.ts'
import type { ReceivedRequest } from '../../src/fake-upstream/request.ts'
import { scripted } from '../../src/fake-upstream/script.ts'
import type { Caller } from '../forwarding/caller.ts'
import { openRaw } from '../forwarding/caller.ts'
import type { Harness } from '../support/gateway.ts'
import type { Speaker } from './speaking.ts'
import { requestOf } from './speaking.ts'
import type { Dialect } from './upstreams.ts'
import { modelOf } from './upstreams.ts'

export interface Pair {
  readonly caller: Speaker
  readonly upstream: Dialect
}

export interface FaultCell extends Pair {
  readonly number: number
  readonly fault: Fault
  readonly stream: boolean
}

export const cellName = ({ fault, stream }: FaultCell): string =>
  `${fault.id} ${fault.name}, ${stream ? 'streamed' : 'plain'}`

const wireOf = (dialect: Dialect) => wires.find(({ name }) => name === dialect)!

let numbers = 0

export function cellsOf(pair: Pair, settings: Partial<FaultSettings>): readonly FaultCell[] {
  return buildFaults(wireOf(pair.upstream), settings).flatMap(fault =>
    [false, true]
      .filter(stream => fault.asks === 'either' || (fault.asks === 'stream') === stream)
      .map(stream => ({ ...pair, number: numbers++, fault, stream })),
  )
}

export interface CellRun {
  readonly seen: Caller
  readonly ms: number
}

const mark = (number: number): string => `cell-${number}-`

/** Of scripts that begin before there is a request nobody can tell whose they are: those run alone. */
export const runsAlone = ({ fault }: FaultCell): boolean => fault.script.starts !== 'request'

export class FaultRuns {
  readonly #harness: Harness
  readonly #key: string
  readonly #cells: ReadonlyMap<number, FaultCell>

  constructor(harness: Harness, key: string, cells: readonly FaultCell[]) {
    this.#harness = harness
    this.#key = key
    this.#cells = new Map(cells.map(cell => [cell.number, cell]))
    harness.upstream.planModel('echo', scripted(request => this.#cellOf(request).fault.script.steps(request)))
  }

  #cellOf({ body }: ReceivedRequest): FaultCell {
    const number = Number(/cell-(\d+)-/.exec(Buffer.from(body).toString())?.[1])
    return this.#cells.get(number)!
  }

  async run(cell: FaultCell, withinMs: number): Promise<CellRun> {
    if (runsAlone(cell)) this.#harness.upstream.plan(cell.fault.script)
    const asked = { model: modelOf(cell.upstream), stream: cell.stream, text: `${mark(cell.number)} x` }
    const sinceMs = performance.now()
    const seen = await openRaw(this.#harness.url, requestOf(cell.caller, this.#key, asked)).whole(withinMs)
    return { seen, ms: performance.now() - sinceMs }
  }
}

/** So many at once, in order. */
export async function pooled<T>(items: readonly T[], width: number, work: (item: T) => Promise<void>): Promise<void> {
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < items.length) await work(items[next++]!)
  }
  await Promise.all(Array.from({ length: width }, lane))
}
