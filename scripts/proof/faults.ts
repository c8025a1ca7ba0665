// The whole fault matrix: every fault, callers of every dialect, upstreams of every dialect, plain and streamed; then
// those that are about size in their real size. Ends non-zero when a cell is not as its verdict says.
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

const options = { seed: { type: 'string' }, only: { type: 'string', default: '' } } as const
const { values } = parseArgs({ options })
const seed = Number(values.seed ?? Date.now() % 1_000_000)
const say = (line: string): void => void process.stdout.write(`${line}\n`)
const MIB = 1024 * 1024

const unhandled = listenForUnhandled()
let violations = 0

function violated(what: string): void {
  violations++
  say(`VIOLATION  ${what.replaceAll('\n', '\n           ')}`)
}

interface Tally {
  cells: number
  /** How many came to each verdict. */
  readonly verdicts: Map<string, number>
  slowestMs: number
}

const freshTally = (): Tally => ({ cells: 0, verdicts: new Map(), slowestMs: 0 })

async function tellCell(cell: Cell, judgedCell: () => RecordedRun, tally: Tally): Promise<void> {
  tally.cells++
  try {
    const judged = judgedCell()
    const verdict = await checkRun(judged)
    tally.verdicts.set(verdict, (tally.verdicts.get(verdict) ?? 0) + 1)
    tally.slowestMs = Math.max(tally.slowestMs, judged.ms)
  } catch (fault) {
    violated(`${cellName(cell)}: ${(fault as Error).message}`)
  }
}

/** What must be so when all is over. */
async function tellGateway(gateway: FaultGateway): Promise<void> {
  const { harness } = gateway
  for (const caller of callers) {
    for (const stream of [false, true]) {
      const { status } = await gateway.askHealthy(caller, stream).whole()
      if (status !== 200) violated(`a good call of ${caller} got ${status} afterwards`)
    }
  }
  await harness.idle()
  const { byAccount, byRecords } = await gateway.left()
  if (byAccount !== byRecords) violated(`the account has ${byAccount} left, by its records ${byRecords}`)
  if (harness.openHolds() > 0) violated(`${harness.openHolds()} open holds`)
  for (const fault of unhandled.caught) violated(`nobody caught: ${String(fault)}`)
}

async function runMatrix(cells: readonly Cell[]): Promise<ReadonlyMap<string, Tally>> {
  const gateway = await FaultGateway.start(cells)
  const tallies = new Map<string, Tally>(faultIds.map(id => [id, freshTally()]))
  try {
    const runs = await runCells(gateway, cells)
    const records = gateway.records()
    for (const cell of cells)
      await tellCell(cell, () => recordedRunOf(cell, runs, records), tallies.get(cell.fault.id)!)
    await tellGateway(gateway)
  } finally {
    await gateway.stop()
  }
  return tallies
}

function tellTallies(tallies: ReadonlyMap<string, Tally>): void {
  say('| | cells | came to | slowest |\n|---|---|---|---|')
  for (const id of faultIds) {
    const { cells, verdicts, slowestMs } = tallies.get(id)!
    if (cells === 0) continue
    const told = [...verdicts].sort(([, one], [, other]) => other - one).map(([name, count]) => `${name} ${count}`)
    say(`| ${id} ${faultKinds[id].title} | ${cells} | ${told.join(', ')} | ${Math.round(slowestMs)} ms |`)
  }
}

const peakText = /^VmHWM:\s+(\d+) kB$/m
const rssText = /^VmRSS:\s+(\d+) kB$/m

/** Of a process since it was last forgotten, beyond what it has now. */
class Memory {
  readonly #folder: string

  constructor(pid: number) {
    this.#folder = `/proc/${pid}`
  }

  #bytes(text: RegExp): number {
    return Number(text.exec(readFileSync(`${this.#folder}/status`, 'utf8'))?.[1] ?? 0) * 1024
  }

  /** Peak growth while the work is done. */
  async during(work: () => Promise<void>): Promise<number> {
    writeFileSync(`${this.#folder}/clear_refs`, '5')
    const before = this.#bytes(rssText)
    await work()
    return this.#bytes(peakText) - before
  }
}

/** In real size and natively, three calls of each, on a gateway in a process of its own. */
async function runLarge(): Promise<void> {
  const upstream = await startFakeUpstream()
  const folder = freshFolder()
  const served = await serve(folder, { OPENAI_API_KEY: 'sk-fake', OPENAI_BASE_URL: `${upstream.url}/v1` })
  const key = /Bearer (wk-\w+)/.exec(served.said())![1]!
  const ask = async (stream: boolean): Promise<number> => {
    const asked = { model: 'openai/gpt-4o-mini', stream }
    return (await openRaw(served.url, requestOf('openai-chat', key, asked)).whole(120_000)).status
  }
  const memory = new Memory(served.pid)
  say('\n| in real size | status | taken of it | the gateway grew by at most |\n|---|---|---|---|')
  for (const fault of buildFaults(chatWire).filter(({ id, name }) => LARGE.test(`${id} ${name}`) || id === 'F19')) {
    upstream.planModel('gpt-4o-mini', fault.script)
    const statuses = new Set<number>()
    const before = upstream.requests.length
    const grownBytes = await memory.during(async () => {
      for (let calls = 0; calls < 3; calls++) statuses.add(await ask(fault.asks === 'stream'))
    })
    const takenBytes = Math.max(...upstream.requests.slice(before).map(({ bytesWritten }) => bytesWritten))
    const [taken, grown] = [takenBytes, grownBytes].map(bytes => `${Math.ceil(bytes / MIB)} MiB`)
    say(`| ${faultName(fault)} | ${[...statuses].join()} | ${taken} | ${grown} |`)
    if (grownBytes > GROWN_BYTES_MAX) violated(`${faultName(fault)}: the gateway grew by ${grown}`)
    if (statuses.size !== 1 || !statuses.has(502)) violated(`${faultName(fault)}: ${[...statuses].join()}`)
  }
  await stopServed(served)
  await upstream.stop()
  await cleanUp()
}

/** Several whole answers of 32 MiB, one after the other, of which a collector of garbage may be late to notice. */
const GROWN_BYTES_MAX = 384 * MIB

const isAsked = (cell: Cell): boolean => cellName(cell).includes(values.only)

const sinceMs = performance.now()
const cells = allCells(seed).filter(isAsked)
say(`seed ${seed}, ${cells.length} cells\n`)
tellTallies(await runMatrix(cells))
await runLarge()
say(`\n${Math.round((performance.now() - sinceMs) / 1_000)} s, ${violations} violations`)
process.exit(violations === 0 ? 0 : 1)
