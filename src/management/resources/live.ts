// The endpoint that follows calls as they end, as server-sent events. Events are made only when the reader takes them: a
// slow reader gets the calls later and fewer states, and one that reads nothing for a while is cut off. So a stream keeps
// one page in memory.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { SSE_TYPE } from '../../http/server/event-stream.ts'
import type { Scope } from '../../store/queries/paging.ts'
import type { RecordFilter } from '../../store/records/record-search.ts'
import { formatRecord } from '../../store/records/record-text.ts'
import type { EndpointAccess } from '../actor.ts'
import { operator, resolveScope } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import { buildBearerCheck } from '../web/bearer-check.ts'
import { LiveStreams } from '../web/live-streams.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint } from './endpoint.ts'
import { conditionsOf, recordFilters, settledAfter } from './record-filters.ts'

const who: EndpointAccess = { account: 'viewer' }

const PAGE_ROWS = 100
/** How often the calls are looked for. */
const POLL_MS = 1_000
const HEARTBEAT_MS = 15_000

export function liveEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  const streams = new LiveStreams()
  const checkBearer = buildBearerCheck(parts)
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/live',
      who,
      summary:
        'Follow calls as they end, as server-sent events: `call` (a record), for staff also `state` each second (the ' +
        'calls of this gateway process by channel) and `health` (a channel whose health has changed), and `missed` if ' +
        'calls were left out. Continue with the header Last-Event-ID, or with `after`.',
      query: z.strictObject({ ...recordFilters, after: settledAfter.optional() }),
      answer: z.string(),
      contentType: 'text/event-stream',
      async run({ query: { after, ...query }, scope, actor, header, address }) {
        const filter = conditionsOf(query, scope)
        const last = settledAfter.safeParse(header('last-event-id')).data ?? after
        const request = { path: '/api/web/live', header, address: () => address }
        return openStream(parts, {
          filter,
          scope,
          after: last === 'now' ? undefined : last,
          close: streams.enter(actor),
          /** The scope now. Throws if the session or the token has ended. */
          check: async () => (actor === operator ? scope : resolveScope(who, await checkBearer(request), true)),
        })
      },
    }),
  ]
}

interface LiveRequest {
  readonly filter: RecordFilter
  readonly scope: Scope | null
  readonly after: number | undefined
  close(): void
  check(): Promise<Scope | null>
}

const eventText = (name: string, data: unknown, id?: number): string =>
  `${id === undefined ? '' : `id: ${id}\n`}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`

function openStream(parts: ManagementParts, request: LiveRequest): Response {
  const { nowMs } = parts
  const encoder = new TextEncoder()
  const source = new EventSource(parts, request)
  let stallTimer: ReturnType<typeof setInterval> | undefined
  /** When the last event was handed over; undefined while the reader waits for the next. */
  let idleSinceMs: number | undefined

  function end(): void {
    source.isEnded = true
    clearInterval(stallTimer)
    request.close()
  }

  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        stallTimer = setInterval(() => {
          if (idleSinceMs === undefined || nowMs() - idleSinceMs < bounds.exportStallMsMax) return
          end()
          controller.error(undefined) // Bun would print an Error
        }, HEARTBEAT_MS)
        stallTimer.unref()
      },
      async pull(controller) {
        idleSinceMs = undefined
        const text = await source.next().catch(() => undefined)
        if (source.isEnded) return
        if (text === undefined) {
          end()
          return controller.close()
        }
        controller.enqueue(encoder.encode(text))
        idleSinceMs = nowMs()
      },
      cancel: end,
    },
    { highWaterMark: 1 },
  )
  return new Response(body, { headers: { 'content-type': SSE_TYPE, 'cache-control': 'no-store' } })
}

/** Makes the events of one stream, in order. */
class EventSource {
  isEnded = false
  readonly #parts: ManagementParts
  readonly #request: LiveRequest
  #scope: Scope | null
  #after: number | undefined
  #isOpened = false
  #polledMs = Number.NEGATIVE_INFINITY
  #saidMs: number
  #checkedMs: number
  /** The health of each channel as the reader knows it. */
  readonly #health = new Map<string, string>()

  constructor(parts: ManagementParts, request: LiveRequest) {
    this.#parts = parts
    this.#request = request
    this.#scope = request.scope
    this.#after = request.after
    this.#saidMs = parts.nowMs()
    this.#checkedMs = parts.nowMs()
  }

  /** Resolves to the text of the next events. Throws when the reader may not see any more. */
  async next(): Promise<string> {
    for (;;) {
      const { nowMs } = this.#parts
      if (nowMs() - this.#checkedMs >= bounds.readerCheckMs) {
        this.#scope = await this.#request.check()
        this.#checkedMs = nowMs()
      }
      const waitMs = this.#polledMs + POLL_MS - nowMs()
      if (waitMs > 0) await new Promise(resolve => setTimeout(resolve, waitMs))
      if (this.isEnded) throw new Refusal('draining', 'live')
      const text = (await this.#calls()) + this.#state()
      const isSilent = nowMs() - this.#saidMs >= HEARTBEAT_MS
      if (text === '' && !isSilent && this.#isOpened) continue
      this.#isOpened = true
      this.#saidMs = nowMs()
      return text === '' ? ':\n\n' : text
    }
  }

  async #calls(): Promise<string> {
    const { filter } = this.#request
    const search = { scope: this.#scope, filter, after: this.#after, limit: PAGE_ROWS }
    const { rows, next, missed } = await this.#parts.queryWorker.query('settledRecords', search)
    // A full page is followed at once by the next one.
    if (rows.length < PAGE_ROWS) this.#polledMs = this.#parts.nowMs()
    this.#after = next
    const calls = rows.map(({ seq, ...record }) =>
      eventText('call', { ...formatRecord(record, this.#scope === null), seq }, seq),
    )
    return (missed ? eventText('missed', { before: rows[0]?.seq ?? next }) : '').concat(...calls)
  }

  /** For staff: the calls under way, and the channels whose health has changed. */
  #state(): string {
    const gateway = this.#parts.liveGateway()
    if (this.#scope !== null || gateway === undefined) return ''
    const underWay: Record<string, number> = {}
    let text = ''
    for (const { id } of this.#parts.catalogue().all()) {
      const health = gateway.health(id)
      if (health === undefined) continue
      if (health.activeCalls > 0) underWay[id] = health.activeCalls
      if (this.#health.get(id) === health.state) continue
      this.#health.set(id, health.state)
      const { state, availableInMs } = health
      text += eventText('health', { channel: id, state, availableInMs })
    }
    return text + eventText('state', { time: new Date(this.#parts.dateMs()).toISOString(), of: 'process', underWay })
  }
}
