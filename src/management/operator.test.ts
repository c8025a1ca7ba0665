// What the operator's requests are answered when the ledger refuses or fails, and which paths they reach.

import { expect, test } from 'bun:test'
import { Refusal } from '../base/errors.ts'
import { buildOperator } from './operator.ts'

const failing = (fault: Error) => buildOperator(() => Promise.reject(fault), { fails: () => Promise.reject(fault) })

test.each(['/api/web/keys', '/machine/fails'])(
  '%s: an unavailable ledger warns that the change may have been made',
  async path => {
    const manage = failing(new Refusal('storage_away', 'the ledger took too long'))
    const answer = await manage({ method: 'POST', path })
    const { error } = (await answer.json()) as { error: { code: string; hint: string } }
    expect([answer.status, error.code]).toEqual([503, 'storage_away'])
    expect(error.hint).toBe(
      'The ledger does not answer at the moment. (storage_away: the ledger took too long) ' +
        'Check whether the change was made before you try again.',
    )
  },
)

test('a bug is not turned into a refusal', async () => {
  await expect(failing(new TypeError('oops'))({ method: 'GET', path: '/api/web/keys' })).rejects.toThrow(TypeError)
})

test('only the management interface and the machine commands can be reached', async () => {
  const manage = failing(new TypeError('reached'))
  for (const path of [
    '/api/auth/sign-in',
    '/api/auth/setup',
    '/v1/models',
    '/machine/',
    '/machine/toString',
    'fails',
    '',
  ]) {
    expect([path, (await manage({ method: 'POST', path })).status]).toEqual([path, 404])
  }
})
