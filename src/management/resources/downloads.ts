// Endpoints for downloads in a browser. A link cannot carry the token of a session, and a file that a script reads is in
// memory as a whole. So a script asks for a ticket, and the browser follows a link with the ticket. It works once and for a
// minute, and at its use the rights of the person are checked as in any other request. The link is below /api/auth, because
// nothing below /api/web is answered without a token.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { timeText } from '../../base/time.ts'
import { digestOpaqueToken, isOpaqueToken, mintOpaqueToken } from '../../identity/opaque-token.ts'
import type { Actor, EndpointAccess } from '../actor.ts'
import { resolveScope } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { ExportSlots } from '../web/export-slots.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf, time } from './endpoint.ts'
import { requireDone, requireFound } from './list-queries.ts'
import { openRecordExport, recordExportFilter, recordExportQuery } from './record-export.ts'
import { openStatementExport, statementExportQuery } from './statements.ts'

/** Who may export records and statements. */
const who: EndpointAccess = { account: 'viewer' }

const WantedDownload = z
  .discriminatedUnion('of', [
    z.strictObject({ of: z.literal('records'), query: recordExportQuery }),
    z.strictObject({ of: z.literal('statement'), query: statementExportQuery.extend({ account: idOf('acc') }) }),
  ])
  .meta({ description: 'What to download, with the query parameters of its export.' })

type Wanted = z.output<typeof WantedDownload>

const Download = z
  .object({ url: z.string().meta({ description: 'Works once, without a token' }), expiresAt: time })
  .meta({ id: 'Download' })

/** The operator at the command line has none. */
const noSession = (): Refusal => new Refusal('state_unfit', 'no session', { hint: hintOf('download_needs_session') })
const ticketUnknown = (): Refusal =>
  new Refusal('resource_unknown', 'ticket', {
    hint: hintOf('download_once'),
  })
const tooMany = (): Refusal =>
  new Refusal('concurrency_exceeded', 'tickets', {
    hint: hintOf('downloads_max', { max: bounds.ticketsOfSessionMax }),
    retryAfterMs: bounds.ticketMsMax,
  })

export function downloadEndpoints(parts: ManagementParts, slots: ExportSlots): readonly WebEndpoint[] {
  const { writer, reader, queryWorker, dateMs } = parts

  /** Refuses now what would be refused at the download, where nobody can show a text. */
  async function check(wanted: Wanted, actor: Actor): Promise<void> {
    const scope = resolveScope(who, actor, true)
    if (wanted.of === 'records') recordExportFilter({ ...wanted, scope, actor }, dateMs())
    else requireFound(await queryWorker.query('statement', { accountId: wanted.query.account, scope, limit: 1 }))
  }

  /** The person of a session that has not ended. */
  async function actorOf(sessionId: number): Promise<Actor> {
    const session = await reader.people.session(sessionId)
    if (session === undefined || session.expiresMs <= dateMs()) throw new Refusal('session_over', 'download')
    return { personId: session.personId, role: session.role, sessionId }
  }

  return [
    endpoint({
      method: 'POST',
      path: '/api/web/downloads',
      who: 'person',
      onlyReads: true,
      summary:
        'Get a link that downloads records or a statement as a file. It works once, for a minute, and without a token.',
      body: WantedDownload,
      answer: Download,
      async run({ body, actor }) {
        if (actor.sessionId <= 0) throw noSession()
        await check(body, actor)
        const ticket = mintOpaqueToken()
        const nowMs = dateMs()
        const expiresMs = nowMs + bounds.ticketMsMax
        const row = { digest: digestOpaqueToken(ticket), sessionId: actor.sessionId, request: JSON.stringify(body) }
        requireDone(await writer.run('addTicket', { ...row, expiresMs, nowMs }), { too_many: tooMany })
        return { body: { url: `/api/auth/downloads/${ticket}`, expiresAt: timeText(expiresMs) } }
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/auth/downloads/{ticket}',
      who: 'nobody',
      writes: true,
      summary: 'Download a file by the link of a ticket.',
      params: z.object({ ticket: z.string().max(100) }),
      answer: z.unknown(),
      contentType: ['text/csv', 'application/x-ndjson'],
      async run({ params: { ticket }, header }) {
        const digest = digestOpaqueToken(ticket)
        // A look-up first: a request without a sign-in must not be able to make the gateway write.
        const isKnown = isOpaqueToken(ticket) && (await reader.people.hasTicket(digest))
        if (!isKnown) throw ticketUnknown()
        const used = await writer.run('useTicket', { digest, nowMs: dateMs() })
        if (used.done !== 'used') throw ticketUnknown()
        const wanted = JSON.parse(used.request) as Wanted
        const actor = await actorOf(used.sessionId)
        const request = { scope: resolveScope(who, actor, true), actor, header }
        if (wanted.of === 'records') return openRecordExport(parts, slots, { ...request, query: wanted.query })
        const { account, ...query } = wanted.query
        return openStatementExport(parts, slots, { ...request, query, account })
      },
    }),
  ]
}
