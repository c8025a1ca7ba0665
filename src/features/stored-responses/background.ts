// Runs calls in the background (`background: true`): the caller gets a queued response at once, and the call runs to
// its end without a caller. Its events are kept while it runs, for callers that stream them later.

import { bounds } from '../../base/bounds.ts'
import { beyondBound, Refusal } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import { describeFault } from '../../base/log.ts'
import type { Sink } from '../../http/server/event-stream.ts'
import { SSE_TYPE, streamResponse } from '../../http/server/event-stream.ts'
import { frameData, SseSplitter } from '../../http/sse.ts'
import { Renaming } from '../../pipeline/attempt/response-id.ts'
import type { Exchange, StopReason } from '../../pipeline/exchange.ts'
import { callerLeft } from '../../pipeline/exchange.ts'
import { headersOf } from '../../pipeline/reply/reply-headers.ts'
import { SSE_HEADERS } from '../../pipeline/reply/stream-reply.ts'
import type { KeptCall } from '../../pipeline/settle/stored-call.ts'
import { Losses } from '../../protocols/neutral/losses.ts'
import { waitingResponse } from '../../protocols/openai-responses/state.ts'
import type { Json } from '../../protocols/request/json-type.ts'
import type { KeptId } from '../../store/vault/kept.ts'
import type { Responses } from '../../vault/responses.ts'
import { tooLargeToKeep } from './previous-response.ts'
import { factsOf } from './store-response.ts'

export interface BackgroundParts {
  readonly responses: Pick<Responses, 'get' | 'put'>
  readonly log: Log
  readonly heartbeatMs: number
}

export interface Background {
  /** `answer` produces the answer as a caller would get it. It is not awaited. */
  begin(exchange: Exchange, answer: () => Promise<Response>): Promise<Response>
  /** A call that is running in the background. */
  find(owner: KeptId): Run | undefined
}

export function buildBackground({ responses, log, heartbeatMs }: BackgroundParts): Background {
  const runs = new Map<string, Run>()
  const keyOf = ({ accountId, id }: KeptId): string => `${accountId}/${id}`

  function checkRoom(accountId: number): void {
    const ofAccount = [...runs.values()].filter(run => run.accountId === accountId).length
    if (runs.size < bounds.backgroundCallsMax && ofAccount < bounds.backgroundCallsOfAccountMax) return
    const hint = 'Too many responses are running in the background. Try again later.'
    throw new Refusal('overloaded', 'too many background calls', { retryAfterMs: 5_000, hint })
  }

  /** Stores the events, so that they can be streamed again. */
  async function storeEvents(run: Run): Promise<void> {
    const stored = run.exchange.kept!.isDeleted ? undefined : responses.get(run)
    if (stored?.body === undefined || run.events === '') return
    const { body, expiresMs: _expiresMs, ...facts } = stored
    await responses.put(facts, { ...body, events: run.events })
  }

  async function runToEnd(run: Run, answer: () => Promise<Response>): Promise<void> {
    try {
      await run.hear(await answer())
      await storeEvents(run)
    } catch (fault) {
      log.error('a background call failed', { response: run.id, fault: describeFault(fault) })
    } finally {
      runs.delete(keyOf(run))
      run.over()
    }
  }

  return {
    find: owner => runs.get(keyOf(owner)),
    async begin(exchange, answer) {
      const kept = exchange.kept!
      checkRoom(exchange.permit!.caller.accountId)
      const waiting = queuedResponse(exchange)
      const facts = { ...factsOf(exchange, kept, waiting), status: 'queued', channel: null, upstreamId: null } as const
      const run = new Run(exchange, { ...facts, heartbeatMs })
      runs.set(keyOf(run), run)
      try {
        const done = await responses.put(facts, { input: kept.input, output: [], response: waiting })
        if (done === 'too_large') throw tooLargeToKeep()
        exchange.stop.throwIfStopped()
      } catch (fault) {
        runs.delete(keyOf(run))
        throw fault
      }
      detach(exchange, kept, waiting)
      void runToEnd(run, answer)
      if (exchange.call!.stream) return run.listen(-1, headersOf(exchange, SSE_TYPE))
      return new Response(JSON.stringify(waiting), { headers: headersOf(exchange, 'application/json') })
    },
  }
}

/** From here on the caller may disconnect. */
function detach(exchange: Exchange, kept: KeptCall, waiting: Json): void {
  kept.waiting = waiting
  exchange.detached = true
  const { id, background, previous_response_id } = waiting
  exchange.renaming = new Renaming({ id, background, previous_response_id })
  exchange.handOver()
}

function queuedResponse({ requestId, createdMs, call }: Exchange): Json {
  const { model, wantsUsage, choices, asked, json } = call!
  const createdS = Math.floor(createdMs / 1_000)
  return waitingResponse({ requestId, model, createdS, wantsUsage, choices, json: asked ?? json, losses: new Losses() })
}

/** The events are held for callers that may never come, so their memory is bounded. */
const tooManyEvents: StopReason = {
  outcome: 'over_bound',
  refusal: beyondBound(
    `The events of the background response have more than ${bounds.backgroundEventsBytesMax} bytes.`,
  ),
}

interface RunParts extends KeptId {
  readonly heartbeatMs: number
}

export class Run implements KeptId {
  readonly exchange: Exchange
  readonly accountId: number
  readonly id: string
  /** Resolves when the call is over and stored. */
  readonly ended: Promise<void>
  readonly #heartbeatMs: number
  readonly #end: () => void
  readonly #frames: Buffer[] = []
  #bytes = 0
  #wake = Promise.withResolvers<void>()
  #isOver = false

  constructor(exchange: Exchange, { accountId, id, heartbeatMs }: RunParts) {
    this.exchange = exchange
    this.accountId = accountId
    this.id = id
    this.#heartbeatMs = heartbeatMs
    const { promise, resolve } = Promise.withResolvers<void>()
    this.ended = promise
    this.#end = resolve
  }

  get events(): string {
    return this.#frames.join('')
  }

  /** Settles the call as if its caller had disconnected. */
  async cancel(): Promise<void> {
    const { kept, stop } = this.exchange
    if (stop.reason === undefined) kept!.isCancelled = true
    stop.stop(callerLeft)
    await this.ended
  }

  /** Ends the call and stores nothing of it. */
  async forget(): Promise<void> {
    this.exchange.kept!.isDeleted = true
    await this.cancel()
  }

  over(): void {
    this.#isOver = true
    this.#wake.resolve()
    this.#end()
  }

  /** Reads the answer and keeps its events. */
  async hear(response: Response): Promise<void> {
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
    if (!isStream) return void (await response.arrayBuffer())
    const splitter = new SseSplitter(bounds.answerBytesMax)
    for await (const piece of response.body as unknown as AsyncIterable<Uint8Array>) {
      for (const frame of splitter.push(piece)) this.#add(frame)
    }
  }

  #add(frame: Buffer): void {
    if (frameData(frame) === undefined) return // a comment, which only a waiting caller needs
    this.#frames.push(Buffer.from(frame))
    this.#bytes += frame.length
    if (this.#bytes > bounds.backgroundEventsBytesMax) this.exchange.stop.stop(tooManyEvents)
    this.#wake.resolve()
    this.#wake = Promise.withResolvers()
  }

  /** Streams the events with a number above `after`, as they arrive. */
  listen(after: number, headers: Record<string, string>): Response {
    let isGone = false
    const writeEvents = async (sink: Sink): Promise<void> => {
      for (let at = 0; !isGone; ) {
        const isOver = this.#isOver
        for (; at < this.#frames.length && !isGone; at++) {
          if (after < 0 || sequenceNumber(this.#frames[at]!) > after) await sink.write(this.#frames[at]!)
        }
        if (isOver) return
        if (at === this.#frames.length) await this.#waitForEvent(sink)
      }
    }
    return streamResponse(
      { status: 200, headers: { ...headers, ...SSE_HEADERS } },
      writeEvents,
      () => void (isGone = true),
    )
  }

  async #waitForEvent(sink: Sink): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined
    const timeout = new Promise<'silence'>(resolve => (timer = setTimeout(() => resolve('silence'), this.#heartbeatMs)))
    const result = await Promise.race([this.#wake.promise, timeout]).finally(() => clearTimeout(timer))
    if (result === 'silence') await sink.write(': \n\n')
  }
}

/** Events without a number are sent to every listener. */
function sequenceNumber(frame: Buffer): number {
  try {
    const { sequence_number: number } = JSON.parse(frameData(frame)!) as { sequence_number?: unknown }
    return typeof number === 'number' ? number : Number.POSITIVE_INFINITY
  } catch {
    return Number.POSITIVE_INFINITY
  }
}
