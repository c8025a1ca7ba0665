// The operations on secrets: note which secrets are in use, and move digests and encrypted values from older secrets to
// the newest one.

import type { StepsOf } from '../engine/operation.ts'
import { query } from '../engine/steps.ts'
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

const findNewest = query<{ mark: string }>(
  'SELECT mark FROM secret_mark WHERE kind = ?1 ORDER BY replaced_ms DESC NULLS FIRST, mark LIMIT 1',
)
const insertMark = query('INSERT INTO secret_mark VALUES (?1, ?2, ?3, NULL, ?4) ON CONFLICT (kind, mark) DO NOTHING')
const setReplaced = query(
  `UPDATE secret_mark SET replaced_ms = CASE WHEN mark = ?2 THEN NULL ELSE coalesce(replaced_ms, ?3) END
   WHERE kind = ?1`,
)
const dropMark = query('DELETE FROM secret_mark WHERE kind = ?1 AND mark = ?2')
const redigest = query('UPDATE api_key SET digest = ?3, pepper = ?4 WHERE id = ?1 AND digest = ?2')
const redigestOld = query('UPDATE api_key SET old_digest = ?3, old_pepper = ?4 WHERE id = ?1 AND old_digest = ?2')
const writeResealed = resealedWriter(sealedColumns)

const bytesOf = (hex: string): Buffer => Buffer.from(hex, 'hex')

export const secretOperations: StepsOf<SecretOperations> = {
  *noteSecrets({ kind, marks }, { nowMs }) {
    const former = yield* findNewest.get(kind)
    const oldest = former === undefined ? marks.at(-1) : undefined
    for (const mark of marks) yield* insertMark.run(kind, mark, nowMs(), Number(mark === oldest))
    yield* setReplaced.run(kind, marks[0]!, nowMs())
    return { done: former === undefined || former.mark === marks[0] ? 'noted' : 'rotated' }
  },
  *dropSecrets({ kind, marks }) {
    for (const mark of marks) yield* dropMark.run(kind, mark)
    return { done: 'dropped' }
  },
  *redigestKeys({ keys }) {
    let count = 0
    for (const { id, from, to, pepper } of keys) {
      const values = [id, bytesOf(from), bytesOf(to), pepper]
      if ((yield* redigest.run(...values)) > 0 || (yield* redigestOld.run(...values)) > 0) count++
    }
    return { done: 'redigested', count }
  },
  *reseal({ rows }) {
    let count = 0
    for (const row of rows) if (yield* writeResealed(row)) count++
    return { done: 'resealed', count }
  },
}
