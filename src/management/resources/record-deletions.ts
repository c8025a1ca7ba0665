// Orders to delete records: of an account, a key, an end user, a time. Carried out in the background; the money and the
// statistics stay as they are.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { idAtMs, msOfId, textId } from '../../base/ids.ts'
import type { DeletionView } from '../../store/queries/records.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf, listOf, listQuery, time } from './endpoint.ts'
import { done, found, listAnswer, listAsk, unknown } from './listing.ts'

const Deletion = z
  .object({
    id: z.number(),
    ...{ account: z.string().nullable(), key: z.string().nullable(), ofEndUser: z.boolean() },
    ...{ from: time.nullable(), before: time, deleted: z.number() },
    ...{ author: z.string(), made: time },
    /** Null while it goes on, also while calls that it is for are under way. */
    done: time.nullable(),
  })
  .meta({ id: 'RecordDeletion' })

const moment = z.iso.datetime().transform(text => Date.parse(text))
const timeOf = (ms: number): string => new Date(ms).toISOString()

function show({ accountId, keyId, from, before, madeMs, doneMs, ...row }: DeletionView) {
  return {
    ...row,
    account: accountId === null ? null : textId('acc', accountId),
    key: keyId === null ? null : textId('key', keyId),
    ...{ from: from === 0 ? null : timeOf(msOfId(from)), before: timeOf(msOfId(before)) },
    ...{ made: timeOf(madeMs), done: doneMs === null ? null : timeOf(doneMs) },
  }
}

const order = z.strictObject({
  ...{ account: idOf('acc').optional(), key: idOf('key').optional(), endUser: z.string().min(1).max(1_000).optional() },
  ...{ from: moment.optional(), before: moment.optional() },
})

const tooMany = (): Refusal =>
  new Refusal('state_unfit', 'open', { hint: `${bounds.deletionsOpenMax} orders are still to be carried out. Wait.` })

export function deletionEndpoints({ desk, writer, deleting, dateMs }: ManagementParts): readonly WebEndpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/records/deletions',
      who: { account: 'manager' },
      about: 'List orders to delete records, and how far they are.',
      query: listQuery({}, ['id']),
      answer: listOf(Deletion),
      async run({ query, scope }) {
        const ask = listAsk(query, scope, '-id')
        return listAnswer(await desk.ask('deletions', ask), ask, show)
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/records/deletions/{deletion}',
      who: { account: 'manager' },
      about: 'Show an order to delete records, and how far it is.',
      params: z.object({ deletion: z.coerce.number().int().min(1).max(Number.MAX_SAFE_INTEGER) }),
      answer: Deletion,
      run: async ({ params: { deletion }, scope }) => ({
        body: show(found(await desk.ask('deletion', { id: deletion, scope }))),
      }),
    }),
    endpoint({
      method: 'POST',
      path: '/api/web/records/deletions',
      who: { account: 'manager' },
      about: 'Order that records and bodies be deleted. The money and the statistics stay as they are.',
      body: order,
      answer: Deletion,
      status: 202,
      async run({ body: { account, key, endUser, from, before = dateMs() }, scope, by }) {
        const isAll = account === undefined && key === undefined && endUser === undefined && from === undefined
        if (isAll || (scope !== null && account === undefined)) {
          const hint = 'Say whose records: an account, or, if you run the site, also a key, an end user or a time.'
          throw new Refusal('field_missing', 'account', { param: 'account', hint })
        }
        if ((from ?? 0) >= before) throw new Refusal('field_invalid', 'from', { param: 'from' })
        const rule = {
          ...{ accountId: account ?? null, keyId: key ?? null, endUser: endUser ?? null },
          ...{ from: from === undefined ? 0 : idAtMs(from), before: idAtMs(Math.min(before, dateMs() + 1)) },
        }
        const asked = await writer.run('orderDeletion', { ...rule, scope, author: by.actor }, by)
        const result = done(asked, { unknown, too_many: tooMany })
        deleting.sweep().catch(() => {}) // looked after again before long
        const id = 'id' in result ? result.id : 0
        return { body: show(found(await desk.ask('deletion', { id, scope }))) }
      },
    }),
  ]
}
