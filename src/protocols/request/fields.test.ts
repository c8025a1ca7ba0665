// Tests which fields count as present.

import { expect, test } from 'bun:test'
import { findLostFields } from './fields.ts'

test('lost and unknown fields are losses unless they are null or undefined', () => {
  const json = { read: 1, moot: 2, lost: 3, unknown: {}, none: null, empty: [], undefined }
  const table = { read: 'read', moot: 'moot', lost: 'lost' } as const
  expect(findLostFields(json, table)).toEqual(['lost', 'unknown', 'empty'])
  expect(findLostFields(json, { ...table, lost: { unless: 3 }, empty: { unless: [] } })).toEqual(['unknown'])
  expect(findLostFields(json, { ...table, lost: { unless: 4 }, empty: { unless: {} } })).toContain('lost')
  expect(findLostFields(json, table, 'at')).toEqual(['at.lost', 'at.unknown', 'at.empty'])
})
