// Runs cells of the matrix, many at once. Cells that would delay the others, or that the fake upstream could not recognise,
// run alone.

import type { Json } from '../dialects/raw-callers.ts'
import { pooled } from '../support/pooled.ts'
import type { Cell } from './cells.ts'
import { cellName, faultName } from './cells.ts'
import type { CellRun, FaultGateway } from './gateway.ts'
import { recordOf } from './gateway.ts'
import type { RecordedRun } from './run-checks.ts'
import { LARGE } from './run-checks.ts'

/** A run of all cells that takes longer hangs. It is no bound on speed: a busy machine may be very slow. */
export const ALL_CELLS_MS = 1_800_000

/** Few cells at once, because they share one thread with the gateway and its upstream. */
const PARALLEL = 8

/** Cells that only wait need no processor time. */
const WAITING = /^F(2|4|6|9|11|12|13|14) |^F16 Content-Length too long, then silence/
const WAITING_PARALLEL = 150

export const runsAlone = ({ fault }: Cell): boolean =>
  LARGE.test(faultName(fault)) || (fault.by === 'script' && fault.script.starts === 'accept')

/** The runs by the number of their cell; an error for a cell that was never answered. */
export type Runs = ReadonlyMap<number, CellRun | Error>

export async function runCells(gateway: FaultGateway, cells: readonly Cell[]): Promise<Runs> {
  const runs = new Map<number, CellRun | Error>()
  const run = async (cell: Cell): Promise<void> => {
    runs.set(cell.number, await gateway.run(cell).catch((fault: unknown) => fault as Error))
  }
  const isWaiting = ({ fault }: Cell): boolean => WAITING.test(faultName(fault))
  await pooled(cells.filter(isWaiting), WAITING_PARALLEL, run)
  await pooled(
    cells.filter(cell => !isWaiting(cell) && !runsAlone(cell)),
    PARALLEL,
    run,
  )
  for (const cell of cells.filter(runsAlone)) await run(cell)
  await gateway.harness.idle()
  return runs
}

/** The run of a cell with its record. Throws for a cell without an answer or without a record. */
export function recordedRunOf(cell: Cell, runs: Runs, records: ReadonlyMap<number, Json>): RecordedRun {
  const run = runs.get(cell.number)
  if (run === undefined || run instanceof Error) throw run ?? new Error(`${cellName(cell)} was not run`)
  const record = recordOf(run, records)
  if (record === undefined) throw new Error(`${cellName(cell)} has no record`)
  return { ...run, record }
}

/** Collects unhandled rejections and exceptions until `stop`. */
export function listenForUnhandled(): { readonly caught: readonly unknown[]; stop(): void } {
  const caught: unknown[] = []
  const note = (fault: unknown): void => void caught.push(fault)
  process.on('unhandledRejection', note)
  process.on('uncaughtException', note)
  return {
    caught: caught,
    stop() {
      process.off('unhandledRejection', note)
      process.off('uncaughtException', note)
    },
  }
}
