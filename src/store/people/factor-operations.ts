// The operations on second factors (TOTP) and recovery codes.

import type { OperationSteps } from '../engine/operations.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'

type FactorSteps = Pick<OperationSteps, 'beginTotp' | 'confirmTotp' | 'renewRecoveryCodes' | 'removeTotp'>

const findPerson = query('SELECT 1 FROM person WHERE id = ?1 AND disabled = 0')
const findTotp = query<{ confirmed_ms: bigint | null }>('SELECT confirmed_ms FROM totp WHERE person_id = ?1')
const begin = query(
  `INSERT INTO totp (person_id, sealed) VALUES (?1, ?2)
   ON CONFLICT (person_id) DO UPDATE SET sealed = excluded.sealed WHERE totp.confirmed_ms IS NULL`,
)
const confirm = query('UPDATE totp SET confirmed_ms = ?2, last_step = ?3 WHERE person_id = ?1')
const deleteTotp = query('DELETE FROM totp WHERE person_id = ?1')
const insertCode = query('INSERT INTO recovery_code (person_id, digest) VALUES (?1, ?2)')
const deleteCodes = query('DELETE FROM recovery_code WHERE person_id = ?1')

function* setCodes(personId: number, codes: readonly string[]): Steps<void> {
  yield* deleteCodes.run(personId)
  for (const digest of codes) yield* insertCode.run(personId, Buffer.from(digest, 'hex'))
}

export const factorOperations: FactorSteps = {
  *beginTotp({ personId, sealed }) {
    if ((yield* findPerson.get(personId)) === undefined) return { done: 'unknown' }
    return { done: (yield* begin.run(personId, Buffer.from(sealed, 'base64'))) > 0 ? 'begun' : 'exists' }
  },
  *confirmTotp({ personId, step, codes, nowMs }) {
    const totp = yield* findTotp.get(personId)
    if (totp === undefined) return { done: 'unknown' }
    if (totp.confirmed_ms !== null) return { done: 'exists' }
    yield* confirm.run(personId, nowMs, step)
    yield* setCodes(personId, codes)
    return { done: 'confirmed' }
  },
  *renewRecoveryCodes({ personId, codes }) {
    const totp = yield* findTotp.get(personId)
    if (totp === undefined || totp.confirmed_ms === null) return { done: 'unknown' }
    yield* setCodes(personId, codes)
    return { done: 'renewed' }
  },
  *removeTotp({ personId }) {
    if ((yield* deleteTotp.run(personId)) === 0) return { done: 'unknown' }
    yield* deleteCodes.run(personId)
    return { done: 'removed' }
  },
}
