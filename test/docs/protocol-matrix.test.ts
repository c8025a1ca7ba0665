// The results of the dialect suite, from which docs/reference/protocol-matrix.md is generated.

import { expect, test } from 'bun:test'
import { lossesIn, readResults, reasonFor, writeMatrix } from '../../scripts/write-matrix.ts'

test('the protocol matrix has no failure, and a reason for each loss', () => {
  expect(writeMatrix()).not.toContain('fail**')
  expect(lossesIn(readResults()).filter(loss => reasonFor(loss) === undefined)).toEqual([])
})
