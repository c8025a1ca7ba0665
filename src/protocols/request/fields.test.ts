// Tests which fields count as present.

import { expect, test } from 'bun:test'
import { unreadFields } from './fields.ts'

test('an empty field is no loss', () => {
  const json = { read: 1, moot: 2, lost: 3, unknown: {}, none: null, empty: [], undefined }
  const table = { read: 'read', moot: 'moot', lost: 'lost' } as const
  expect(unreadFields(json, table)).toEqual(['lost', 'unknown', 'empty'])
  expect(unreadFields(json, table, 'at')).toEqual(['at.lost', 'at.unknown', 'at.empty'])
})
