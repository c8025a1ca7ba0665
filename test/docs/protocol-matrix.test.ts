// docs/reference/protocol-matrix.md is generated; results that were changed without it would leave the page behind.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { matrixPath } from '../../scripts/write-docs.ts'
import { lossesIn, readResults, reasonFor, writeMatrix } from '../../scripts/write-matrix.ts'

test('docs/reference/protocol-matrix.md is what the results say (npm run docs writes it)', () => {
  expect(readFileSync(matrixPath, 'utf8')).toBe(writeMatrix())
})

test('nothing fails in it, and each loss has a reason', () => {
  expect(writeMatrix()).not.toContain('fail**')
  expect(lossesIn(readResults()).filter(loss => reasonFor(loss) === undefined)).toEqual([])
})
