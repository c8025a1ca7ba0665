// Runs calls in the background (`background: true`): the caller gets a queued response at once, and the call runs to
// its end without a caller. Its events are kept while it runs, for callers that stream them later.

import { bounds } from '../../base/bounds.ts'
import { answerTooLarge, Refusal } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import { describeFault } from '../../base/log.ts'
import type { StreamSink } from '../../http/server/event-stream.ts'
import { SSE_TYPE, streamResponse } from '../../http/server/event-stream.ts'
import { frameData, SseSplitter } from '../../http/sse.ts'
import { ResponseIdRewrite } from '../../pipeline/attempt/response-id.ts'
import type { Exchange, StopReason } from '../../pipeline/exchange.ts'
import { callerLeft } from '../../pipeline/exchange.ts'
import { replyHeaders } from '../../pipeline/reply/reply-headers.ts'
import { SSE_HEADERS } from '../../pipeline/reply/stream-reply.ts'
import type { StoredCall } from '../../pipeline/settle/stored-call.ts'
import { Losses } from '../../protocols/neutral/losses.ts'
import { buildQueuedResponse } from '../../protocols/openai-responses/stored-responses.ts'
import type { Json } from '../../protocols/request/json-type.ts'
import type { Jobs } from '../../store/engine/store-engine.ts'
import type { VaultId } from '../../store/vault/vault-types.ts'
import type { ResponseStore } from '../../vault/responses.ts'
import { tooLargeToStore } from './previous-response.ts'
import { responseFacts } from './store-response.ts'

export interface BackgroundParts {
  readonly responses: Pick<ResponseStore, 'get' | 'put'>
  readonly jobs: Jobs
  readonly log: Log
  readonly heartbeatMs: number
}

export interface Background {
  /** `answer` produces the answer as a caller would get it. It is not awaited. */
  begin(exchange: Exchange, answer: () => Promise<Response>): Promise<Response>
  /** A call that is running in the background. */
  find(owner: VaultId): BackgroundRun | undefined
  /** Whether another process runs the call. */
  isElsewhere(owner: VaultId): Promise<boolean>
}

export function buildBackground({ responses, jobs, log, heartbeatMs }: BackgroundParts): Background {
  const runs = new Map<string, BackgroundRun>()
  const keyOf = ({ accountId, id }: VaultId) => `${accountId}/${id}` as const
  // The response has failed when its process is dead.
  const jobOf = (owner: VaultId) => `response ${keyOf(owner)}` as const

  function checkRoom(accountId: number): void {
    const ofAccount = [...runs.values()].filter(run => run.accountId === accountId).length
    if (runs.size < bounds.backgroundCallsMax && ofAccount < bounds.backgroundCallsOfAccountMax) return
    const hint = 'Too many responses are running in the background. Try again later.'
    throw new Refusal('overloaded', 'too many background calls', { retryAfterMs: 5_000, hint })
  }

  /** Stores the events, so that they can be streamed again. */
  async function storeEvents(run: BackgroundRun): Promise<void> {
    const stored = run.exchange.storage.storedCall!.isDeleted ? undefined : await responses.get(run)
    if (stored?.body === undefined || run.events === '') return
    const { body, expiresMs: _expiresMs, ...facts } = stored
    await responses.put(facts, { ...body, events: run.events })
  }

  async function runToEnd(run: BackgroundRun, answer: () => Promise<Response>): Promise<void> {
    try {
      await run.readAnswer(await answer())
      await storeEvents(run)
    } catch (fault) {
      log.error('a background call failed', { response: run.id, fault: describeFault(fault) })
    } finally {
      await jobs.giveBack(jobOf(run))
      runs.delete(keyOf(run))
      run.close()
    }
  }

  return {
    find: owner => runs.get(keyOf(owner)),
    isElsewhere: owner => jobs.isElsewhere(jobOf(owner)),
    async begin(exchange, answer) {
      const kept = exchange.storage.storedCall!
      checkRoom(exchange.permit!.caller.accountId)
      const waiting = queuedResponse(exchange)
      const facts = {
        ...responseFacts(exchange, kept, waiting),
        status: 'queued',
        channel: null,
        upstreamId: null,
      } as const
      const run = new BackgroundRun(exchange, { ...facts, heartbeatMs })
      runs.set(keyOf(run), run)
      try {
        if (!(await jobs.isOurs(jobOf(run)))) throw new Refusal('storage_away', 'a background response')
        const done = await responses.put(facts, { input: kept.input, output: [], response: waiting })
        if (done === 'too_large') throw tooLargeToStore()
        exchange.lifetime.stop.throwIfStopped()
      } catch (fault) {
        runs.delete(keyOf(run))
        void jobs.giveBack(jobOf(run))
        throw fault
      }
      detach(exchange, kept, waiting)
      void runToEnd(run, answer)
      if (exchange.call!.stream) return run.streamEvents(-1, replyHeaders(exchange, SSE_TYPE))
      return new Response(JSON.stringify(waiting), { headers: replyHeaders(exchange, 'application/json') })
    },
  }
}

/** From here on the caller may disconnect. */
function detach(exchange: Exchange, kept: StoredCall, waiting: Json): void {
  kept.queuedResponse = waiting
  exchange.lifetime.detached = true
  const { id, background, previous_response_id } = waiting
  exchange.storage.responseIdRewrite = new ResponseIdRewrite({ id, background, previous_response_id })
  exchange.lifetime.releaseConnection()
}

function queuedResponse({ requestId, createdMs, call }: Exchange): Json {
  const { model, wantsUsage, choices, asked, json } = call!
  const createdS = Math.floor(createdMs / 1_000)
  return buildQueuedResponse({
    requestId,
    model,
    createdS,
    wantsUsage,
    choices,
    json: asked ?? json,
    losses: new Losses(),
  })
}

/** The events are held for callers that may never come, so their memory is bounded. */
const tooManyEvents: StopReason = {
  outcome: 'over_bound',
  refusal: answerTooLarge(
    `The events of the background response have more than ${bounds.backgroundEventsBytesMax} bytes.`,
  ),
}

interface RunParts extends VaultId {
  readonly heartbeatMs: number
}

export class BackgroundRun implements VaultId {
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
    const { storedCall } = this.exchange.storage
    const { stop } = this.exchange.lifetime
    if (stop.reason === undefined) storedCall!.isCancelled = true
    stop.stop(callerLeft)
    await this.ended
  }

  /** Ends the call and stores nothing of it. */
  async delete(): Promise<void> {
    this.exchange.storage.storedCall!.isDeleted = true
    await this.cancel()
  }

  close(): void {
    this.#isOver = true
    this.#wake.resolve()
    this.#end()
  }

  /** Reads the answer and keeps its events. */
  async readAnswer(response: Response): Promise<void> {
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
    if (this.#bytes > bounds.backgroundEventsBytesMax) this.exchange.lifetime.stop.stop(tooManyEvents)
    this.#wake.resolve()
    this.#wake = Promise.withResolvers()
  }

  /** Streams the events with a number above `after`, as they arrive. */
  streamEvents(after: number, headers: Record<string, string>): Response {
    let isGone = false
    const writeEvents = async (sink: StreamSink): Promise<void> => {
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

  async #waitForEvent(sink: StreamSink): Promise<void> {
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
