// Runs cells of the matrix: many at once, and those alone that would hold up the others or cannot be told from them.

import type { Json } from '../dialects/speaking.ts'
import { pooled } from '../support/pooled.ts'
import type { Cell } from './cells.ts'
import { cellName, faultName } from './cells.ts'
import type { FaultGateway, Ran } from './gateway.ts'
import { recordOf } from './gateway.ts'
import type { Judged } from './judging.ts'
import { LARGE } from './judging.ts'

/** Few, so that each has its time: they share one thread with the gateway and its upstream. */
const LANES = 8

/** Those that do nothing but wait need none of it. */
const WAITING = /^F(2|4|6|9|11|12|13|14) |^F16 Content-Length too long, then silence/
const WAITING_LANES = 150

export const runsAlone = ({ fault }: Cell): boolean =>
  LARGE.test(faultName(fault)) || (fault.by === 'script' && fault.script.starts === 'accept')

/** What became of them, by their numbers; of one that was never answered, why. */
export type Runs = ReadonlyMap<number, Ran | Error>

export async function runCells(gateway: FaultGateway, cells: readonly Cell[]): Promise<Runs> {
  const runs = new Map<number, Ran | Error>()
  const run = async (cell: Cell): Promise<void> => {
    runs.set(cell.number, await gateway.run(cell).catch((fault: unknown) => fault as Error))
  }
  const isWaiting = ({ fault }: Cell): boolean => WAITING.test(faultName(fault))
  await pooled(cells.filter(isWaiting), WAITING_LANES, run)
  await pooled(
    cells.filter(cell => !isWaiting(cell) && !runsAlone(cell)),
    LANES,
    run,
  )
  for (const cell of cells.filter(runsAlone)) await run(cell)
  await gateway.harness.idle()
  return runs
}

/** With its record. Throws for a cell that was not answered, or that nobody has written down. */
export function judgedOf(cell: Cell, runs: Runs, records: ReadonlyMap<number, Json>): Judged {
  const ran = runs.get(cell.number)
  if (ran === undefined || ran instanceof Error) throw ran ?? new Error(`${cellName(cell)} was not run`)
  const record = recordOf(ran, records)
  if (record === undefined) throw new Error(`${cellName(cell)} has no record`)
  return { ...ran, record }
}

/** What nobody caught while it was listened for. */
export function listenForUnhandled(): { readonly heard: readonly unknown[]; stop(): void } {
  const heard: unknown[] = []
  const note = (fault: unknown): void => void heard.push(fault)
  process.on('unhandledRejection', note)
  process.on('uncaughtException', note)
  return {
    heard,
    stop() {
      process.off('unhandledRejection', note)
      process.off('uncaughtException', note)
    },
  }
}
