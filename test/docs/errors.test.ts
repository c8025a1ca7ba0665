// docs/reference/errors.md is generated; a row that was changed without it would leave the page behind.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { errorsPath, writeErrors } from '../../scripts/write-docs.ts'

test('docs/reference/errors.md is what the table of errors says (npm run docs writes it)', () => {
  expect(readFileSync(errorsPath, 'utf8')).toBe(writeErrors())
})
