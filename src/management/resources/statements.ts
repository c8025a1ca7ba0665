// Endpoints for statements: every transfer of an account in the order of the ledger, newest first, with the balance
// after it, as a page or as a file.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { textId } from '../../base/ids.ts'
import { exportFormats } from '../../base/text/export-lines.ts'
import { formatStatementLine, statementColumns } from '../../store/ledger/statement-text.ts'
import type { StatementQuery } from '../../store/queries/ledger.ts'
import { readStatementCursor } from '../../store/queries/ledger.ts'
import type { ManagementParts } from '../management-parts.ts'
import { exportResponse } from '../web/export.ts'
import type { ExportSlots } from '../web/export-slots.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf, listOf, pageLimit, time, timeInput } from './endpoint.ts'
import { afterWrong, requireFound } from './list-queries.ts'
import { money } from './money-input.ts'
import type { ExportRequest } from './record-export.ts'

const kinds = ['charge', 'shortfall', 'top_up', 'gift', 'adjustment', 'refund', 'redemption', 'opening'] as const

const StatementLine = z
  .object({
    made: time.meta({ description: 'When the transfer was made. A call is charged when it ends.' }),
    kind: z.enum(kinds),
    amount: money,
    balance: money.meta({ description: 'The balance of the account after this transfer.' }),
    with: z.string(),
    ref: z.string().meta({ description: 'The id of the call, the code or the posting.' }),
    reference: z.string().nullable(),
    author: z.string().nullable(),
  })
  .meta({ id: 'StatementLine' })

const params = z.object({ account: idOf('acc') })
/** Each read passes a limited number of transfers. */
const READS_A_PAGE = 50

const filters = { kind: z.enum(kinds).optional(), from: timeInput.optional(), before: timeInput.optional() }

export const statementExportQuery = z.strictObject({ ...filters, format: z.enum(exportFormats).default('csv') })

type StatementExport = ExportRequest<z.output<typeof statementExportQuery>> & { readonly account: number }

/** Reads on while the filter matches nothing, so that a page without lines is rare. */
async function readStatement({ queryWorker }: Pick<ManagementParts, 'queryWorker'>, query: StatementQuery) {
  let page = requireFound(await queryWorker.query('statement', query))
  for (let reads = 1; page.lines.length === 0 && page.next !== null && reads < READS_A_PAGE; reads++) {
    page = requireFound(await queryWorker.query('statement', { ...query, after: page.next }))
  }
  return { rows: page.lines.map(formatStatementLine), next: page.next }
}

export async function openStatementExport(
  parts: Pick<ManagementParts, 'queryWorker'>,
  slots: ExportSlots,
  { query: { format, ...filter }, account, scope, actor }: StatementExport,
): Promise<Response> {
  const query = { ...filter, accountId: account, scope, limit: bounds.exportPageRowsMax }
  const first = await readStatement(parts, query)
  return exportResponse({
    format,
    name: `statement-${textId('acc', account)}`,
    columns: statementColumns,
    first,
    slot: await slots.enter(actor),
    page: after => readStatement(parts, { ...query, after }),
  })
}

export function statementEndpoints(parts: ManagementParts, slots: ExportSlots): readonly WebEndpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/accounts/{account}/statement',
      who: { account: 'viewer' },
      summary:
        'List the transfers of an account in the order of the ledger, newest first, with the balance after each.',
      params,
      query: z.strictObject({
        ...filters,
        after: z.string().max(1_000).optional(),
        limit: pageLimit,
      }),
      answer: listOf(StatementLine),
      async run({ params: { account }, query, scope }) {
        if (query.after !== undefined && readStatementCursor(query.after) === undefined) {
          throw afterWrong()
        }
        const limit = Math.min(query.limit, bounds.pageRowsMax)
        const { rows, next } = await readStatement(parts, { ...query, accountId: account, scope, limit })
        return { body: { data: rows as z.input<typeof StatementLine>[], next, limit } }
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/accounts/{account}/statement/export',
      who: { account: 'viewer' },
      summary: 'Export the statement of an account as a file: CSV, or one JSON object per line.',
      params,
      query: statementExportQuery,
      answer: z.unknown(),
      run: ({ params: { account }, ...request }) => openStatementExport(parts, slots, { ...request, account }),
    }),
  ]
}
