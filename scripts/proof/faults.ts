// The whole fault matrix: every fault, callers of every dialect, upstreams of every dialect, plain and streamed; then the
// faults about size with their real sizes. Exits with 1 if a cell does not have its expected result.
//
//   bin/weir-bun scripts/proof/faults.ts [--seed n] [--only text]

import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { callers, requestOf } from '../../test/dialects/raw-callers.ts'
import type { Cell } from '../../test/faults/cells.ts'
import { allCells, cellName, faultName } from '../../test/faults/cells.ts'
import { FaultGateway } from '../../test/faults/gateway.ts'
import type { RecordedRun } from '../../test/faults/run-checks.ts'
import { checkRun, LARGE } from '../../test/faults/run-checks.ts'
import { listenForUnhandled, recordedRunOf, runCells } from '../../test/faults/runs.ts'
import { openRaw } from '../../test/forwarding/caller.ts'
import { cleanUp, freshFolder, serve, stopServed } from '../../test/front/weir-process.ts'
import { faultIds, faultKinds } from '../../tools/fake-upstream/fault-rows/kinds.ts'
import { buildFaults } from '../../tools/fake-upstream/faults.ts'
import { chatWire } from '../../tools/fake-upstream/openai-chat/wire.ts'
import { startFakeUpstream } from '../../tools/fake-upstream/server.ts'
import { print } from './output.ts'

const options = { seed: { type: 'string' }, only: { type: 'string', default: '' } } as const
const { values } = parseArgs({ options })
const seed = Number(values.seed ?? Date.now() % 1_000_000)
const MIB = 1024 * 1024

const unhandled = listenForUnhandled()
let violations = 0

function violated(what: string): void {
  violations++
  print(`VIOLATION  ${what.replaceAll('\n', '\n           ')}`)
}

interface Tally {
  cells: number
  /** The number of cells by verdict. */
  readonly verdicts: Map<string, number>
  slowestMs: number
}

const freshTally = (): Tally => ({ cells: 0, verdicts: new Map(), slowestMs: 0 })

async function countCell(cell: Cell, readRun: () => RecordedRun, tally: Tally): Promise<void> {
  tally.cells++
  try {
    const run = readRun()
    const verdict = await checkRun(run)
    tally.verdicts.set(verdict, (tally.verdicts.get(verdict) ?? 0) + 1)
    tally.slowestMs = Math.max(tally.slowestMs, run.ms)
  } catch (fault) {
    violated(`${cellName(cell)}: ${(fault as Error).message}`)
  }
}

/** Checks the gateway after all cells. */
async function checkGateway(gateway: FaultGateway): Promise<void> {
  const { harness } = gateway
  for (const caller of callers) {
    for (const stream of [false, true]) {
      const { status } = await gateway.askHealthy(caller, stream).whole()
      if (status !== 200) violated(`a call of ${caller} without a fault got ${status} after the cells`)
    }
  }
  await harness.idle()
  const { byAccount, byRecords } = await gateway.left()
  if (byAccount !== byRecords) violated(`the account has ${byAccount} left, by its records ${byRecords}`)
  if (harness.openHolds() > 0) violated(`${harness.openHolds()} open holds`)
  for (const fault of unhandled.caught) violated(`unhandled: ${String(fault)}`)
}

async function runMatrix(cells: readonly Cell[]): Promise<ReadonlyMap<string, Tally>> {
  const gateway = await FaultGateway.start(cells)
  const tallies = new Map<string, Tally>(faultIds.map(id => [id, freshTally()]))
  try {
    const runs = await runCells(gateway, cells)
    const records = gateway.records()
    for (const cell of cells)
      await countCell(cell, () => recordedRunOf(cell, runs, records), tallies.get(cell.fault.id)!)
    await checkGateway(gateway)
  } finally {
    await gateway.stop()
  }
  return tallies
}

function printTallies(tallies: ReadonlyMap<string, Tally>): void {
  print('| | cells | verdicts | slowest |\n|---|---|---|---|')
  for (const id of faultIds) {
    const { cells, verdicts, slowestMs } = tallies.get(id)!
    if (cells === 0) continue
    const counted = [...verdicts].sort(([, one], [, other]) => other - one).map(([name, count]) => `${name} ${count}`)
    print(`| ${id} ${faultKinds[id].title} | ${cells} | ${counted.join(', ')} | ${Math.round(slowestMs)} ms |`)
  }
}

const peakText = /^VmHWM:\s+(\d+) kB$/m
const rssText = /^VmRSS:\s+(\d+) kB$/m

/** The peak memory of a process. */
class Memory {
  readonly #folder: string

  constructor(pid: number) {
    this.#folder = `/proc/${pid}`
  }

  #bytes(text: RegExp): number {
    return Number(text.exec(readFileSync(`${this.#folder}/status`, 'utf8'))?.[1] ?? 0) * 1024
  }

  /** How far the peak during the work is above the memory before it. */
  async during(work: () => Promise<void>): Promise<number> {
    writeFileSync(`${this.#folder}/clear_refs`, '5')
    const before = this.#bytes(rssText)
    await work()
    return this.#bytes(peakText) - before
  }
}

/** Runs the large faults with their real sizes, without translation, three calls each, on a gateway in its own process. */
async function runLarge(): Promise<void> {
  const upstream = await startFakeUpstream()
  const folder = freshFolder()
  const served = await serve(folder, { OPENAI_API_KEY: 'sk-fake', OPENAI_BASE_URL: `${upstream.url}/v1` })
  const key = /Bearer (wk-\w+)/.exec(served.said())![1]!
  const ask = async (stream: boolean): Promise<number> => {
    const request = { model: 'openai/gpt-4o-mini', stream }
    return (await openRaw(served.url, requestOf('openai-chat', key, request)).whole(120_000)).status
  }
  const memory = new Memory(served.pid)
  print('\n| with real size | status | bytes that the gateway read | the gateway grew by at most |\n|---|---|---|---|')
  for (const fault of buildFaults(chatWire).filter(({ id, name }) => LARGE.test(`${id} ${name}`) || id === 'F19')) {
    upstream.planModel('gpt-4o-mini', fault.script)
    const statuses = new Set<number>()
    const before = upstream.requests.length
    const grownBytes = await memory.during(async () => {
      for (let calls = 0; calls < 3; calls++) statuses.add(await ask(fault.asks === 'stream'))
    })
    const readBytes = Math.max(...upstream.requests.slice(before).map(({ bytesWritten }) => bytesWritten))
    const [read, grown] = [readBytes, grownBytes].map(bytes => `${Math.ceil(bytes / MIB)} MiB`)
    print(`| ${faultName(fault)} | ${[...statuses].join()} | ${read} | ${grown} |`)
    if (grownBytes > GROWN_BYTES_MAX) violated(`${faultName(fault)}: the gateway grew by ${grown}`)
    if (statuses.size !== 1 || !statuses.has(502)) violated(`${faultName(fault)}: ${[...statuses].join()}`)
  }
  await stopServed(served)
  await upstream.stop()
  await cleanUp()
}

/** Several whole answers of 32 MiB, one after the other, because the garbage collector may free them late. */
const GROWN_BYTES_MAX = 384 * MIB

const isChosen = (cell: Cell): boolean => cellName(cell).includes(values.only)

const sinceMs = performance.now()
const cells = allCells(seed).filter(isChosen)
print(`seed ${seed}, ${cells.length} cells\n`)
printTallies(await runMatrix(cells))
await runLarge()
print(`\n${Math.round((performance.now() - sinceMs) / 1_000)} s, ${violations} violations`)
process.exit(violations === 0 ? 0 : 1)
