// docs/reference/finish-reasons.md is generated; a reason that was changed without it would leave the page behind.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { finishReasonsPath } from '../../scripts/write-docs.ts'
import { writeFinishReasons } from '../../scripts/write-finish-reasons.ts'

test('docs/reference/finish-reasons.md is what the table of reasons says (npm run docs writes it)', () => {
  expect(readFileSync(finishReasonsPath, 'utf8')).toBe(writeFinishReasons())
})
