// Endpoints for deleting records of an account, a key, an end user or a period. The deletion runs in the background;
// money and statistics do not change.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { Refusal, refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { idAtMs, msOfId, textId } from '../../base/ids.ts'
import { timeOrNull, timeText } from '../../base/time.ts'
import type { DeletionView } from '../../store/queries/records.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf, listOf, listQuery, numberOfText, time, timeInput } from './endpoint.ts'
import { buildListQuery, listAnswer, requireDone, requireFound, resourceUnknown } from './list-queries.ts'

const Deletion = z
  .object({
    id: z.number(),
    account: z.string().nullable(),
    key: z.string().nullable(),
    ofEndUser: z.boolean(),
    from: time.nullable(),
    before: time,
    deleted: z.number(),
    author: z.string(),
    made: time,
    /** Null while the deletion runs, also while calls that it covers are running. */
    done: time.nullable(),
  })
  .meta({ id: 'RecordDeletion' })

function show({ accountId, keyId, from, before, madeMs, doneMs, ...row }: DeletionView) {
  return {
    ...row,
    account: accountId === null ? null : textId('acc', accountId),
    key: keyId === null ? null : textId('key', keyId),
    from: from === 0 ? null : timeText(msOfId(from)),
    before: timeText(msOfId(before)),
    made: timeText(madeMs),
    done: timeOrNull(doneMs),
  }
}

const NewDeletion = z.strictObject({
  account: idOf('acc').optional(),
  key: idOf('key').optional(),
  endUser: z.string().min(1).max(1_000).optional(),
  from: timeInput.optional(),
  before: timeInput.optional(),
})

const tooMany = (): Refusal =>
  new Refusal('state_unfit', 'open', {
    hint: hintOf('deletions_max', { max: bounds.deletionsOpenMax }),
  })

export function deletionEndpoints({
  queryWorker,
  writer,
  recordDeleter,
  dateMs,
}: ManagementParts): readonly WebEndpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/records/deletions',
      who: { account: 'manager' },
      summary: 'List deletions of records and their progress.',
      query: listQuery({}, ['id']),
      answer: listOf(Deletion),
      async run({ query, scope }) {
        const pageQuery = buildListQuery(query, scope, '-id')
        return listAnswer(await queryWorker.query('deletions', pageQuery), pageQuery, show)
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/records/deletions/{deletion}',
      who: { account: 'manager' },
      summary: 'Show a deletion of records and its progress.',
      params: z.object({ deletion: numberOfText(z.number().int().min(1).max(Number.MAX_SAFE_INTEGER)) }),
      answer: Deletion,
      run: async ({ params: { deletion }, scope }) => ({
        body: show(requireFound(await queryWorker.query('deletion', { id: deletion, scope }))),
      }),
    }),
    endpoint({
      method: 'POST',
      path: '/api/web/records/deletions',
      who: { account: 'manager' },
      summary: 'Delete records and bodies in the background. Money and statistics do not change.',
      body: NewDeletion,
      answer: Deletion,
      status: 202,
      async run({ body, scope, by }) {
        const { account, key, endUser, from, before = dateMs() } = body
        const isAll = Object.values(body).every(value => value === undefined)
        if (isAll || (scope !== null && account === undefined)) {
          const hint = hintOf('deletion_which')
          throw new Refusal('field_missing', 'account', { param: 'account', hint })
        }
        if ((from ?? 0) >= Math.min(before, dateMs() + 1))
          throw refusal('field_invalid', hintOf('from_before_now'), 'from')
        const rule = {
          accountId: account ?? null,
          keyId: key ?? null,
          endUser: endUser ?? null,
          from: from === undefined ? 0 : idAtMs(from),
          before: idAtMs(Math.min(before, dateMs() + 1)),
        }
        const written = await writer.run('orderDeletion', { ...rule, scope, author: by.actor }, by)
        const result = requireDone(written, { unknown: resourceUnknown, too_many: tooMany })
        recordDeleter.sweep().catch(() => {}) // the next regular sweep tries again
        const id = 'id' in result ? result.id : 0
        return { body: show(requireFound(await queryWorker.query('deletion', { id, scope }))) }
      },
    }),
  ]
}
