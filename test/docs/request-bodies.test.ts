// docs/reference/request-bodies.md is generated; a bound that was changed without it would leave the page behind.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { requestBodiesPath } from '../../scripts/write-docs.ts'
import { writeRequestBodies } from '../../scripts/write-request-bodies.ts'

test('docs/reference/request-bodies.md is what the tables of bodies say (npm run docs writes it)', () => {
  expect(readFileSync(requestBodiesPath, 'utf8')).toBe(writeRequestBodies())
})
