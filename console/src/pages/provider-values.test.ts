import { expect, test } from 'bun:test'
import { changedFields } from './provider-values.ts'

test('only fields that differ are sent, and null for those that are gone', () => {
  const before = { id: 'relay', name: 'Relay', models: [{ id: 'a' }], tags: ['eu'] }
  const after = { id: 'relay', name: 'Relay 2', models: [{ id: 'a' }, { id: 'b' }] }
  expect(changedFields(before, after)).toEqual({
    name: 'Relay 2',
    models: [{ id: 'a' }, { id: 'b' }],
    tags: null,
  })
  expect(changedFields(before, before)).toEqual({})
})
