// docs/reference/failures.md is generated; a verdict that was changed without it would leave the page behind.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { failuresPath } from '../../scripts/write-docs.ts'
import { writeFailures } from '../../scripts/write-failures.ts'

test('docs/reference/failures.md is what the tables of faults and verdicts say (npm run docs writes it)', () => {
  expect(readFileSync(failuresPath, 'utf8')).toBe(writeFailures())
})
