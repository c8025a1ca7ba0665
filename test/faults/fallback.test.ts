// Every fault with a healthy channel behind the faulty one: before content the caller gets the good answer and pays for
// that one alone; after content nothing is tried again.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Json } from '../dialects/speaking.ts'
import { eventsSeen, speech } from '../dialects/speaking.ts'
import type { Cell } from './cells.ts'
import { cellName, fallbackCells, faultName } from './cells.ts'
import { FaultGateway, WELL_TEXT } from './gateway.ts'
import type { Judged } from './judging.ts'
import { judge } from './judging.ts'
import type { Runs } from './running.ts'
import { judgedOf, runCells } from './running.ts'
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
}, 120_000)
afterAll(() => gateway.stop())

/** Those after which another channel is tried: nobody has seen anything of the first. */
const isReplaced = ({ attempt }: Verdict): boolean => attempt !== 'answered' && attempt !== 'caller_at_fault'

const forms = Map.groupBy(cells, ({ fault, stream }) => `${faultName(fault)}, ${stream ? 'streamed' : 'plain'}`)

test.each([...forms])('%s', async (_name, own) => {
  for (const cell of own) {
    const judged = judgedOf(cell, runs, records)
    try {
      if (hasFallenBack(judged)) expectSecond(judged)
      else await judge(judged)
    } catch (fault) {
      throw new Error(`${cellName(cell)}: ${(fault as Error).message}`)
    }
  }
})

/** What came in one piece with its end never left us: only where we know that it did, it must not be replaced. */
function hasFallenBack({ cell, wasGated, record }: Judged): boolean {
  const verdict: Verdict = verdicts[verdictOn(cell)!]
  if (isReplaced(verdict)) return true
  return verdict.midway !== undefined && !wasGated && record.outcome === 'completed'
}

function expectSecond({ cell, seen, record, requests }: Judged): void {
  expect(seen.status).toBe(200)
  const { whole, ended } = speech[cell.caller]
  const text = cell.stream ? ended(eventsSeen(cell.caller, seen.body)) : whole(JSON.parse(seen.text) as Json)
  expect(text).toBe(WELL_TEXT)
  const verdict: Verdict = verdicts[verdictOn(cell)!]
  const first = verdict.midway ? expect.any(String) : verdict.attempt
  expect(record.attempts).toEqual([
    [expect.stringMatching(/^cell-/), first, expect.any(Number)],
    [expect.stringMatching(/^well-/), 'answered', expect.any(Number)],
  ])
  expect(seen.header('x-weir-attempts')).toBe('2')
  expect(record).toMatchObject({ outcome: 'completed', status: 200, error: null, rule: 'completed_fallback' })
  // Two words each way, as the one that answered reports: nothing of the first.
  expect([record.usage_source, record.input_tokens, record.output_tokens, record.cost]).toEqual([
    ...['reported', 2, 2, 2 * 1_000 + 2 * 2_000],
  ])
  if (cell.fault.by === 'script') expect(requests).toHaveLength(1)
}

test('nothing is left behind', async () => {
  const { harness } = gateway
  expect(harness.openHolds()).toBe(0)
  const { byAccount, byRecords } = await gateway.left()
  expect(byAccount as bigint).toBe(byRecords)
})

test('most faults fall back, and those after content do not', () => {
  const kindsOf = (of: (cell: Cell) => boolean): number => cells.filter(of).length
  const replaced = kindsOf(cell => isReplaced(verdicts[verdictOn(cell)!]))
  const midway = cells.filter(cell => (verdicts[verdictOn(cell)!] as Verdict).midway !== undefined)
  const gatedOnes = midway.filter(cell => judgedOf(cell, runs, records).wasGated)
  expect([replaced > 100, gatedOnes.length > 10]).toEqual([true, true])
})
