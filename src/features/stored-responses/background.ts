// Runs calls in the background (`background: true`): the caller gets a queued response at once, and the call runs to
// its end without a caller. Its events are kept while it runs, for callers that stream them later. Callers may also reach
// another process (made-elsewhere.ts), which then asks for the events or for the end of the call.

import { answerTooLarge } from '../../base/answer-too-large.ts'
import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import type { Log } from '../../base/log.ts'
import { describeFault } from '../../base/log.ts'
import { SSE_TYPE } from '../../http/server/event-stream.ts'
import { frameData, SseSplitter } from '../../http/sse.ts'
import { ResponseIdRewrite } from '../../pipeline/attempt/response-id.ts'
import type { Exchange, StopReason } from '../../pipeline/exchange.ts'
import type { Disconnects } from '../../pipeline/lifetime/disconnects.ts'
import { replyHeaders } from '../../pipeline/reply/reply-headers.ts'
import type { StoredCall } from '../../pipeline/settle/stored-call.ts'
import { Losses } from '../../protocols/neutral/losses.ts'
import { buildQueuedResponse } from '../../protocols/openai-responses/stored-responses.ts'
import type { Json } from '../../protocols/request/json-type.ts'
import type { Jobs, ResponseWish } from '../../store/engine/store-engine.ts'
import type { VaultId } from '../../store/vault/vault-types.ts'
import type { ResponseStore } from '../../vault/responses.ts'
import { EventFrames } from './event-frames.ts'
import { pause, pauseAfterMs } from './pace.ts'
import { tooLargeToStore } from './previous-response.ts'
import { responseFacts } from './store-response.ts'

export interface BackgroundParts {
  readonly responses: Pick<ResponseStore, 'get' | 'put' | 'change'>
  readonly jobs: Jobs
  readonly disconnects: Pick<Disconnects, 'onCancel'>
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
  /** Asks the other process that runs the call. */
  askElsewhere(owner: VaultId, wish: ResponseWish): Promise<void>
  readonly heartbeatMs: number
}

export function buildBackground({ responses, jobs, disconnects, log, heartbeatMs }: BackgroundParts): Background {
  const runs = new Map<string, BackgroundRun>()
  const keyOf = ({ accountId, id }: VaultId) => `${accountId}/${id}` as const
  // The response has failed when its process is dead.
  const jobOf = (owner: VaultId) => `response ${keyOf(owner)}` as const

  function checkRoom(accountId: number): void {
    const ofAccount = [...runs.values()].filter(run => run.accountId === accountId).length
    if (runs.size < bounds.backgroundCallsMax && ofAccount < bounds.backgroundCallsOfAccountMax) return
    const hint = hintOf('call_background_max')
    throw new Refusal('overloaded', 'too many background calls', { retryAfterMs: 5_000, hint })
  }

  /** Stores the events, so that they can be streamed again. If they do not fit, others are made from the response. */
  async function storeEvents(run: BackgroundRun): Promise<void> {
    const { isDeleted, isUnpaid } = run.exchange.storage.storedCall!
    const stored = isDeleted || isUnpaid ? undefined : await responses.get(run)
    if (stored?.body === undefined || run.events.count === 0) return
    const { body, expiresMs: _expiresMs, ...facts } = stored
    await responses.put(facts, { ...body, events: run.events.text })
  }

  /**
   * Stores the events so far, for callers that follow them at another process. A response that has ended stays as it
   * is.
   */
  async function storeEventsSoFar(run: BackgroundRun): Promise<void> {
    const { storedCall, events } = run
    const { queuedResponse, input } = storedCall
    const { count } = events
    // The wish stays until there is something new.
    if (queuedResponse === undefined || count === run.countStored || !runs.has(keyOf(run))) return
    // Before anything is awaited: a wish that comes from now on is one for later events.
    run.areEventsRequested = false
    const response = { ...queuedResponse, status: 'in_progress' }
    try {
      const done = await responses.change(run, 'in_progress', { input, output: [], response, events: events.text })
      if (done === 'changed') run.countStored = count
      if (done === 'too_large') run.doEventsFit = false
    } catch (fault) {
      run.areEventsRequested = true
      log.warn('events could not be stored', { response: run.id, fault: describeFault(fault) })
    }
  }

  const runsToStore = (): readonly BackgroundRun[] =>
    [...runs.values()].filter(({ areEventsRequested, doEventsFit }) => areEventsRequested && doEventsFit)

  let isStoring = false

  /**
   * Stores the events that other processes request, until there are no more requests. All events of a call are
   * encrypted each time, which blocks the thread: so calls are stored one after the other, and the pause applies to all
   * of them together.
   */
  async function storeAskedEvents(): Promise<void> {
    if (isStoring) return
    isStoring = true
    for (let waiting = runsToStore(); waiting.length > 0; waiting = runsToStore()) {
      const sinceMs = performance.now()
      for (const run of waiting) await storeEventsSoFar(run)
      await pause(pauseAfterMs(performance.now() - sinceMs))
    }
    isStoring = false
  }

  function fulfil(run: BackgroundRun, wish: ResponseWish): void {
    if (wish === 'events') run.areEventsRequested = true
    if (wish === 'cancel') void run.cancel()
    if (wish === 'delete') void run.delete()
  }

  let isAsking = false

  /** Carries out the requests of other processes, while calls run here. */
  async function fulfilWishes(): Promise<void> {
    if (isAsking) return
    isAsking = true
    for (; runs.size > 0; await pause()) {
      try {
        const wishes = await jobs.takeWishes()
        for (const run of runs.values()) {
          const wish = wishes.get(jobOf(run))
          if (wish !== undefined) fulfil(run, wish)
        }
        // It is not awaited: the wish to cancel a call must not wait for the events of others.
        void storeAskedEvents()
      } catch (fault) {
        log.debug('what other processes ask for cannot be read', { fault: describeFault(fault) })
      }
    }
    isAsking = false
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
    askElsewhere: (owner, wish) => jobs.ask(jobOf(owner), wish),
    heartbeatMs,
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
      const run = new BackgroundRun(exchange, { ...facts, heartbeatMs, disconnects })
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
      void fulfilWishes()
      exchange.timings.clear('Adapter') // neither done nor failed: an attempt is running
      if (exchange.call!.stream) return run.events.stream(-1, replyHeaders(exchange, SSE_TYPE))
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
  const { model, wantsUsage, choices, echoedJson, json } = call!
  const createdS = Math.floor(createdMs / 1_000)
  return buildQueuedResponse({
    requestId,
    model,
    createdS,
    wantsUsage,
    choices,
    json: echoedJson ?? json,
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
  readonly disconnects: Pick<Disconnects, 'onCancel'>
}

export class BackgroundRun implements VaultId {
  readonly exchange: Exchange
  readonly accountId: number
  readonly id: string
  readonly events: EventFrames
  /** Another process asks for events, and none were stored since. */
  areEventsRequested = false
  /** The number of events that were stored for callers at other processes. */
  countStored = 0
  /** False if they are too large to be stored. They only become more. */
  doEventsFit = true
  /** Resolves when the call is over and stored. */
  readonly ended: Promise<void>
  readonly #end: () => void
  readonly #disconnects: Pick<Disconnects, 'onCancel'>

  constructor(exchange: Exchange, { accountId, id, heartbeatMs, disconnects }: RunParts) {
    this.exchange = exchange
    this.#disconnects = disconnects
    this.accountId = accountId
    this.id = id
    this.events = new EventFrames(heartbeatMs)
    const { promise, resolve } = Promise.withResolvers<void>()
    this.ended = promise
    this.#end = resolve
  }

  get storedCall(): StoredCall {
    return this.exchange.storage.storedCall!
  }

  /** Settles the call as if its caller had disconnected. It may have become complete by then. */
  async cancel(): Promise<void> {
    if (this.exchange.lifetime.stop.reason === undefined) this.storedCall.isCancelled = true
    this.#disconnects.onCancel(this.exchange)
    await this.ended
  }

  /** Ends the call and stores nothing of it. */
  async delete(): Promise<void> {
    this.storedCall.isDeleted = true
    await this.cancel()
  }

  close(): void {
    this.events.close()
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
    this.events.add(frame)
    if (this.events.bytes > bounds.backgroundEventsBytesMax) this.exchange.lifetime.stop.stop(tooManyEvents)
  }
}
