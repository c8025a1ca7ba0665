// The lists of models are generated: a price that is changed by hand in a file would be lost at the next run.

import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { writtenProviders } from '../../scripts/write-providers.ts'

const folder = join(import.meta.dir, '..', '..', 'providers')

test('the provider files are what scripts/write-providers.ts writes', async () => {
  const written = await writtenProviders()
  expect([...written.keys()].sort()).toEqual(readdirSync(folder).sort())
  for (const [file, text] of written) expect(readFileSync(join(folder, file), 'utf8')).toBe(text)
})
