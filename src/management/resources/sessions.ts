// Endpoints for the sessions of the signed-in person: list them and end them.

import * as z from 'zod'
import { textId } from '../../base/ids.ts'
import { timeOrNull, timeText } from '../../base/time.ts'
import type { SessionView } from '../../store/queries/people.ts'
import type { Actor } from '../actor.ts'
import { askerOf } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf, listOf, listQuery, noContent, time } from './endpoint.ts'
import { buildListQuery, listAnswer, requireDone, resourceUnknown } from './list-queries.ts'

export const Session = z
  .object({
    id: z.string(),
    current: z.boolean(),
    made: time,
    seen: time,
    expires: time,
    ended: time.nullable(),
    endedWhy: z.string().nullable(),
    address: z.string(),
    agent: z.string(),
  })
  .meta({ id: 'Session' })

export const showSession = (row: SessionView, { sessionId }: Pick<Actor, 'sessionId'>) => ({
  id: textId('ses', row.id),
  current: row.id === sessionId,
  made: timeText(row.madeMs),
  seen: timeText(row.seenMs),
  expires: timeText(row.expiresMs),
  ended: timeOrNull(row.endedMs),
  endedWhy: row.endedWhy,
  address: row.address,
  agent: row.agent,
})

export const sessionQuery = listQuery({ ended: z.stringbool().optional() }, ['made', 'seen'])
export const SessionsEnded = z.object({ ended: z.number() })

export function sessionEndpoints({ queryWorker, writer, dateMs }: ManagementParts): readonly WebEndpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/sessions',
      who: 'person',
      summary: 'List your sessions.',
      query: sessionQuery,
      answer: listOf(Session),
      async run({ query, actor }) {
        const pageQuery = buildListQuery({ ...query, person: actor.personId }, null, '-made')
        const page = await queryWorker.query('sessions', pageQuery, askerOf(actor))
        return listAnswer(page, pageQuery, row => showSession(row, actor))
      },
    }),
    endpoint({
      method: 'DELETE',
      path: '/api/web/sessions/{session}',
      who: 'person',
      summary: 'End one of your sessions.',
      params: z.object({ session: idOf('ses') }),
      answer: noContent,
      status: 204,
      async run({ params, actor, by }) {
        const input = { personId: actor.personId, only: params.session, why: 'revoked', nowMs: dateMs() } as const
        requireDone(await writer.run('endSessions', input, by), { unknown: resourceUnknown })
        return {}
      },
    }),
    endpoint({
      method: 'DELETE',
      path: '/api/web/sessions',
      who: 'person',
      summary: 'End all your sessions but this one.',
      answer: SessionsEnded,
      async run({ actor, by }) {
        const input = { personId: actor.personId, except: actor.sessionId, why: 'revoked', nowMs: dateMs() } as const
        const result = requireDone(await writer.run('endSessions', input, by), { unknown: resourceUnknown })
        return { body: { ended: 'count' in result ? result.count : 0 } }
      },
    }),
  ]
}
