// No list is in the order of a time alone: two rows can share a millisecond, and then their order, and where the next
// page begins, would be chance. Every ORDER BY that a time stands in goes on with a column without equals.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { Glob } from 'bun'

const ORDER = /ORDER BY\s+([^`')]+?)(?=\s*(?:LIMIT|RETURNING|\)|`|'|$))/g

const clauses = [...new Glob('src/{store,management,vault,billing}/**/*.ts').scanSync('.')].flatMap(file =>
  [...readFileSync(file, 'utf8').matchAll(ORDER)].map(([, found]) => ({ file, columns: found!.replace(/\s+/g, ' ') })),
)

const timed = clauses.filter(({ columns }) => /_ms\b/.test(columns))

test('the clauses are found', () => {
  expect(clauses.length).toBeGreaterThan(40)
  expect(timed.length).toBeGreaterThan(4)
})

test.each(timed)('$columns in $file ends with a column that is unique', ({ columns }) => {
  const last = columns.split(',').at(-1)!.trim()
  expect(last).not.toMatch(/_ms\b/)
})
