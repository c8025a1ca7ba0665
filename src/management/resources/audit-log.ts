// Endpoints for the audit log: who changed what, when and from where; and a check of its hash chain.

import * as z from 'zod'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { textId } from '../../base/ids.ts'
import { timeText } from '../../base/time.ts'
import type { AuditCheckResult } from '../../store/queries/audit-log.ts'
import { subjectOf } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import { Changes, formatChanges } from '../services/audit-changes.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf, listOf, listQuery, time, timeInput } from './endpoint.ts'
import { yesNo } from './fields.ts'
import { buildListQuery, listAnswer } from './list-queries.ts'

const AuditRow = z
  .object({
    seq: z.number(),
    made: time,
    actor: z.string(),
    actorName: z.string().nullable().meta({ description: 'The name of the person or the service token' }),
    address: z.string().nullable(),
    request: z.string().nullable(),
    action: z.string(),
    target: z.string(),
    targetName: z.string().nullable(),
    account: z.string().nullable(),
    accountName: z.string().nullable(),
    changes: Changes,
    hash: z.string(),
    hashBefore: z
      .string()
      .optional()
      .meta({ description: 'With `raw`: the hash of the row before; of the first row, zeros' }),
    hashedText: z
      .string()
      .optional()
      .meta({ description: 'With `raw`: `hash` is the SHA-256 of the bytes of `hashBefore`, followed by this text' }),
  })
  .meta({ id: 'AuditRow' })

export function auditLogEndpoints({ queryWorker }: ManagementParts): readonly WebEndpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/audit-log',
      who: { account: 'manager' },
      summary: 'List changes, newest first: of all accounts, or of those that you manage.',
      query: listQuery(
        {
          actor: z.string().max(100).optional(),
          action: z.string().max(100).optional(),
          target: z.string().max(200).optional(),
          account: idOf('acc').optional(),
          from: timeInput.optional(),
          before: timeInput.optional(),
          raw: yesNo.optional().meta({ description: 'Only for staff: each row also has what is hashed' }),
        },
        ['seq'],
      ),
      answer: listOf(AuditRow),
      async run({ query: { raw = false, ...query }, scope, actor }) {
        // The text has the addresses of all people.
        if (raw && scope !== null)
          throw new Refusal('role_too_low', 'raw', { param: 'raw', hint: hintOf('raw_for_staff') })
        const pageQuery = buildListQuery(query, scope, '-seq')
        // The address of another person is only for staff.
        const maySeeAddress = (by: string): boolean => scope === null || by === subjectOf(actor)
        const page = await queryWorker.query(raw ? 'rawAuditLog' : 'auditLog', pageQuery)
        return listAnswer<(typeof page.rows)[number], z.input<typeof AuditRow>>(
          page,
          pageQuery,
          ({ madeMs, accountId, changes, ...row }) => ({
            ...row,
            address: maySeeAddress(row.actor) ? row.address : null,
            changes: formatChanges(row.action, changes),
            made: timeText(madeMs),
            account: accountId === null ? null : textId('acc', accountId),
          }),
        )
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/audit-log/check',
      who: { site: 'support' },
      summary: 'Check that no row of the audit log was changed, removed or moved.',
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
      run: async ({ query }) => ({ body: await checkAll(queryWorker, query.head) }),
    }),
  ]
}

/** Checks slice by slice, so that other queries do not wait for the whole check. `head` is `<seq>:<hash>`. */
async function checkAll(
  queryWorker: ManagementParts['queryWorker'],
  head: string | undefined,
): Promise<AuditCheckResult> {
  const [seq, hash = ''] = head?.split(':') ?? []
  const known = seq === undefined ? undefined : { seq: Number(seq), hash }
  let checked = await queryWorker.query('checkAuditLog', { known })
  while (checked.goesOn) checked = await queryWorker.query('checkAuditLog', { known, after: checked.head })
  return checked
}
