// The bugs of scripts/proof/planted-bugs.ts are planted by hand, in a long run. This test checks that each can still be
// planted.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { plantedBugs } from '../../scripts/proof/bugs/table.ts'

const root = join(import.meta.dir, '../..')

test.each(plantedBugs.map(bug => [bug.file, bug] as const))('a bug in %s can still be planted', (file, { find }) => {
  expect(readFileSync(join(root, file), 'utf8').split(find).length - 1).toBe(1)
})
