// Endpoints for the sessions of the signed-in person: list them and end them.

import * as z from 'zod'
import { textId } from '../../base/ids.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf, listOf, listQuery, nothing, time } from './endpoint.ts'
import { done, listAnswer, listAsk, unknown } from './listing.ts'

const Session = z
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

const timeOf = (ms: number): string => new Date(ms).toISOString()

export function sessionEndpoints({ desk, writer, dateMs }: ManagementParts): readonly WebEndpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/sessions',
      who: 'person',
      about: 'List your sessions.',
      query: listQuery({ ended: z.stringbool().optional() }, ['made', 'seen']),
      answer: listOf(Session),
      async run({ query, actor }) {
        const ask = listAsk({ ...query, person: actor.personId }, null, '-made')
        return listAnswer(await desk.ask('sessions', ask), ask, row => ({
          id: textId('ses', row.id),
          current: row.id === actor.sessionId,
          made: timeOf(row.madeMs),
          seen: timeOf(row.seenMs),
          expires: timeOf(row.expiresMs),
          ended: row.endedMs === null ? null : timeOf(row.endedMs),
          endedWhy: row.endedWhy,
          address: row.address,
          agent: row.agent,
        }))
      },
    }),
    endpoint({
      method: 'DELETE',
      path: '/api/web/sessions/{session}',
      who: 'person',
      about: 'End one of your sessions.',
      params: z.object({ session: idOf('ses') }),
      answer: nothing,
      status: 204,
      async run({ params, actor, by }) {
        const input = { personId: actor.personId, only: params.session, why: 'revoked', nowMs: dateMs() } as const
        done(await writer.run('endSessions', input, by), { unknown })
        return {}
      },
    }),
    endpoint({
      method: 'DELETE',
      path: '/api/web/sessions',
      who: 'person',
      about: 'End all your sessions but this one.',
      answer: z.object({ ended: z.number() }),
      async run({ actor, by }) {
        const input = { personId: actor.personId, except: actor.sessionId, why: 'revoked', nowMs: dateMs() } as const
        const result = done(await writer.run('endSessions', input, by), { unknown })
        return { body: { ended: 'count' in result ? result.count : 0 } }
      },
    }),
  ]
}
