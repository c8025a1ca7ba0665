// Delivers events to webhooks. An event is in the database before it is sent, and stays there until the webhook accepts
// it or it is given up. So a crash in between can cause a second delivery with the same id, but never a lost one.
//
// Each webhook gets one event at a time, the oldest first. While it does not accept an event, the others wait. Where several
// processes deliver, one of them has a webhook as its job until the webhook has no more due events, or refuses one.

import { bounds } from '../../base/bounds.ts'
import type { Hint } from '../../base/hints.ts'
import { hintOf } from '../../base/hints.ts'
import { textId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { describeFault } from '../../base/log.ts'
import type { Seal } from '../../base/secrets/seal.ts'
import type { WebhookClient } from '../../http/client/webhook-client.ts'
import { WebhookPostError } from '../../http/client/webhook-client.ts'
import { openWebhookSecret, SIGNATURE_HEADER, signWebhook } from '../../identity/webhook-secret.ts'
import type { Jobs, StoreWriter } from '../../store/engine/store-engine.ts'
import type { DueDelivery, WebhookReader } from '../../store/webhooks/webhook-reader.ts'
import { eventHeaders, eventId, eventText } from './events.ts'

export interface DelivererParts {
  readonly reader: Pick<WebhookReader, 'findDue' | 'nextDelivery' | 'delivery'>
  readonly writer: Pick<StoreWriter, 'run'>
  readonly jobs: Pick<Jobs, 'isOurs' | 'giveBack'>
  readonly seal: Pick<Seal, 'open'>
  readonly outside: Pick<WebhookClient, 'post' | 'close'>
  readonly log: Log
  readonly everyMs: number
  dateMs(): number
  random(): number
}

/** The result of one delivery attempt. */
export interface DeliveryResult {
  readonly delivered: boolean
  readonly status: number | null
  readonly tookMs: number
  /** The reason of a failure, for the owner of the webhook. */
  readonly error: Hint | null
}

const FIRST_PAUSE_MS = 10_000
/** How long a webhook may keep others waiting when all delivery slots are taken. */
const SLOT_MS_MAX = 2_000

const jobOf = (webhookId: number) => `webhook ${webhookId}` as const

export class WebhookDeliverer {
  readonly #parts: DelivererParts
  readonly #busy = new Set<number>()
  readonly #running = new Set<Promise<void>>()
  /** The webhook after which the next search begins, so that all webhooks are served in turn. */
  #after = 0
  #timer: ReturnType<typeof setInterval> | undefined
  #closed = false

  constructor(parts: DelivererParts) {
    this.#parts = parts
  }

  start(): void {
    this.#timer = setInterval(() => void this.deliverDue(), this.#parts.everyMs)
  }

  /** Starts the deliveries that are due. */
  async deliverDue(): Promise<void> {
    const { reader, dateMs, log } = this.#parts
    try {
      const { ids, last } = await reader.findDue(dateMs(), this.#after)
      for (const webhookId of ids) {
        if (this.#busy.size >= bounds.webhookCallsMax || this.#closed) return
        if (!this.#busy.has(webhookId)) this.#begin(webhookId)
        this.#after = webhookId
      }
      this.#after = last
    } catch (fault) {
      if (!this.#closed)
        log.error('the webhook deliveries that are due cannot be read', { fault: describeFault(fault) })
    }
  }

  /** Sends one delivery now, whether it is due or not, and does not repeat it. */
  async deliverOnce(id: number): Promise<DeliveryResult | undefined> {
    const delivery = await this.#parts.reader.delivery(id)
    if (delivery === undefined) return undefined
    const result = await this.#send(delivery)
    await this.#record(delivery, result, null)
    return result
  }

  /** Running deliveries are cancelled; the next start repeats them. */
  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#timer)
    this.#parts.outside.close()
    await Promise.all(this.#running)
  }

  #begin(webhookId: number): void {
    this.#busy.add(webhookId)
    const delivery = this.#deliverAll(webhookId)
      .finally(() => this.#parts.jobs.giveBack(jobOf(webhookId)))
      .catch((fault: unknown) => {
        this.#parts.log.error('a webhook delivery failed unexpectedly', { fault: describeFault(fault) })
      })
      .finally(() => {
        this.#busy.delete(webhookId)
        this.#running.delete(delivery)
      })
    this.#running.add(delivery)
  }

  /** Sends deliveries as long as the webhook accepts them and no other webhook waits for the slot. */
  async #deliverAll(webhookId: number): Promise<void> {
    const { reader, jobs, dateMs } = this.#parts
    const endMs = performance.now() + SLOT_MS_MAX
    const mayContinue = (): boolean => this.#busy.size < bounds.webhookCallsMax || performance.now() < endMs
    for (let isAccepted = true; isAccepted && mayContinue() && !this.#closed; ) {
      // Another process may have sent the next delivery until now, so it is read afterwards.
      if (!(await jobs.isOurs(jobOf(webhookId)))) return
      const delivery = await reader.nextDelivery(webhookId, dateMs())
      if (delivery === undefined) return
      const result = await this.#send(delivery)
      if (this.#closed && !result.delivered) return
      const dueMs = result.delivered ? null : this.#nextMs(delivery)
      await this.#record(delivery, result, dueMs)
      if (!result.delivered && dueMs === null) this.#logGivenUp(delivery)
      isAccepted = result.delivered
    }
  }

  async #send(delivery: DueDelivery): Promise<DeliveryResult> {
    const { seal, outside, dateMs } = this.#parts
    const sinceMs = performance.now()
    const tookMs = (): number => Math.round(performance.now() - sinceMs)
    try {
      const body = eventText(delivery)
      const secret = openWebhookSecret(seal, delivery.webhookId, delivery.secret)
      const headers = { ...eventHeaders(delivery), [SIGNATURE_HEADER]: signWebhook(secret, body, dateMs()) }
      const status = await outside.post({ url: delivery.url, headers, body })
      const delivered = status >= 200 && status < 300
      const isRedirect = status >= 300 && status < 400
      const error = delivered ? null : isRedirect ? hintOf('url_redirect') : hintOf('url_status', { status })
      return { delivered, status, tookMs: tookMs(), error }
    } catch (fault) {
      const error = fault instanceof WebhookPostError ? fault.hint : hintOf('webhook_secret_lost')
      return { delivered: false, status: null, tookMs: tookMs(), error }
    }
  }

  /** The time of the next attempt: the pause doubles each time and varies at random. Null: the delivery is given up. */
  #nextMs({ attempts, madeMs }: DueDelivery): number | null {
    const { dateMs, random } = this.#parts
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** attempts, bounds.webhookPauseMsMax)
    const nextMs = dateMs() + Math.round(pauseMs * (0.8 + 0.4 * random()))
    const isOver = attempts + 1 >= bounds.webhookAttemptsMax || nextMs > madeMs + bounds.deliveryMsMax
    return isOver ? null : nextMs
  }

  async #record({ id, webhookId }: DueDelivery, result: DeliveryResult, dueMs: number | null): Promise<void> {
    const { writer, dateMs } = this.#parts
    const error = result.error && JSON.stringify(result.error.data)
    await writer.run('noteDelivery', { id, webhookId, ...result, error, triedMs: dateMs(), dueMs })
  }

  #logGivenUp({ id, webhookId, event }: DueDelivery): void {
    const fields = { webhook: textId('hook', webhookId), what: event, id: eventId(id) }
    this.#parts.log.warn('a webhook delivery was given up', fields)
  }
}
