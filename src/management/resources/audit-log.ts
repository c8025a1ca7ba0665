// Endpoints for the audit log: who changed what, when and from where; and a check of its hash chain.

import * as z from 'zod'
import { textId } from '../../base/ids.ts'
import type { AuditChecked } from '../../store/queries/audit-log.ts'
import { subjectOf } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import { tellChanges } from '../services/audit-changes.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf, listOf, listQuery, moment, time } from './endpoint.ts'
import { listAnswer, listAsk } from './listing.ts'

const AuditRow = z
  .object({
    seq: z.number(),
    made: time,
    actor: z.string(),
    address: z.string().nullable(),
    request: z.string().nullable(),
    action: z.string(),
    target: z.string(),
    account: z.string().nullable(),
    changes: z
      .unknown()
      .meta({ description: 'For each field the old and the new value, or other details of the action' }),
    hash: z.string(),
  })
  .meta({ id: 'AuditRow' })

export function auditLogEndpoints({ desk }: ManagementParts): readonly WebEndpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/audit-log',
      who: { account: 'manager' },
      about: 'List changes, newest first: of all accounts, or of those that you manage.',
      query: listQuery(
        {
          actor: z.string().max(100).optional(),
          action: z.string().max(100).optional(),
          target: z.string().max(200).optional(),
          account: idOf('acc').optional(),
          from: moment.optional(),
          before: moment.optional(),
        },
        ['seq'],
      ),
      answer: listOf(AuditRow),
      async run({ query, scope, actor }) {
        const ask = listAsk(query, scope, '-seq')
        // The address of another person is only for staff.
        const maySeeAddress = (by: string): boolean => scope === null || by === subjectOf(actor.personId)
        return listAnswer(await desk.ask('auditLog', ask), ask, ({ madeMs, accountId, changes, ...row }) => ({
          ...row,
          address: maySeeAddress(row.actor) ? row.address : null,
          changes: tellChanges(row.action, changes),
          made: new Date(madeMs).toISOString(),
          account: accountId === null ? null : textId('acc', accountId),
        }))
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/audit-log/check',
      who: { site: 'support' },
      about: 'Check that no row of the audit log was changed, removed or moved.',
      query: z.strictObject({
        head: z
          .string()
          .regex(/^[1-9][0-9]{0,14}:[0-9a-f]{64}$/)
          .optional(),
      }),
      answer: z.object({
        rows: z.number(),
        brokenAt: z.number().nullable(),
        head: z.object({ seq: z.number(), hash: z.string() }).nullable(),
      }),
      run: async ({ query }) => ({ body: await checkAll(desk, query.head) }),
    }),
  ]
}

/** Checks slice by slice, so that other queries do not wait for the whole check. `head` is `<seq>:<hash>`. */
async function checkAll(desk: ManagementParts['desk'], head: string | undefined): Promise<AuditChecked> {
  const [seq, hash = ''] = head?.split(':') ?? []
  const known = seq === undefined ? undefined : { seq: Number(seq), hash }
  let checked = await desk.ask('checkAuditLog', { known })
  while (checked.goesOn) checked = await desk.ask('checkAuditLog', { known, after: checked.head })
  return checked
}
