// Endpoints for call records: search, show one in full, export, read stored bodies, delete.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { parseTextId, textId } from '../../base/ids.ts'
import { formatUsd, nanos } from '../../base/money/money.ts'
import { timeText } from '../../base/time.ts'
import type { BodyPart } from '../../store/records/bodies-messages.ts'
import { formatFullRecord, formatRecord } from '../../store/records/record-text.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { ExportSlots } from '../web/export-slots.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf, listOf, pageLimit } from './endpoint.ts'
import { afterWrong, requireFound } from './list-queries.ts'
import { deletionEndpoints } from './record-deletions.ts'
import { openRecordExport, recordExportQuery } from './record-export.ts'
import { conditionsOf, filterOf, refuse, searchFilters, settledAfter } from './record-filters.ts'
import { ShortRecord, WholeRecord } from './record-schemas.ts'

const params = z.object({ record: idOf('req') })

/** Parses the cursor of the previous page. */
function afterOf(after: string | undefined): number | undefined {
  if (after === undefined) return undefined
  const id = parseTextId('req', after)
  if (id === undefined) throw afterWrong()
  return id
}

export function recordEndpoints(parts: ManagementParts, slots: ExportSlots): readonly WebEndpoint[] {
  const { queryWorker, dateMs } = parts
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/records',
      who: { account: 'viewer' },
      summary:
        'Search calls, newest first. A page ends early (`endedEarly`) if it had to read very many; continue with `next`. ' +
        'With `settledAfter`: calls in the order in which they were settled; ask again with `next` as `settledAfter`.',
      query: z.strictObject({
        ...searchFilters,
        settledAfter: settledAfter.optional(),
        after: z.string().max(100).optional(),
        limit: pageLimit,
      }),
      answer: listOf(ShortRecord).extend({
        endedEarly: z.boolean(),
        missed: z.boolean().optional().meta({
          description:
            'With `settledAfter`: calls were left out, because it was too long ago, or is of data before a backup was restored',
        }),
      }),
      async run({ query: { after, limit, settledAfter: settled, ...query }, scope }) {
        const rows = Math.min(limit, bounds.pageRowsMax)
        if (settled !== undefined) {
          const { from, before, id, conversation, sort, ...conditions } = query
          const others = [from, before, id, conversation, after]
          if (others.some(value => value !== undefined) || sort !== '-time') {
            throw refuse('settledAfter', hintOf('settled_after_alone'))
          }
          const filter = conditionsOf(conditions, scope)
          const search = { scope, filter, after: settled === 'now' ? undefined : settled, limit: rows }
          const page = await queryWorker.query('settledRecords', search)
          const data = page.rows.map(({ seq, ...row }) => ({ ...formatRecord(row, scope === null), seq }))
          return { body: { data, next: String(page.next), limit: rows, endedEarly: false, missed: page.missed } }
        }
        const filter = filterOf(query, scope, { nowMs: dateMs(), longestMs: bounds.recordSearchMsMax })
        const search = { scope, filter, oldestFirst: query.sort === 'time', after: afterOf(after), limit: rows }
        const page = await queryWorker.query('records', search)
        const next = page.next === null ? null : textId('req', page.next)
        const data = page.rows.map(row => formatRecord(row, scope === null))
        return { body: { data, next, limit: rows, endedEarly: page.early } }
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/records/export',
      who: { account: 'viewer' },
      summary: 'Export all matching calls as NDJSON or CSV: of 90 days, or of any time for staff.',
      query: recordExportQuery,
      answer: z.string(),
      run: ({ query, ...request }) => openRecordExport(parts, slots, { ...request, query }),
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/records/{record}',
      who: { account: 'viewer' },
      summary: 'Show a call in full: attempts, timeline, cost and its lines, losses of translation, and transfers.',
      params,
      answer: WholeRecord,
      async run({ params: { record: callId }, scope }) {
        const { record, transfers } = requireFound(await queryWorker.query('record', { callId, scope }))
        const shownTransfers = transfers.map(({ kind, amount, madeMs, reference, author }) => ({
          kind,
          reference,
          author: scope === null ? author : null,
          made: timeText(madeMs),
          amount: formatUsd(nanos(BigInt(amount))),
        }))
        return { body: { ...formatFullRecord(record, scope === null), transfers: shownTransfers } }
      },
    }),
    bodiesEndpoint(parts),
    ...deletionEndpoints(parts),
  ]
}

const Body = z.object({ text: z.string(), truncated: z.boolean() })

/** Reading bodies leaves a row in the audit log. */
function bodiesEndpoint({ queryWorker, bodies, writer }: ManagementParts): WebEndpoint {
  return endpoint({
    method: 'GET',
    path: '/api/web/records/{record}/bodies',
    who: { account: 'manager' },
    writes: true,
    summary: 'Show the stored request and response bodies of a call. Reading them is noted in the audit log.',
    params,
    answer: z.object({ request: Body, answer: Body }),
    async run({ params: { record: callId }, scope, actor, by }) {
      const { record } = requireFound(await queryWorker.query('record', { callId, scope }))
      if (scope === null && actor.role === 'support') throw new Refusal('role_too_low', 'bodies')
      const kept = requireFound(await bodies.read(callId))
      await writer.run('noteBodiesSeen', { callId, accountId: record.accountId }, by)
      return { body: { request: bodyOf(kept.request), answer: bodyOf(kept.answer) } }
    },
  })
}

const bodyOf = ({ bytes, truncated }: BodyPart) => ({ text: Buffer.from(bytes).toString('utf8'), truncated })
