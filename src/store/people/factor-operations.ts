// The operations on second factors (TOTP) and recovery codes.

import type { OperationHandlers } from '../engine/operations.ts'
import type { Books } from '../ledger/books.ts'

type FactorHandlers = Pick<OperationHandlers, 'beginTotp' | 'confirmTotp' | 'renewRecoveryCodes' | 'removeTotp'>

export function factorOperations({ db }: Books): FactorHandlers {
  const findPerson = db.query('SELECT 1 FROM person WHERE id = ?1 AND disabled = 0')
  const find = db.query<{ confirmed_ms: bigint | null }, [number]>('SELECT confirmed_ms FROM totp WHERE person_id = ?1')
  const begin = db.query(
    `INSERT INTO totp (person_id, sealed) VALUES (?1, ?2)
     ON CONFLICT (person_id) DO UPDATE SET sealed = excluded.sealed WHERE confirmed_ms IS NULL`,
  )
  const confirm = db.query('UPDATE totp SET confirmed_ms = ?2, last_step = ?3 WHERE person_id = ?1')
  const remove = db.query('DELETE FROM totp WHERE person_id = ?1')
  const insertCode = db.query('INSERT INTO recovery_code (person_id, digest) VALUES (?1, ?2)')
  const removeCodes = db.query('DELETE FROM recovery_code WHERE person_id = ?1')

  const isConfirmed = (personId: number): boolean => (find.get(personId)?.confirmed_ms ?? null) !== null

  function setCodes(personId: number, codes: readonly string[]): void {
    removeCodes.run(personId)
    for (const digest of codes) insertCode.run(personId, Buffer.from(digest, 'hex'))
  }

  return {
    beginTotp({ personId, sealed }) {
      if (findPerson.get(personId) === null) return { done: 'unknown' }
      return { done: begin.run(personId, Buffer.from(sealed, 'base64')).changes > 0 ? 'begun' : 'exists' }
    },
    confirmTotp({ personId, step, codes, nowMs }) {
      if (find.get(personId) === null) return { done: 'unknown' }
      if (isConfirmed(personId)) return { done: 'exists' }
      confirm.run(personId, nowMs, step)
      setCodes(personId, codes)
      return { done: 'confirmed' }
    },
    renewRecoveryCodes({ personId, codes }) {
      if (!isConfirmed(personId)) return { done: 'unknown' }
      setCodes(personId, codes)
      return { done: 'renewed' }
    },
    removeTotp({ personId }) {
      if (remove.run(personId).changes === 0) return { done: 'unknown' }
      removeCodes.run(personId)
      return { done: 'removed' }
    },
  }
}
