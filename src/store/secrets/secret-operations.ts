// The operations on secrets: note which secrets are in use, and move digests and encrypted values from older secrets to
// the newest one.

import type { HandlersOf } from '../engine/operation.ts'
import type { Books } from '../ledger/books.ts'
import type { ResealedRow } from './resealed-rows.ts'
import { resealedWriter } from './resealed-rows.ts'
import type { SecretKind } from './secret-kinds.ts'
import { sealedColumns } from './secret-marks.ts'

export interface RedigestedKey {
  readonly id: number
  /** Hex. */
  readonly from: string
  readonly to: string
  /** The mark of the pepper of the new digest. */
  readonly pepper: string
}

export interface SecretOperations {
  /** Notes the marks of all secrets in use, newest first. Marks that were noted before stay. */
  noteSecrets: {
    input: { readonly kind: SecretKind; readonly marks: readonly string[] }
    /** `rotated`: the newest secret has changed. */
    result: { done: 'noted' | 'rotated' }
  }
  /** Removes the marks of secrets that nothing uses any more, or whose data is given up. */
  dropSecrets: {
    input: { readonly kind: SecretKind; readonly marks: readonly string[] }
    result: { done: 'dropped' }
  }
  redigestKeys: {
    input: { readonly keys: readonly RedigestedKey[] }
    result: { done: 'redigested'; count: number }
  }
  reseal: { input: { readonly rows: readonly ResealedRow[] }; result: { done: 'resealed'; count: number } }
}

export function secretOperations({ db, nowMs }: Books): HandlersOf<SecretOperations> {
  const findNewest = db.query(
    'SELECT mark FROM secret_mark WHERE kind = ?1 ORDER BY replaced_ms IS NOT NULL, replaced_ms DESC, mark LIMIT 1',
  )
  const insertMark = db.query('INSERT INTO secret_mark VALUES (?1, ?2, ?3, NULL, ?4) ON CONFLICT DO NOTHING')
  const setReplaced = db.query(
    `UPDATE secret_mark SET replaced_ms = CASE WHEN mark = ?2 THEN NULL ELSE coalesce(replaced_ms, ?3) END
     WHERE kind = ?1`,
  )
  const dropMark = db.query('DELETE FROM secret_mark WHERE kind = ?1 AND mark = ?2')
  const redigest = db.query('UPDATE api_key SET digest = ?3, pepper = ?4 WHERE id = ?1 AND digest = ?2')
  const redigestOld = db.query('UPDATE api_key SET old_digest = ?3, old_pepper = ?4 WHERE id = ?1 AND old_digest = ?2')
  const writeResealed = resealedWriter(db, sealedColumns)
  return {
    noteSecrets({ kind, marks }) {
      const former = findNewest.get(kind) as { mark: string } | null
      const oldest = former === null ? marks.at(-1) : undefined
      for (const mark of marks) insertMark.run(kind, mark, nowMs(), Number(mark === oldest))
      setReplaced.run(kind, marks[0]!, nowMs())
      return { done: former === null || former.mark === marks[0] ? 'noted' : 'rotated' }
    },
    dropSecrets({ kind, marks }) {
      for (const mark of marks) dropMark.run(kind, mark)
      return { done: 'dropped' }
    },
    redigestKeys({ keys }) {
      const bytes = (hex: string): Buffer => Buffer.from(hex, 'hex')
      const done = keys.filter(({ id, from, to, pepper }) =>
        [redigest, redigestOld].some(query => query.run(id, bytes(from), bytes(to), pepper).changes > 0),
      )
      return { done: 'redigested', count: done.length }
    },
    reseal: ({ rows }) => ({ done: 'resealed', count: rows.filter(writeResealed).length }),
  }
}
