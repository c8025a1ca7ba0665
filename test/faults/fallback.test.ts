// Every fault with a healthy channel behind the faulty one. Before content the caller gets the answer of the healthy
// channel and pays for it alone; after content there is no further attempt.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Json } from '../dialects/raw-callers.ts'
import { eventsOfBody, rawCallers } from '../dialects/raw-callers.ts'
import type { Cell } from './cells.ts'
import { cellName, fallbackCells, faultName } from './cells.ts'
import { FaultGateway, HEALTHY_TEXT } from './gateway.ts'
import type { RecordedRun } from './run-checks.ts'
import { checkRun } from './run-checks.ts'
import type { Runs } from './runs.ts'
import { ALL_CELLS_MS, recordedRunOf, runCells } from './runs.ts'
import type { Verdict } from './verdicts.ts'
import { verdictOn, verdicts } from './verdicts.ts'

const cells = fallbackCells()

let gateway: FaultGateway
let runs: Runs
let records: ReadonlyMap<number, Json>

beforeAll(async () => {
  gateway = await FaultGateway.start(cells, { withSecond: true })
  runs = await runCells(gateway, cells)
  records = gateway.records()
}, ALL_CELLS_MS)
afterAll(() => gateway.stop())

/** Whether another channel is tried: the caller has received nothing of the first attempt. */
const isReplaced = ({ attempt }: Verdict): boolean => attempt !== 'answered' && attempt !== 'caller_at_fault'

const forms = Map.groupBy(cells, ({ fault, stream }) => `${faultName(fault)}, ${stream ? 'streamed' : 'plain'}`)

test.each([...forms])('a call survives or reports %s', async (_name, formCells) => {
  for (const cell of formCells) {
    const run = recordedRunOf(cell, runs, records)
    try {
      if (hasFallenBack(run)) expectSecond(run)
      else await checkRun(run)
    } catch (fault) {
      throw new Error(`${cellName(cell)}: ${(fault as Error).message}`)
    }
  }
})

/** A broken answer that arrived in one piece was never sent to the caller, so it may be replaced unless it was gated. */
function hasFallenBack({ cell, wasGated, record }: RecordedRun): boolean {
  const verdict: Verdict = verdicts[verdictOn(cell)!]
  if (isReplaced(verdict)) return true
  return verdict.midway !== undefined && !wasGated && record.outcome === 'completed'
}

function expectSecond({ cell, answer, record, requests }: RecordedRun): void {
  expect(answer.status).toBe(200)
  const { whole, completed } = rawCallers[cell.caller]
  const text = cell.stream ? completed(eventsOfBody(cell.caller, answer.body)) : whole(JSON.parse(answer.text) as Json)
  expect(text).toBe(HEALTHY_TEXT)
  const verdict: Verdict = verdicts[verdictOn(cell)!]
  const first = verdict.midway ? expect.any(String) : verdict.attempt
  const attempts = record.attempts as readonly (readonly unknown[])[]
  expect(attempts.map(([channel, word]) => [channel, word])).toEqual([
    [expect.stringMatching(/^cell-/), first],
    [expect.stringMatching(/^well-/), 'answered'],
  ])
  expect(answer.header('x-weir-attempts')).toBe('2')
  expect(record).toMatchObject({ outcome: 'completed', status: 200, error: null, rule: 'completed_fallback' })
  // Two words each way, as the healthy upstream reports: nothing of the first attempt is charged.
  expect([record.usage_source, record.input_tokens, record.output_tokens, record.cost]).toEqual([
    ...['reported', 2, 2, 2 * 1_000 + 2 * 2_000],
  ])
  if (cell.fault.by === 'script') expect(requests).toHaveLength(1)
}

test('no hold stays open, and the balance agrees with the records', async () => {
  const { harness } = gateway
  expect(harness.openHolds()).toBe(0)
  const { byAccount, byRecords } = await gateway.left()
  expect(byAccount as bigint).toBe(byRecords)
})

test('the cells include many faults before content and several after content', () => {
  const kindsOf = (of: (cell: Cell) => boolean): number => cells.filter(of).length
  const replaced = kindsOf(cell => isReplaced(verdicts[verdictOn(cell)!]))
  const midway = cells.filter(cell => (verdicts[verdictOn(cell)!] as Verdict).midway !== undefined)
  const gatedOnes = midway.filter(cell => recordedRunOf(cell, runs, records).wasGated)
  expect([replaced > 100, gatedOnes.length > 10]).toEqual([true, true])
})
