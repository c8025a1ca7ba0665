// Endpoints for call records: search, show one in full, export, read stored bodies, delete.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { idAtMs, parseTextId, textId } from '../../base/ids.ts'
import { formatUsd, nanos, parseUsd } from '../../base/money/money.ts'
import { exportFormats } from '../../base/text/export-lines.ts'
import { timeText } from '../../base/time.ts'
import type { Scope } from '../../store/queries/paging.ts'
import type { BodyPart } from '../../store/records/bodies-messages.ts'
import type { RecordFilter } from '../../store/records/record-search.ts'
import { formatFullRecord, formatRecord } from '../../store/records/record-text.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { ExportSlots } from '../web/export-slots.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf, LIST_LIMIT, listOf, time, timeInput, usd } from './endpoint.ts'
import { tokenFields } from './fields.ts'
import { requireFound } from './list-queries.ts'
import { deletionEndpoints } from './record-deletions.ts'
import { startExport } from './record-export.ts'

const Short = z
  .object({
    id: z.string(),
    time,
    account: z.string(),
    key: z.string(),
    dialect: z.string(),
    model: z.string().nullable(),
    channel: z.string().nullable(),
    status: z.number(),
    error: z.string().nullable(),
    outcome: z.string(),
    streamed: z.boolean(),
    ...tokenFields,
    cost: usd,
    shortfall: usd,
    firstContentMs: z.number().nullable(),
    durationMs: z.number(),
    endUser: z.string().nullable(),
    loss: z.array(z.string()),
  })
  .meta({ id: 'Record' })

const Transfer = z.object({
  kind: z.string(),
  amount: usd,
  made: time,
  reference: z.string().nullable(),
  author: z.string().nullable(),
})

const Whole = Short.extend({
  requestedModel: z.string().nullable(),
  rule: z.string(),
  usageSource: z.string(),
  held: usd,
  priceVersion: z.number().nullable(),
  lines: z.unknown(),
  timings: z.unknown(),
  tags: z.string().nullable(),
  requestHash: z.string().nullable(),
  upstreamHash: z.string().nullable(),
  /** Null for members. */
  attempts: z.unknown(),
  routing: z.unknown(),
  /** The transfers of the call: a charge, a shortfall, a refund. */
  transfers: z.array(Transfer),
}).meta({ id: 'RecordInFull' })

const word = z.string().min(1).max(300)

/** The filters of a search; a record must match all of them. */
const filters = {
  from: timeInput.optional(),
  before: timeInput.optional(),
  id: idOf('req').optional(),
  account: idOf('acc').optional(),
  key: idOf('key').optional(),
  model: word
    .regex(/^[^/]+\/./, 'it must have the form <provider>/<model>')
    .optional()
    .meta({ description: 'The model name as callers write it: <provider>/<model>' }),
  provider: word.optional(),
  channel: word.optional(),
  outcome: word.optional(),
  error: word.optional(),
  status: z.coerce.number().int().min(100).max(599).optional(),
  costMin: usd.optional(),
  costMax: usd.optional(),
  endUser: z.string().min(1).max(1_000).optional(),
  streamed: z.enum(['true', 'false']).optional(),
  sort: z.enum(['time', '-time']).default('-time'),
}

type Filters = z.output<z.ZodObject<typeof filters>>

const params = z.object({ record: idOf('req') })

function refuse(param: string, hint: string): Refusal {
  return new Refusal('field_invalid', param, { param, hint })
}

/** `longestMs`: how long a time one search may cover. */
function filterOf(
  query: Filters,
  scope: Scope | null,
  { nowMs, longestMs }: { readonly nowMs: number; readonly longestMs: number },
): RecordFilter {
  const { id, account, key, model, costMin, costMax, streamed, from, before, sort: _sort, ...rest } = query
  if (rest.channel !== undefined && scope !== null) throw new Refusal('role_too_low', 'channel', { param: 'channel' })
  // The id of a call may be up to a minute ahead, because clocks are adjusted.
  const beforeMs = before ?? nowMs + 60_000
  const fromMs = from ?? Math.max(0, beforeMs - longestMs)
  if (fromMs >= beforeMs) throw refuse('from', '"from" must be before "before".')
  if (beforeMs - fromMs > longestMs) throw refuse('from', 'One search can cover at most 90 days.')
  const slash = model?.indexOf('/') ?? 0
  return {
    ...rest,
    callId: id,
    accountId: account,
    keyId: key,
    ...(model !== undefined && { model: { provider: model.slice(0, slash), name: model.slice(slash + 1) } }),
    ...(costMin !== undefined && { costMin: digitsOf('costMin', costMin) }),
    ...(costMax !== undefined && { costMax: digitsOf('costMax', costMax) }),
    ...(streamed !== undefined && { streamed: streamed === 'true' }),
    ...(id === undefined && { from: idAtMs(fromMs), before: idAtMs(beforeMs) }),
  }
}

function digitsOf(param: string, text: string): string {
  const amount = parseUsd(text)
  if (amount === undefined) throw refuse(param, `"${param}" must be US dollars, such as 0.25.`)
  return String(amount)
}

/** Parses the cursor of the previous page. */
function afterOf(after: string | undefined): number | undefined {
  if (after === undefined) return undefined
  const id = parseTextId('req', after)
  if (id === undefined) throw refuse('after', '"after" must be the "next" of the previous page.')
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
        'Search calls, newest first. A page ends early (`endedEarly`) if it had to read very many; continue with `next`.',
      query: z.strictObject({
        ...filters,
        after: z.string().max(100).optional(),
        limit: z.coerce.number().int().min(1).default(LIST_LIMIT),
      }),
      answer: listOf(Short).extend({ endedEarly: z.boolean() }),
      async run({ query: { after, limit, ...query }, scope }) {
        const rows = Math.min(limit, bounds.pageRowsMax)
        const filter = filterOf(query, scope, { nowMs: dateMs(), longestMs: bounds.recordSearchMsMax })
        const ask = { scope, filter, oldestFirst: query.sort === 'time', after: afterOf(after), limit: rows }
        const page = await queryWorker.query('records', ask)
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
      query: z.strictObject({ ...filters, format: z.enum(exportFormats).default('ndjson') }),
      answer: z.string(),
      async run({ query: { format, ...query }, scope, header, actor }) {
        // Staff may export everything that there is: an export reads slice by slice.
        const longestMs = scope === null ? Number.POSITIVE_INFINITY : bounds.recordSearchMsMax
        const filter = filterOf(query, scope, { nowMs: dateMs(), longestMs })
        const ask = { scope, filter, oldestFirst: query.sort === 'time', format, staff: scope === null }
        const gzip = /\bgzip\b/.test(header('accept-encoding') ?? '')
        return startExport(queryWorker, { ask, gzip, slot: await slots.enter(actor) })
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/records/{record}',
      who: { account: 'viewer' },
      summary: 'Show a call in full: attempts, timings, cost and its lines, losses of translation, and transfers.',
      params,
      answer: Whole,
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
