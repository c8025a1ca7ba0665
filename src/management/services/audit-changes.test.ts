import { expect, test } from 'bun:test'
import { textId } from '../../base/ids.ts'
import { formatChanges } from './audit-changes.ts'

test('ids, money and times of audited changes have the same form as elsewhere in the interface', () => {
  const key = { id: [null, '7'], account_id: [null, '8'], expires_ms: [null, '0'], keeps_bodies: ['0', '1'] }
  expect(formatChanges('setKey', key)).toEqual({ expires: [null, '1970-01-01T00:00:00.000Z'], keepsBodies: ['0', '1'] })
  const post = { kind: 'top_up', ref: 5, amount: '20000000000', reference: 'inv-1' }
  expect(formatChanges('post', post)).toEqual({ kind: 'top_up', amount: '20.00', reference: 'inv-1' })
  expect(formatChanges('post', { amount: 'all' })).toEqual({ amount: 'all' })
  expect(formatChanges('setAccount', { credit_limit: ['0', '5000000000'] })).toEqual({ creditLimit: ['0.00', '5.00'] })
})

test('the amount of an audited limit is not money, and its key is shown by its id', () => {
  const limit = { amount: [null, '100'], key_id: [null, '7'] }
  for (const action of ['setLimit', 'changeLimit', 'removeLimit']) {
    expect(formatChanges(action, limit)).toEqual({ amount: [null, '100'], key: [null, textId('key', 7)] })
  }
})
