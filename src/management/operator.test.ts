// What an operator command reports when the ledger refuses or fails.

import { expect, test } from 'bun:test'
import { Refusal } from '../base/errors.ts'
import type { ManagementParts } from './management-parts.ts'
import { buildOperator } from './operator.ts'
import { OperatorError } from './operator-error.ts'

const failing = (fault: Error): ManagementParts => {
  const reader = { people: { hasOwner: false } }
  return { writer: { run: () => Promise.reject(fault) }, reader, dateMs: () => 0 } as unknown as ManagementParts
}

test('an unavailable ledger becomes a sentence that warns that the change may have been made', async () => {
  const answer = buildOperator(failing(new Refusal('storage_away', 'the ledger took too long'))).setup!({})
  const fault = await answer.catch((thrown: Error) => thrown)
  expect(fault).toBeInstanceOf(OperatorError)
  expect((fault as Error).message).toBe(
    'The ledger does not answer at the moment. (storage_away: the ledger took too long) ' +
      'Check whether the change was made before you try again.',
  )
})

test('a bug is not turned into an OperatorError', async () => {
  await expect(buildOperator(failing(new TypeError('oops'))).setup!({})).rejects.toThrow(TypeError)
})
