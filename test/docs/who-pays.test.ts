// docs/reference/who-pays.md is generated; a rule that was changed without it would leave the page behind.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { whoPaysPath, writeWhoPays } from '../../scripts/write-docs.ts'

test('docs/reference/who-pays.md is what the table of rules says (npm run docs writes it)', () => {
  expect(readFileSync(whoPaysPath, 'utf8')).toBe(writeWhoPays())
})
