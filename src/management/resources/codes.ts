// Endpoints for redemption codes: create a batch, list codes and batches, void codes.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { textId } from '../../base/ids.ts'
import { formatUsd, usdText } from '../../base/money/money.ts'
import { csvLine } from '../../base/text/export-lines.ts'
import { timeOrNull, timeText } from '../../base/time.ts'
import type { CodeView } from '../../store/queries/codes.ts'
import { readCursor, writeCursor } from '../../store/queries/cursor.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { CodeState } from '../services/codes.ts'
import { codeState, codeStates, createCodeBatch } from '../services/codes.ts'
import { must } from '../web/issue-text.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf, listOf, listQuery, pageLimit, time } from './endpoint.ts'
import { afterWrong, buildListQuery, listAnswer, requireDone, resourceUnknown } from './list-queries.ts'
import { label, money, positiveUsd } from './money-input.ts'

/** Batches have no other order than that of their names. */
const BATCH_ORDER = 'batch'

const Code = z
  .object({
    id: z.string(),
    batch: z.string(),
    amount: money,
    state: z.enum(codeStates),
    author: z.string(),
    made: time,
    expires: time.nullable(),
    redeemed: time.nullable(),
    account: z.string().nullable(),
  })
  .meta({ id: 'Code' })

const Batch = z
  .object({
    batch: z.string(),
    codes: z.number(),
    redeemed: z.number(),
    voided: z.number(),
    worth: money.meta({ description: 'The sum of the amounts of all its codes.' }),
    made: time,
    expires: time.nullable(),
  })
  .meta({ id: 'CodeBatch' })
const orNull = <T, U>(value: T | null, convert: (value: T) => U): U | null => (value === null ? null : convert(value))

/** The filters of the query that find the codes of each state. */
const stateFilters: Readonly<Record<CodeState, (nowMs: number) => Readonly<Record<string, boolean | number>>>> = {
  open: nowMs => ({ redeemed: false, voided: false, openAt: nowMs }),
  redeemed: () => ({ redeemed: true }),
  voided: () => ({ voided: true }),
  expired: nowMs => ({ redeemed: false, voided: false, expiredAt: nowMs }),
}

function showCode({ id, batch, amount, author, accountId, ...code }: CodeView, nowMs: number) {
  const state = codeState(code, nowMs)
  return {
    id: textId('code', id),
    batch,
    amount: usdText(amount),
    state,
    author,
    made: timeText(code.madeMs),
    expires: timeOrNull(code.expiresMs),
    redeemed: timeOrNull(code.redeemedMs),
    account: orNull(accountId, account => textId('acc', account)),
  }
}

export const codeEndpoints = (parts: ManagementParts): readonly WebEndpoint[] => [
  ...listEndpoints(parts),
  createEndpoint(parts),
  voidEndpoint(parts),
]

function listEndpoints({ queryWorker, dateMs }: ManagementParts): readonly WebEndpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/codes',
      who: { site: 'support' },
      summary: 'List redemption codes, newest first. The codes themselves are not stored.',
      query: listQuery(
        { batch: label.optional(), account: idOf('acc').optional(), state: z.enum(codeStates).optional() },
        ['made'],
      ),
      answer: listOf(Code),
      async run({ query: { state, ...query }, scope }) {
        const nowMs = dateMs()
        const filters = state === undefined ? {} : stateFilters[state](nowMs)
        const pageQuery = buildListQuery({ ...query, ...filters }, scope, '-made')
        return listAnswer(await queryWorker.query('codes', pageQuery), pageQuery, code => showCode(code, nowMs))
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/codes/batches',
      who: { site: 'support' },
      summary: 'List the batches of redemption codes, by name.',
      query: z.strictObject({
        after: z.string().max(1_000).optional(),
        limit: pageLimit,
      }),
      answer: listOf(Batch),
      async run({ query: { after, ...query } }) {
        const limit = Math.min(query.limit, bounds.pageRowsMax)
        const place = after === undefined ? { id: '' } : readCursor(after, BATCH_ORDER)
        if (place === null) throw afterWrong()
        const { rows, next } = await queryWorker.query('codeBatches', { after: String(place.id), limit })
        const data = rows.map(({ madeMs, expiresMs, worth, ...row }) => ({
          ...row,
          worth: usdText(worth),
          made: timeText(madeMs),
          expires: timeOrNull(expiresMs),
        }))
        return { body: { data, next: next && writeCursor(BATCH_ORDER, { value: next, id: next }), limit } }
      },
    }),
  ]
}

function createEndpoint(parts: ManagementParts): WebEndpoint {
  const { mintId, dateMs } = parts
  return endpoint({
    method: 'POST',
    path: '/api/web/codes',
    who: { site: 'admin' },
    summary: 'Create a batch of redemption codes. The codes are in this answer and are never shown again.',
    query: z.strictObject({ format: z.enum(['json', 'csv']).default('json') }),
    body: z.strictObject({
      count: z.number().int().min(1).max(bounds.codesPerBatchMax),
      amount: positiveUsd,
      batch: label.optional(),
      expires: z.iso.datetime().optional(),
    }),
    answer: z.object({ batch: z.string(), amount: money, expires: time.nullable(), codes: z.array(z.string()) }),
    status: 201,
    async run({ body: { count, amount, batch = textId('batch', mintId()), expires = null }, query: { format }, by }) {
      const expiresMs = orNull(expires, text => Date.parse(text))
      if (expiresMs !== null && expiresMs <= dateMs()) {
        throw new Refusal('field_invalid', 'expires', { param: 'expires', hint: hintOf('expires_past') })
      }
      const codes = await createCodeBatch(parts, { count, amount, batch, expiresMs }, by)
      if (codes === undefined) throw new Refusal('name_taken', batch, { param: 'batch' })
      const summary = { batch, amount: formatUsd(amount), expires: timeOrNull(expiresMs) }
      if (format === 'json') return { body: { ...summary, codes: [...codes] } }
      const lines = codes.map(code => csvLine([code, summary.amount, batch, summary.expires]))
      const type = { 'content-type': 'text/csv; charset=utf-8' }
      return new Response([csvLine(['code', 'amount', 'batch', 'expires']), ...lines].join(''), {
        status: 201,
        headers: type,
      })
    },
  })
}

function voidEndpoint({ writer }: ManagementParts): WebEndpoint {
  const hint = hintOf('code_ended')
  return endpoint({
    method: 'POST',
    path: '/api/web/codes/voids',
    who: { site: 'admin' },
    summary: 'Void a code, or all codes of a batch, that nobody has redeemed.',
    body: z
      .strictObject({ batch: label.optional(), code: idOf('code').optional() })
      .refine(({ batch, code }) => (batch === undefined) !== (code === undefined), must('must_be_batch_or_code')),
    answer: z.object({ voided: z.number() }),
    async run({ body, by }) {
      const input = body.batch === undefined ? { id: body.code! } : { batch: body.batch }
      const result = requireDone(await writer.run('voidCodes', input, by), {
        unknown: resourceUnknown,
        code_used: () => new Refusal('state_unfit', 'used', { hint }),
      })
      return { body: { voided: 'codes' in result ? result.codes : 0 } }
    },
  })
}
