// Records are found by each of their fields, with the names of their account and key.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { TestBooks } from '../../../test/support/books.ts'
import { openTestBooks, recordOf } from '../../../test/support/books.ts'
import type { RunSteps } from '../engine/sqlite-steps.ts'
import { sqliteSteps } from '../engine/sqlite-steps.ts'
import type { RecordFilter } from './record-search.ts'
import { findRecords, shownRecordColumns } from './record-search.ts'

let books: TestBooks
let run: RunSteps
beforeAll(() => {
  books = openTestBooks({ sync: false })
  run = sqliteSteps(books.db)
  books.account(11, '0')
  const slow = { firstContentMs: 700, durationMs: 900 }
  const alias = { requestedModel: 'river', loss: 'seed', tags: '{"team":"ads","my\\"beta":""}', dialect: 'gemini' }
  const attempts = '[["p#1","broken",5,1,503],["p#2","answered",5,7,200,3]]'
  const odd = { tags: '{"note":"{\\"team\\":\\"ads\\"","a,b":"x"}', outcome: 'refused' }
  for (const [at, more] of [{}, { ...slow, ...alias, attempts }, odd, { outcome: 'drained' }].entries()) {
    books.run.record({ record: { ...recordOf(100_000 + at, 11), provider: 'p', model: 'm', ...more } })
  }
})
afterAll(() => books.close())

const searches: readonly (readonly [RecordFilter, readonly number[]])[] = [
  [{ outcome: ['refused', 'drained'] }, [2, 3]],
  [{ outcome: ['refused', 'completed'] }, [0, 1, 2]],
  [{ dialect: 'gemini' }, [1]],
  [{ requestedModel: 'river' }, [1]],
  [{ requestedModel: 'p/m' }, [0, 2, 3]],
  [{ tag: { name: 'team' } }, [1]],
  [{ tag: { name: 'team', value: 'ads' } }, [1]],
  [{ tag: { name: 'team', value: 'ad' } }, []],
  [{ tag: { name: 'my"beta', value: '' } }, [1]],
  [{ tag: { name: 'beta' } }, []],
  [{ tag: { name: 'a,b' } }, [2]],
  [{ lossy: true }, [1]],
  [{ lossy: false }, [0, 2, 3]],
  [{ attemptsMin: 2 }, [1]],
  [{ attemptsMin: 3 }, []],
  [{ firstContentMsMin: 700 }, [1]],
  [{ firstContentMsMin: 701 }, []],
  [{ durationMsMin: 900, lossy: true }, [1]],
]
test.each(searches)('by %j', (filter, expected) => {
  const { rows } = run(findRecords(shownRecordColumns, { scope: null, filter, oldestFirst: true, limit: 10 }))
  expect(rows.map(({ callId }) => callId - 100_000)).toEqual([...expected])
})

test('a record has the names of its account and key', () => {
  const { rows } = run(findRecords(shownRecordColumns, { scope: null, filter: {}, limit: 1 }))
  expect(rows[0]).toMatchObject({ accountName: 'x', keyName: 'x', keySuffix: 'abcd' })
})
