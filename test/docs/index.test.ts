// Whoever looks for a page finds it: all of them are on the first one.

import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const DOCS = join(import.meta.dir, '..', '..', 'docs')

test('docs/README.md leads to every page', () => {
  const index = readFileSync(join(DOCS, 'README.md'), 'utf8')
  const pages = readdirSync(DOCS).filter(name => name.endsWith('.md') && name !== 'README.md')
  expect(pages.filter(name => !index.includes(`](${name})`))).toEqual([])
})
