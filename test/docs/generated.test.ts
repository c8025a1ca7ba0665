// The generated pages of docs/ agree with the tables in the code.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { generatedPages } from '../../scripts/write-docs.ts'

test.each(generatedPages.map(page => [page.name, page] as const))(
  '%s is what npm run docs would write',
  (_name, { path, write }) => {
    expect(readFileSync(path, 'utf8')).toBe(write())
  },
)
