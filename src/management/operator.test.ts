// Tests the answers to requests of the operator when the ledger fails, and which paths the operator reaches.

import { expect, test } from 'bun:test'
import { Refusal } from '../base/errors.ts'
import { buildOperator } from './operator.ts'

const operatorWith = (fault: Error) =>
  buildOperator(() => Promise.reject(fault), { fails: () => Promise.reject(fault) })

test.each(['/api/web/keys', '/machine/fails'])(
  'the answer of %s while the ledger is unavailable warns that the change may have been made',
  async path => {
    const operator = operatorWith(new Refusal('storage_away', 'the ledger took too long'))
    const answer = await operator({ method: 'POST', path })
    const { error } = (await answer.json()) as { error: { code: string; sentence: string } }
    expect([answer.status, error.code]).toEqual([503, 'storage_away'])
    expect(error.sentence).toBe(
      'The database of the gateway does not answer at the moment. (storage_away: the ledger took too long) ' +
        'Check whether the change was made before you try again.',
    )
  },
)

test('a bug is not turned into a refusal', async () => {
  await expect(operatorWith(new TypeError('oops'))({ method: 'GET', path: '/api/web/keys' })).rejects.toThrow(TypeError)
})

test('only the management interface and the machine commands can be reached', async () => {
  const operator = operatorWith(new TypeError('reached'))
  for (const path of [
    '/api/auth/sign-in',
    '/api/auth/setup',
    '/v1/models',
    '/machine/',
    '/machine/toString',
    'fails',
    '',
  ]) {
    expect([path, (await operator({ method: 'POST', path })).status]).toEqual([path, 404])
  }
})
