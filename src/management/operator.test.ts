// What an operator is told when the ledger does not do what was asked.

import { expect, test } from 'bun:test'
import { Refusal } from '../base/errors.ts'
import type { ManagementParts } from './management-parts.ts'
import { buildOperator } from './operator.ts'
import { OperatorError } from './operator-error.ts'

const failing = (fault: Error): ManagementParts => {
  const reader = { people: { hasOwner: false } }
  return { writer: { run: () => Promise.reject(fault) }, reader, dateMs: () => 0 } as unknown as ManagementParts
}

test('a ledger that is away is told in words, and that what was asked may have been done', async () => {
  const asked = buildOperator(failing(new Refusal('storage_away', 'the ledger took too long'))).setup!({})
  const fault = await asked.catch((thrown: Error) => thrown)
  expect(fault).toBeInstanceOf(OperatorError)
  expect((fault as Error).message).toBe(
    'The ledger does not answer at the moment. (storage_away: the ledger took too long) ' +
      'Look whether it was done before you try again.',
  )
})

test('a mistake of ours stays one', async () => {
  await expect(buildOperator(failing(new TypeError('oops'))).setup!({})).rejects.toThrow(TypeError)
})
