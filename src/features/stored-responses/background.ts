// Calls that are answered in the background: the caller is told at once that its response waits, and the call runs to
// its end as any other, with nobody on the other side. Its events are held while it runs, for whoever listens.

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
  /** `answer` makes the answer as a caller would get it. Nothing of it is awaited here. */
  begin(exchange: Exchange, answer: () => Promise<Response>): Promise<Response>
  /** One that is under way. */
  find(owner: KeptId): Run | undefined
}

export function buildBackground({ responses, log, heartbeatMs }: BackgroundParts): Background {
  const runs = new Map<string, Run>()
  const nameOf = ({ accountId, id }: KeptId): string => `${accountId}/${id}`

  function checkRoom(accountId: number): void {
    const ofAccount = [...runs.values()].filter(run => run.accountId === accountId).length
    if (runs.size < bounds.backgroundCallsMax && ofAccount < bounds.backgroundCallsOfAccountMax) return
    const hint = 'Too many responses are being made in the background.'
    throw new Refusal('overloaded', 'in the background', { retryAfterMs: 5_000, hint })
  }

  /** For those who will want to hear it again, as it was said. */
  async function keepEvents(run: Run): Promise<void> {
    const stored = run.exchange.kept!.isDeleted ? undefined : responses.get(run)
    if (stored?.body === undefined || run.events === '') return
    const { body, expiresMs: _expiresMs, ...facts } = stored
    await responses.put(facts, { ...body, events: run.events })
  }

  async function go(run: Run, answer: () => Promise<Response>): Promise<void> {
    try {
      await run.hear(await answer())
      await keepEvents(run)
    } catch (fault) {
      log.error('a call in the background failed', { response: run.id, fault: describeFault(fault) })
    } finally {
      runs.delete(nameOf(run))
      run.over()
    }
  }

  return {
    find: owner => runs.get(nameOf(owner)),
    async begin(exchange, answer) {
      const kept = exchange.kept!
      checkRoom(exchange.permit!.caller.accountId)
      const waiting = waitingFor(exchange)
      const facts = { ...factsOf(exchange, kept, waiting), status: 'queued', channel: null, upstreamId: null } as const
      const run = new Run(exchange, { ...facts, heartbeatMs })
      runs.set(nameOf(run), run)
      try {
        const done = await responses.put(facts, { input: kept.input, output: [], response: waiting })
        if (done === 'too_large') throw tooLargeToKeep()
        exchange.stop.throwIfStopped()
      } catch (fault) {
        runs.delete(nameOf(run))
        throw fault
      }
      begun(exchange, kept, waiting)
      void go(run, answer)
      if (exchange.call!.stream) return run.listen(-1, headersOf(exchange, SSE_TYPE))
      return new Response(JSON.stringify(waiting), { headers: headersOf(exchange, 'application/json') })
    },
  }
}

/** From here on its caller may leave. */
function begun(exchange: Exchange, kept: KeptCall, waiting: Json): void {
  kept.waiting = waiting
  exchange.detached = true
  const { id, background, previous_response_id } = waiting
  exchange.renaming = new Renaming({ id, background, previous_response_id })
  exchange.handOver()
}

function waitingFor({ requestId, createdMs, call }: Exchange): Json {
  const { model, wantsUsage, choices, asked, json } = call!
  const createdS = Math.floor(createdMs / 1_000)
  return waitingResponse({ requestId, model, createdS, wantsUsage, choices, json: asked ?? json, losses: new Losses() })
}

/** What would be held for nobody in particular is no longer held, whatever the upstream has still to say. */
const tooMuch: StopReason = {
  outcome: 'over_bound',
  refusal: beyondBound(`Its events have more than ${bounds.backgroundEventsBytesMax} bytes, in the background.`),
}

interface RunFacts extends KeptId {
  readonly heartbeatMs: number
}

export class Run implements KeptId {
  readonly exchange: Exchange
  readonly accountId: number
  readonly id: string
  /** Resolves when it is over, and kept. */
  readonly ended: Promise<void>
  readonly #heartbeatMs: number
  readonly #end: () => void
  readonly #frames: Buffer[] = []
  #bytes = 0
  #wake = Promise.withResolvers<void>()
  #isOver = false

  constructor(exchange: Exchange, { accountId, id, heartbeatMs }: RunFacts) {
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

  /** Settles as if its caller had left. */
  async cancel(): Promise<void> {
    const { kept, stop } = this.exchange
    if (stop.reason === undefined) kept!.isCancelled = true
    stop.stop(callerLeft)
    await this.ended
  }

  /** Ends it, and nothing of it is kept. */
  async forget(): Promise<void> {
    this.exchange.kept!.isDeleted = true
    await this.cancel()
  }

  over(): void {
    this.#isOver = true
    this.#wake.resolve()
    this.#end()
  }

  /** Takes everything that a caller would have got. */
  async hear(response: Response): Promise<void> {
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
    if (!isStream) return void (await response.arrayBuffer())
    const splitter = new SseSplitter(bounds.answerBytesMax)
    for await (const piece of response.body as unknown as AsyncIterable<Uint8Array>) {
      for (const frame of splitter.push(piece)) this.#add(frame)
    }
  }

  #add(frame: Buffer): void {
    if (frameData(frame) === undefined) return // a comment, for a caller that is there
    this.#frames.push(Buffer.from(frame))
    this.#bytes += frame.length
    if (this.#bytes > bounds.backgroundEventsBytesMax) this.exchange.stop.stop(tooMuch)
    this.#wake.resolve()
    this.#wake = Promise.withResolvers()
  }

  /** Its events behind the one of this number, as they come. */
  listen(after: number, headers: Record<string, string>): Response {
    let isGone = false
    const tell = async (sink: Sink): Promise<void> => {
      for (let at = 0; !isGone; ) {
        const isOver = this.#isOver
        for (; at < this.#frames.length && !isGone; at++) {
          if (after < 0 || numberOf(this.#frames[at]!) > after) await sink.write(this.#frames[at]!)
        }
        if (isOver) return
        if (at === this.#frames.length) await this.#news(sink)
      }
    }
    return streamResponse({ status: 200, headers: { ...headers, ...SSE_HEADERS } }, tell, () => void (isGone = true))
  }

  async #news(sink: Sink): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined
    const silent = new Promise<'silence'>(resolve => (timer = setTimeout(() => resolve('silence'), this.#heartbeatMs)))
    const came = await Promise.race([this.#wake.promise, silent]).finally(() => clearTimeout(timer))
    if (came === 'silence') await sink.write(': \n\n')
  }
}

/** Events without one go to everybody. */
function numberOf(frame: Buffer): number {
  try {
    const { sequence_number: number } = JSON.parse(frameData(frame)!) as { sequence_number?: unknown }
    return typeof number === 'number' ? number : Number.POSITIVE_INFINITY
  } catch {
    return Number.POSITIVE_INFINITY
  }
}
