// The types that the console has of the management interface are those of the interface.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { consoleTypesPath, writeConsoleTypes } from '../../scripts/write-console-types.ts'
import { writeOpenApi } from '../../scripts/write-docs.ts'

test('console/src/api/types.ts is up to date; if not: npm run docs', async () => {
  expect(readFileSync(consoleTypesPath, 'utf8')).toBe(writeConsoleTypes(await writeOpenApi()))
})
