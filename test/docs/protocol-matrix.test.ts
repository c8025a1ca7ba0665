// The results of the dialect suite, from which docs/reference/protocol-matrix.md is generated.

import { expect, test } from 'bun:test'
import { lossesIn, readResults, reasonFor, writeMatrix } from '../../scripts/write-matrix.ts'

test('nothing fails in the matrix, and each loss has a reason', () => {
  expect(writeMatrix()).not.toContain('fail**')
  expect(lossesIn(readResults()).filter(loss => reasonFor(loss) === undefined)).toEqual([])
})
