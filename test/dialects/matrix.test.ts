// Every pair of dialects with every feature, and every official SDK with a selection of both. scripts/proof/dialects.ts runs
// all combinations; its `--write` writes the results that are compared here.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { Harness } from '../support/gateway.ts'
import type { Outcome } from './matrix.ts'
import { cellName, runCell, startMatrix } from './matrix.ts'
import type { Results } from './results.ts'
import { publishedCells, resultsOf, resultsPath, selectedCells } from './results.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startMatrix()
})
afterAll(() => harness.stop())

const named = (cells: typeof publishedCells) => cells.map(cell => [cellName(cell), cell] as const)

describe('each pair of dialects', () => {
  const outcomes: Outcome[] = []

  test.each(named(publishedCells))('%s', async (_name, cell) => {
    const outcome = await runCell(harness, cell)
    outcomes.push(outcome)
    if (outcome.fault !== undefined) throw outcome.fault
  })

  test('has the results of the published table', () => {
    expect(resultsOf(outcomes)).toEqual(JSON.parse(readFileSync(resultsPath, 'utf8')) as Results)
  })
})

describe('each SDK', () => {
  test.each(named(selectedCells))('%s', async (_name, cell) => {
    const { fault } = await runCell(harness, cell)
    if (fault !== undefined) throw fault
  })
})
