// Tells webhooks what happened. What is to be told is in the database before anybody is told, and leaves it only when
// it was taken or given up: a crash in between tells it once more, with the same id, and never less.
//
// Of one webhook only one thing is told at a time, the oldest first; while it does not answer, the rest waits as well.

import { bounds } from '../../base/bounds.ts'
import { textId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { describeFault } from '../../base/log.ts'
import type { Seal } from '../../base/secrets/seal.ts'
import type { GuardedPost } from '../../http/client/post-webhook.ts'
import { PostFault } from '../../http/client/post-webhook.ts'
import { openWebhookSecret, SIGNATURE_HEADER, signatureOf } from '../../identity/webhook-secret.ts'
import type { Writer } from '../../store/engine/writer.ts'
import type { DueDelivery, WebhookReader } from '../../store/webhooks/webhook-reader.ts'
import { eventId, eventText } from './events.ts'

export interface DelivererParts {
  readonly reader: Pick<WebhookReader, 'due' | 'next' | 'delivery'>
  readonly writer: Pick<Writer, 'run'>
  readonly seal: Pick<Seal, 'open'>
  readonly outside: Pick<GuardedPost, 'post' | 'close'>
  readonly log: Log
  readonly everyMs: number
  dateMs(): number
  chance(): number
}

/** How telling something went, once. */
export interface Told {
  readonly delivered: boolean
  readonly status: number | null
  readonly tookMs: number
  /** For whoever owns the webhook. */
  readonly error: string | null
}

const FIRST_PAUSE_MS = 10_000
/** As long as one that is slow may keep others waiting. */
const TURN_MS = 2_000

export class WebhookDeliverer {
  readonly #parts: DelivererParts
  readonly #busy = new Set<number>()
  readonly #underWay = new Set<Promise<void>>()
  /** Where the next look begins, so that each has its turn. */
  #after = 0
  #timer: ReturnType<typeof setInterval> | undefined
  #closed = false

  constructor(parts: DelivererParts) {
    this.#parts = parts
  }

  start(): void {
    this.#timer = setInterval(() => this.look(), this.#parts.everyMs)
  }

  /** Begins to tell what is due. */
  look(): void {
    const { reader, dateMs, log } = this.#parts
    try {
      const { ids, last } = reader.due(dateMs(), this.#after)
      for (const webhookId of ids) {
        if (this.#busy.size >= bounds.webhooksToldMax || this.#closed) return
        if (!this.#busy.has(webhookId)) this.#begin(webhookId)
        this.#after = webhookId
      }
      this.#after = last
    } catch (fault) {
      log.error('cannot look for what webhooks are to be told', { fault: describeFault(fault) })
    }
  }

  /** Tells one thing now, whether it is due or not, and never again. */
  async tellOnce(id: number): Promise<Told | undefined> {
    const delivery = this.#parts.reader.delivery(id)
    if (delivery === undefined) return undefined
    const told = await this.#tell(delivery)
    await this.#note(delivery, told, null)
    return told
  }

  /** What is under way is given up, and told again by the next start. */
  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#timer)
    this.#parts.outside.close()
    await Promise.all(this.#underWay)
  }

  #begin(webhookId: number): void {
    this.#busy.add(webhookId)
    const told = this.#tellAll(webhookId)
      .catch((fault: unknown) => {
        this.#parts.log.error('a webhook could not be told', { fault: describeFault(fault) })
      })
      .finally(() => {
        this.#busy.delete(webhookId)
        this.#underWay.delete(told)
      })
    this.#underWay.add(told)
  }

  /** As long as it takes what it is told, and nobody else waits for its place. */
  async #tellAll(webhookId: number): Promise<void> {
    const { reader, dateMs } = this.#parts
    const endMs = performance.now() + TURN_MS
    const mayStay = (): boolean => this.#busy.size < bounds.webhooksToldMax || performance.now() < endMs
    for (let isWell = true; isWell && mayStay() && !this.#closed; ) {
      const delivery = reader.next(webhookId, dateMs())
      if (delivery === undefined) return
      const told = await this.#tell(delivery)
      if (this.#closed && !told.delivered) return
      const dueMs = told.delivered ? null : this.#nextMs(delivery)
      await this.#note(delivery, told, dueMs)
      if (!told.delivered && dueMs === null) this.#logGivenUp(delivery)
      isWell = told.delivered
    }
  }

  async #tell(delivery: DueDelivery): Promise<Told> {
    const { seal, outside, dateMs } = this.#parts
    const sinceMs = performance.now()
    const tookMs = (): number => Math.round(performance.now() - sinceMs)
    try {
      const body = eventText(delivery)
      const secret = openWebhookSecret(seal, delivery.webhookId, delivery.secret)
      const headers = {
        'Content-Type': 'application/json',
        'X-Weir-Event': delivery.event,
        'X-Weir-Event-Id': eventId(delivery.id),
        [SIGNATURE_HEADER]: signatureOf(secret, body, dateMs()),
      }
      const status = await outside.post({ url: delivery.url, headers, body })
      const delivered = status >= 200 && status < 300
      const elsewhere = status >= 300 && status < 400 ? 'it sends us elsewhere, where we do not go' : null
      const error = delivered ? null : (elsewhere ?? `it answers ${status}`)
      return { delivered, status, tookMs: tookMs(), error }
    } catch (fault) {
      const error = fault instanceof PostFault ? fault.message : 'its secret cannot be read: make a new one'
      return { delivered: false, status: null, tookMs: tookMs(), error }
    }
  }

  /** Twice as long each time, and not all at the same moment; null when it is given up. */
  #nextMs({ attempts, madeMs }: DueDelivery): number | null {
    const { dateMs, chance } = this.#parts
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** attempts, bounds.webhookPauseMsMax)
    const nextMs = dateMs() + Math.round(pauseMs * (0.8 + 0.4 * chance()))
    const isOver = attempts + 1 >= bounds.webhookAttemptsMax || nextMs > madeMs + bounds.webhookTriedMsMax
    return isOver ? null : nextMs
  }

  async #note({ id, webhookId }: DueDelivery, told: Told, dueMs: number | null): Promise<void> {
    const { writer, dateMs } = this.#parts
    await writer.run('noteDelivery', { id, webhookId, ...told, triedMs: dateMs(), dueMs })
  }

  #logGivenUp({ id, webhookId, event }: DueDelivery): void {
    const what = { webhook: textId('hook', webhookId), what: event, id: eventId(id) }
    this.#parts.log.warn('a webhook was not told: given up', what)
  }
}
