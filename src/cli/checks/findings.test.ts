// Tests the findings for programs: problems come before notes, and nothing to do is null.

import { expect, test } from 'bun:test'
import { findingFields, note, problem } from './findings.ts'

test('findings for programs have problems first, and null where there is nothing to do', () => {
  const rows = findingFields([note('a', 'It is odd.', ''), problem('b', 'It is wrong.', 'Set b.')])
  expect(rows).toEqual([
    { weight: 'problem', about: 'b', says: 'It is wrong.', remedy: 'Set b.' },
    { weight: 'note', about: 'a', says: 'It is odd.', remedy: null },
  ])
})
