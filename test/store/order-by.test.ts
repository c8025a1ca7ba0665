// No list is ordered by a time alone: two rows can share a millisecond, and then their order, and the start of the next
// page, would be random. Every ORDER BY with a time continues with a unique column.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { Glob } from 'bun'

const ORDER = /ORDER BY\s+([^`')]+?)(?=\s*(?:LIMIT|RETURNING|\)|`|'|$))/g

const clauses = [...new Glob('src/{store,management,vault,billing}/**/*.ts').scanSync('.')].flatMap(file =>
  [...readFileSync(file, 'utf8').matchAll(ORDER)].map(([, clause]) => ({
    file,
    columns: clause!.replace(/\s+/g, ' '),
  })),
)

const timed = clauses.filter(({ columns }) => /_ms\b/.test(columns))

test('the ORDER BY clauses are found', () => {
  expect(clauses.length).toBeGreaterThan(40)
  expect(timed.length).toBeGreaterThan(4)
})

test.each(timed)('$columns in $file ends with a unique column', ({ columns }) => {
  const last = columns.split(',').at(-1)!.trim()
  expect(last).not.toMatch(/_ms\b/)
})
